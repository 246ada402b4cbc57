// Looks for accesses of different cores to the same bytes of global memory that no meeting of the cores orders.
#pragma once
#include <optional>
#include <vector>

#include "asim/races/access_map.h"
#include "asim/races/race.h"

namespace asim {

class BlockRaces {
public:
    explicit BlockRaces(const SharedMemory &memory) : memory_(memory) {}

    // Takes a record of `block`, from trace offset `where`; returns the earlier access of another block it races with.
    std::optional<Overlap> next(const Entry &entry, uint32_t block, uint64_t where);

    // All blocks have met: what they did so far is over for all of them.
    void all_met() { map_.clear(); }

private:
    static constexpr uint32_t kNobody = ~0u;
    struct Touch {
        uint32_t block = kNobody;
        uint64_t where = 0;         // the first of the accesses in the piece
        bool operator==(const Touch &other) const { return block == other.block; }
    };
    // Two of different blocks are enough: at least one of them is not the block that comes next.
    struct Pair {
        Touch first, second;
        void add(const Touch &touch) {
            (first.block == kNobody || first.block == touch.block ? first : second) = touch;
        }
        bool operator==(const Pair &other) const { return first == other.first && second == other.second; }
    };
    struct State {
        Touch write;
        Pair atomics, reads;    // since the write
        bool operator==(const State &other) const {
            return write == other.write && atomics == other.atomics && reads == other.reads;
        }
    };
    enum class Kind : uint8_t { Read, Write, Atomic };

    static const Touch *conflict(const State &state, Kind kind, uint32_t block);
    std::optional<Overlap> check(const Touch &now, Kind kind, uint64_t begin, uint64_t end) const;
    void remember(const Touch &now, Kind kind, uint64_t begin, uint64_t end);

    const SharedMemory &memory_;
    AccessMap<State> map_;
};

}  // namespace asim

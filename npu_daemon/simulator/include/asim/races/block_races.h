// Looks for accesses of different cores to the same bytes of global memory that nothing orders, and for reads of what a
// scalar store has left in the data cache of its core.
#pragma once
#include <optional>
#include <vector>

#include "asim/races/access_map.h"
#include "asim/races/knowledge.h"
#include "asim/races/race.h"

namespace asim {

class BlockRaces {
public:
    explicit BlockRaces(const SharedMemory &memory) : memory_(memory) {}

    // Takes a record of core `core`, the `where`-th of its block: instruction `index` of its pipe, on a core that knows `known`
    // of the others. Returns the earlier access that it races with.
    std::optional<Overlap> next(const Entry &entry, uint32_t core, uint32_t index, const Knowledge &known, uint64_t where);

    // All cores have met: what they did so far is over for all of them, except for what lies in data caches.
    void all_met();

    // From here on cores meet one by one, so that it matters which of its accesses a core has finished.
    void tell_apart() { exact_ = true; }

private:
    static constexpr uint32_t kNobody = ~0u;
    enum class Kind : uint8_t { Read, Write, Atomic };

    struct Touch {
        uint32_t core = kNobody;
        uint32_t index = 0;         // of the instruction in its pipe; the first of the accesses in the piece
        Pipe pipe = Pipe::S;
        Kind kind = Kind::Read;
        bool cached = false;        // a scalar store whose line is not yet written back
        bool exact = false;         // no other instruction shares the piece
        uint64_t where = 0;
        bool operator==(const Touch &other) const {
            const bool same = core == other.core && pipe == other.pipe && kind == other.kind && cached == other.cached;
            return same && exact == other.exact && (!exact || index == other.index);
        }
    };
    struct State {
        Touch write;
        std::vector<Touch> others;  // reads and atomic additions since the write
        bool operator==(const State &other) const { return write == other.write && others == other.others; }
    };

    const Touch *conflict(const State &state, const Touch &now, const Knowledge &known) const;
    std::optional<Overlap> check(const Touch &now, const Knowledge &known, uint64_t begin, uint64_t end) const;
    void remember(const Touch &now, uint64_t begin, uint64_t end);
    void add(std::vector<Touch> &others, const Touch &now) const;
    void write_back(const Entry &entry, const Touch &now);

    const SharedMemory &memory_;
    AccessMap<State> map_;
    bool exact_ = false;
};

}  // namespace asim

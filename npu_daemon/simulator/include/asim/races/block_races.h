// Looks for accesses of different cores to the same bytes of global memory that nothing orders, and for what the data caches of
// the scalar units do to global memory.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "asim/races/access_map.h"
#include "asim/races/data_caches.h"
#include "asim/races/knowledge.h"
#include "asim/races/race.h"

namespace asim {

class BlockRaces {
public:
    explicit BlockRaces(const SharedMemory &memory) : memory_(memory) {}

    // Takes a record of core `core`, the `where`-th of its block: instruction `index` of its pipe, on a core that knows `known`
    // of the others. Returns the earlier access that it races with.
    std::optional<Overlap> next(const Entry &entry, uint32_t core, uint32_t index, const Knowledge &known, uint64_t where);

    struct Where {
        uint32_t core = 0;
        uint64_t where = 0;
    };
    // The first copy that left bytes as another core had written them, which nothing orders before it, and that write.
    const std::optional<std::pair<Overlap, Where>> &rewritten() const { return rewritten_; }

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
        uint8_t way = 0;            // of an atomic access: those of one way commute
        bool cached = false;        // a scalar store whose line is not yet written back
        bool exact = false;         // no other instruction shares the piece
        uint64_t where = 0;

        bool alike(const Touch &other) const { return kind == other.kind && way == other.way; }
        bool operator==(const Touch &other) const {
            const bool same = core == other.core && pipe == other.pipe && cached == other.cached;
            return same && alike(other) && exact == other.exact && (!exact || index == other.index);
        }
    };
    struct State {
        Touch write;
        std::vector<Touch> others;  // reads and atomic additions since the write
        bool operator==(const State &other) const { return write == other.write && others == other.others; }
    };

    static bool unordered(const Touch &earlier, const Touch &now, const Knowledge &known);
    static const Touch *conflict(const State &state, const Touch &now, const Knowledge &known);
    std::optional<Overlap> check(const Touch &now, const Knowledge &known, uint64_t begin, uint64_t end) const;
    void remember(const Touch &now, uint64_t begin, uint64_t end);
    void add(std::vector<Touch> &others, const Touch &now) const;
    std::optional<Overlap> keep(const Touch &now, const Knowledge &known, const Operand &stored);
    std::optional<Overlap> touch(const Touch &now, const Knowledge &known, bool past_cache, uint64_t begin, uint64_t end);
    DataCaches::Newer unseen(const Touch &now, const Knowledge &known, uint64_t line) const;
    std::optional<Overlap> through_caches(const Touch &now, const Knowledge &known, bool past_cache, uint64_t begin, uint64_t end);
    void write_back(const Entry &entry, const Touch &now);
    void note_rewritten(const Entry &entry, const Touch &now, const Knowledge &known);

    const SharedMemory &memory_;
    AccessMap<State> map_;
    DataCaches caches_;
    std::optional<std::pair<Overlap, Where>> rewritten_;
    bool exact_ = false;
};

}  // namespace asim

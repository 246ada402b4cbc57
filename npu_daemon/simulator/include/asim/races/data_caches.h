// Lines of global memory in the data caches of the scalar units. What a line holds may be older than global memory, and a line
// that was stored to is written back whole, over whatever others have written to it meanwhile (asc-devkit, docs/zh/api/SIMD-API:
// GlobalTensor SetValue and GetValue, DataCacheCleanAndInvalid).
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "asim/races/knowledge.h"
#include "asim/races/race.h"

namespace asim {

class DataCaches {
public:
    // An instruction of a core, the `where`-th of its block.
    struct Origin {
        uint32_t core = 0;
        uint64_t where = 0;
    };
    // Parts of a line that others have written, and one of them.
    struct Newer {
        uint32_t parts = 0;
        Origin by;
    };

    static uint64_t line_of(uint64_t address) { return address / kScalarLineBytes * kScalarLineBytes; }
    // Those of the bytes that lie in the line.
    static uint32_t parts_of(uint64_t line, uint64_t begin, uint64_t end);

    bool holds(uint32_t core, uint64_t line) const;

    // The scalar unit reads, or stores to, these bytes of a line; `unseen` is what others write in it that nothing orders before.
    std::optional<Overlap> load(const Origin &now, uint64_t begin, uint64_t end, const Newer &unseen);
    std::optional<Overlap> store(const Origin &now, uint64_t begin, uint64_t end, const Newer &unseen);

    // Global memory gets other bytes, by a copy or by the scalar unit of a core that knows `known` of the others.
    std::optional<Overlap> written(const Origin &now, bool by_scalar, const Knowledge &known, uint64_t begin, uint64_t end);

    // Writes the line back from `address` on, and drops it; all of the core's lines without an address. `index` counts the
    // instructions of the scalar unit.
    void clean(uint32_t core, uint32_t index, std::optional<uint64_t> address);

    // All cores have met: what was written back is there for all.
    void all_met();

private:
    static constexpr uint32_t kAllParts = ~0u;
    static_assert(kScalarLineBytes / kLinePartBytes == 32, "one bit for each part of a line");

    // A line in the cache of one core.
    struct Copy {
        uint32_t core = 0;
        bool held = false;
        uint32_t dirty = 0;         // parts stored to and not written back
        uint32_t written_back = 0;  // the instruction that wrote parts of it back last, 0: none
        uint64_t stored = 0;        // where the last store was
        Newer newer;                // since it was loaded
    };
    using Lines = std::map<uint64_t, std::vector<Copy>>;

    static void clean(Copy &copy, uint32_t index, uint32_t parts);
    Copy &obtain(uint32_t core, uint64_t line, const Newer &unseen);

    Lines lines_;
};

}  // namespace asim

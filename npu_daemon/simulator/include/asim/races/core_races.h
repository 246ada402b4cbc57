// Looks for accesses of one core to the same bytes that nothing orders.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "asim/races/access_map.h"
#include "asim/races/clocks.h"
#include "asim/races/race.h"

namespace asim {

// What the compiler's automatic synchronisation orders on a vector core, and what it leaves to the kernel (asc-devkit
// docs/zh/api/SIMD-API, synchronisation inside a core, key features, table 3): it inserts barriers between vector
// instructions, and flags between the scalar unit and every other pipe, both ways. Between V, MTE2 and MTE3 only queues
// and flags order, and overlapping copies of one pipe need a barrier.
class CoreRaces {
public:
    CoreRaces(bool auto_sync, const SharedMemory &memory) : auto_sync_(auto_sync), memory_(memory) {}

    // Takes the core's next record, from trace offset `where`; returns the earlier access that it races with.
    std::optional<Overlap> next(const Entry &entry, uint64_t where);

private:
    struct Access {
        uint32_t index = 0;         // of the instruction in its pipe, from 1; 0: no access
        Pipe pipe = Pipe::S;
        bool atomic = false;
        bool by_pointer = false;    // of the scalar unit: the compiler orders GetValue and SetValue only
        uint64_t where = 0;
        bool operator==(const Access &other) const { return where == other.where && index == other.index; }
    };
    struct State {
        Access write;
        std::array<Access, kPipeCount> reads;
        bool operator==(const State &other) const { return write == other.write && reads == other.reads; }
    };
    enum class Hazard : uint8_t { ReadAfterWrite, WriteAfterRead, WriteAfterWrite };

    using Map = AccessMap<State>;

    std::optional<Overlap> access(const Entry &entry, uint64_t where);
    std::optional<Overlap> check(const Map &map, const Access &now, bool writes, uint64_t begin, uint64_t end);
    void remember(Map &map, const Access &now, bool writes, uint64_t begin, uint64_t end);
    bool races(const Access &now, const Access &earlier, Hazard hazard);
    bool settled(const State &state) const;
    void prune(Map &map);

    bool auto_sync_;
    const SharedMemory &memory_;
    PipeClocks clocks_;
    std::array<Map, kSpaceCount> maps_;
    size_t prune_at_ = 4096;
};

}  // namespace asim

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
// and flags order, and overlapping copies of one pipe need a barrier. On a cube core it inserts nothing; the unit flag
// orders Mmad and Fixpipe, and small Mmads that add to one result need a barrier (Mmad, notes on synchronisation).
class CoreRaces {
public:
    CoreRaces(bool cube, bool auto_sync, const SharedMemory &memory)
        : cube_(cube), auto_sync_(auto_sync && !cube), memory_(memory) {}

    // Takes the core's next record, the `where`-th of its block; returns the earlier access that it races with.
    std::optional<Overlap> next(const Entry &entry, uint64_t where);

    // What has finished when `pipe` has done everything issued to it so far.
    Clock when_done(Pipe pipe) { return clocks_.when_done(pipe); }
    // Likewise for all pipes.
    const Clock &everything() const { return clocks_.everything(); }
    // How many instructions `pipe` has been given.
    uint32_t issued(Pipe pipe) const { return clocks_.issued(pipe); }
    // The scalar unit has waited for what `clock` counts.
    void learn(const Clock &clock) { clocks_.learn(Pipe::S, clock); }

private:
    // Sixteen bytes, as there are many.
    struct Access {
        uint64_t where = 0;
        uint32_t index = 0;         // of the instruction in its pipe, from 1; 0: no access
        Pipe pipe = Pipe::S;
        uint8_t way = 0;            // of an atomic access: those of one way commute
        bool by_pointer : 1;        // of the scalar unit: the compiler orders GetValue and SetValue only
        bool early : 1;             // starts before earlier writes of its own pipe are over
        bool unit_flag : 1;
        bool gaps : 1;              // see leaves_gaps

        Access() : by_pointer(false), early(false), unit_flag(false), gaps(false) {}
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
    std::optional<Overlap> operand(const Entry &entry, uint32_t index, bool writes, const Access &now);
    std::optional<Overlap> read(Map &map, const Access &now, uint64_t begin, uint64_t end);
    std::optional<Overlap> write(Map &map, const Access &now, uint64_t begin, uint64_t end);
    const Access *before_write(const State &state, const Access &now);
    Access describe(const Entry &entry, uint64_t where);
    void set_register(const Operand &result, const Access &now);
    bool starts_early(const Record &record, Pipe pipe) const;
    void barrier(Pipe pipe);
    bool races(const Access &now, const Access &earlier, Hazard hazard);
    bool settled(const State &state) const;
    void prune(Map &map);

    bool cube_;
    bool auto_sync_;
    const SharedMemory &memory_;
    PipeClocks clocks_;
    std::array<Map, kTracedSpaceCount> maps_;
    size_t prune_at_ = 4096;
};

}  // namespace asim

// Flags between the scalar unit and the other pipes: which the compiler's automatic synchronisation adds.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

// What the scalar unit reads of the unified buffer after another pipe wrote it, or writes after another pipe used it, comes
// after a pair of flags, and so does what a pipe reads that the scalar unit wrote, and what the scalar unit reads of a register that
// a vector instruction left its result in. Where the kernel has none, the compiler
// inserts it (asc-devkit docs/zh/api/SIMD-API, synchronisation inside a core, key features, table 3): leaving it out saves
// nothing, however long ago the other pipe has finished.
class ScalarOrder {
public:
    // Takes a flag that is set or awaited.
    void flag(const Record &record);

    // Takes any other record; says whether the compiler inserts a pair of flags before it.
    bool next(const Entry &entry);

    void clear();

private:
    struct Use {
        uint64_t begin;
        uint64_t bytes : 63;
        uint64_t written : 1;

        Use(uint64_t from, uint64_t to, bool writes) : begin(from), bytes(to - from), written(writes) {}
        Use(const Operand &operand, bool writes) : Use(operand.address, operand.address + operand.extent_bytes, writes) {}
        uint64_t end() const { return begin + bytes; }
        bool operator==(const Use &other) const { return begin == other.begin && bytes == other.bytes && written == other.written; }
        bool overlaps(const Use &other) const { return begin < other.end() && other.begin < end(); }
        Use covering(const Use &other) const {
            return {std::min(begin, other.begin), std::max(end(), other.end()), (written | other.written) != 0};
        }
    };
    // What was used since the last pair of flags. Uses are numbered; of equal ones that come in turns, as in a loop, the last
    // one stands for all.
    class alignas(64) Uses {    // a line of the host's cache
    public:
        void add(const Use &use);
        bool order(const Use &now) const;   // whether it has to come after one of them
        void announce() { announced_ = next_; }     // a flag is set
        void forget_announced();                    // it is awaited
        void clear();

    private:
        struct Last {
            Use use;
            uint64_t number;
        };
        void merge(const Use &use);
        bool repeats(const Use &use);

        std::vector<Last> uses_;
        size_t expected_ = 0;       // which of them may come next
        uint64_t first_ = 0;        // number of the oldest that counts
        uint64_t next_ = 0;
        uint64_t announced_ = 0;    // those before it came before a flag that is set and not yet awaited
    };

    // What the scalar unit has written, and how much of it each pipe comes after: by a flag of the scalar unit, or by one of
    // another pipe that does.
    struct Written {
        std::vector<Use> since;         // the last barrier of all pipes
        std::array<uint8_t, kPipeCount> ordered{};
        std::array<std::array<uint8_t, kPipeCount>, kPipeCount> announced{};     // by a flag from the one to the other
        uint8_t count() const { return static_cast<uint8_t>(since.size()); }
        void add(const Use &use);
        bool order(const Use &now, size_t pipe) const;
        void clear();
    };

    // Vector registers that an instruction has left a result in since the last pair of flags from V to the scalar unit, one bit each.
    struct Registers {
        uint32_t set = 0;
        uint32_t announced = 0;     // before a flag that is set and not yet awaited

        void add(uint32_t bit) { set |= bit, announced &= ~bit; }
        void announce() { announced = set; }
        void forget_announced() { set &= ~announced, announced = 0; }
    };

    bool scalar_access(const Entry &entry);
    bool register_read(const Operand &operand);
    void order_after(size_t pipe);
    bool instruction(const Entry &entry);

    std::array<Uses, kPipeCount> others_;   // of each pipe
    Registers registers_;
    Written own_;                           // of the scalar unit
};

}  // namespace asim

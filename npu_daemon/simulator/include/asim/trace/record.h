// The trace record: the only thing that crosses from execution to pricing.
// It names instructions, pipes, sizes and address ranges; it knows neither data nor cycles.
#pragma once
#include <array>
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

enum class Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX, ALL };
constexpr uint32_t kPipeCount = 7;

enum class Cost : uint8_t {
    None, Simple, HalfRate, Transcendental, Divide, BlockReduce, RepeatReduce, Gather, GatherBlock, Sort,
    Register    // moves of mask registers: one cycle (docs/hardware.md section 6)
};
constexpr uint32_t kCostCount = 11;

// How a result may lie over an operand (instructions.def).
enum class OverlapRule : uint8_t { Same, Behind, Apart, Free };

enum class ASIM_API_TYPE Op : uint16_t {
#define INSTRUCTION(name, pipe, cost, overlap) name,
#include "asim/trace/instructions.def"
    Count
};

struct Instruction {
    const char *name;
    Pipe pipe;
    Cost cost;
    OverlapRule overlap;
};

constexpr Instruction kInstructions[] = {
#define INSTRUCTION(name, pipe, cost, overlap) {#name, Pipe::pipe, Cost::cost, OverlapRule::overlap},
#include "asim/trace/instructions.def"
};

constexpr const Instruction &info(Op op) { return kInstructions[static_cast<uint16_t>(op)]; }

// Copies whose first operand is written to global memory, and those whose second is read from there.
constexpr bool writes_gm(Op op) { return op == Op::CopyUbToGm || op == Op::CopyL1ToGm || op == Op::CopyL0cToGm; }
constexpr bool reads_gm(Op op) { return op == Op::CopyGmToUb || op == Op::CopyGmToL1; }

// Memories: of a vector core Ub, of a cube core all from L1 on; Gm is common. Registers are none, but are accessed likewise.
enum class Space : uint8_t { Ub, Gm, L1, L0A, L0B, L0C, BiasTable, FixpipeBuffer, Register };
constexpr uint32_t kSpaceCount = 8;             // memories
constexpr uint32_t kTracedSpaceCount = 9;       // with the registers

// One address range an instruction touches; operand 0 is written, the others are read. A copy from UB to GM that leaves
// bytes as they were has a third operand: those that it changes, none at all when its extent is 0.
struct Operand {
    uint64_t address : 56;      // byte offset in a memory of the core, or canonical GM address
    uint64_t space : 8;
    uint32_t extent_bytes;      // span from first to one past last byte touched
    uint32_t stride;            // vector: block stride | repeat stride << 16 (32 B units); copy: bytes between bursts;
                                // scalar access: the parts of its cache line that it and those folded into it touch, or 0
};

constexpr uint32_t kScalarLineBytes = 64;   // data cache line (docs/hardware.md section 1)
constexpr uint32_t kLinePartBytes = 2;      // one bit of `stride` each

constexpr uint32_t kMaxOperands = 5;     // MrgSort: a result and four queues

constexpr uint32_t kVectorRegisterCount = 3;
constexpr uint32_t kResultRegisterBytes = 8;

constexpr Operand register_operand(VectorRegister which) {
    return {static_cast<uint64_t>(which) * kResultRegisterBytes, static_cast<uint64_t>(Space::Register), kResultRegisterBytes, 0};
}

// What the scalar unit executes, by what it takes. The first eight are instructions of a kernel's own code, in the order in which
// asim_count (machine/instrumentation.h) packs them.
enum class ScalarClass : uint8_t {
    Integer,        // arithmetic, logic, comparisons, addresses with a variable index
    Multiply,
    Divide,         // and remainders
    Float,
    FloatDivide,    // and square roots
    Branch,         // also switches, selections, calls through pointers and returns
    Call,           // of the kernel's own functions
    Convert,        // between integers and floating point, or floating-point types
    StackAccess,    // a load or store of the block's stack, or a load of a constant
    Block,          // a basic block of library code, whose price is known by the block
    Access,         // a load or store of global memory, or a load of the unified buffer that overlaps with the one before
    Load,           // any other load of the unified buffer: what comes next waits for its value
    Store,          // to the unified buffer
    Queue,          // a load or store of what a queue knows of its buffers and events, by the library
    Fetched,        // an instruction of the kernel's own code that the block had not executed before
};
constexpr uint32_t kScalarClassCount = 15;
constexpr uint32_t kCountedClassCount = 8;      // by asim_count
using ScalarCounts = std::array<uint32_t, kScalarClassCount>;   // work of the scalar unit between two records, by class

// Followed in memory by `operands` Operand entries.
struct Record {
    Op op;
    uint8_t dtype_bytes;        // widest element of the instruction
    uint8_t operands;
    uint8_t source_pipe;        // flags and barriers
    uint8_t target_pipe;
    uint16_t flag_id;
    uint32_t repeats;           // vector repeats, or bursts of a copy
    uint32_t burst_bytes;       // bytes of one burst of a copy
};

// flag_id of a copy, added up.
constexpr uint16_t kBypassesL2 = 1;  // its tensor has the cache switched off
constexpr uint16_t kAtomic = 4;      // it combines what it writes with what is there
constexpr uint16_t kAtomicMode = 8;  // times how it does (AtomicMode)
// flag_id of a scalar access, added up: of the kernel's own code, by a pointer and not by GetValue or SetValue; and one to
// global memory that goes past the data cache.
constexpr uint16_t kFromPointer = 1;
constexpr uint16_t kPastCache = 2;
constexpr uint16_t kKeepsValue = 4;     // a store to global memory of the value that is there already
// flag_id of a vector instruction: the register that it leaves a result in, counted from 1, or 0.
constexpr uint16_t leaves_in(VectorRegister which) { return static_cast<uint16_t>(static_cast<uint16_t>(which) + 1); }
inline bool sets_register(const Record &record) { return record.flag_id != 0 && info(record.op).pipe == Pipe::V; }
inline Operand register_set_by(const Record &record) { return register_operand(static_cast<VectorRegister>(record.flag_id - 1)); }

// source_pipe of a vector instruction before which a library call has a barrier, and of what the Matmul object does on a
// cube core, where it orders its own work.
constexpr uint8_t kInsideCall = 1;
// flag_id of what the Matmul object does, added up: its operand in L1 is a tensor of the kernel's own, which the kernel orders.
constexpr uint16_t kKernelsL1 = 64;
// Global memory of the library, below all tensors: a stretch for each group of cores.
constexpr uint64_t kMailboxBase = 1ull << 42;
constexpr uint64_t kMailboxBytes = 1ull << 20;

inline bool is_atomic(const Record &record) { return writes_gm(record.op) && (record.flag_id & kAtomic) != 0; }
// Copies of the same way commute; 0 for those that replace what is there.
inline uint8_t atomic_way(const Record &record) { return is_atomic(record) ? static_cast<uint8_t>(record.flag_id / kAtomic) : 0; }

// flag_id of Mmad, added up. Its `repeats` are tiles of 16 x 16 results, `burst_bytes` the bytes of one row along k, padded.
constexpr uint16_t kMmadHf32 = 1;
// flag_id of Mmad and of copies from L0C: they meet tile by tile instead of instruction by instruction.
constexpr uint16_t kUnitFlag = 2;
// flag_id of Mmad: it adds to what its result holds.
constexpr uint16_t kAccumulates = 4;

// `repeats` of CrossCoreSet: which cores meet; see machine/cross_core.h. `burst_bytes` of mode Direct: position in the group.
enum class CrossCoreMode : uint8_t { AllOfKind, VectorsOfGroup, Group, Direct };
constexpr uint32_t kCrossCoreFlags = 32;        // 0 to 15 for kernels, the others for the library

constexpr uint16_t kSyncAllKinds = 1;           // flag_id of SyncAll: cube and vector cores; else those of the same kind

// A launch is made of groups of cores that belong together: `cubes` cube cores (0 or 1) and `vectors` vector cores (0 to 2).
// Each core runs one block; blocks are numbered group by group, the cube core first.
struct Composition {
    uint16_t cubes = 0;
    uint16_t vectors = 1;

    uint32_t cores() const { return uint32_t{cubes} + vectors; }
};

struct TraceHeader {
    char magic[8];
    uint32_t version;
    uint32_t block_count;
    Composition composition;
    uint32_t reserved;
};

constexpr char kTraceMagic[8] = {'A', 'S', 'I', 'M', 'T', 'R', 'C', '\n'};
constexpr uint32_t kTraceVersion = 6;

// Starts `bytes` bytes that stand for records of one block, as site.h says.
struct SegmentHeader {
    uint32_t block_index;
    uint32_t bytes;
};

static_assert(sizeof(Record) == 16 && sizeof(Operand) == 16 && sizeof(TraceHeader) == 24, "trace layout is fixed");

}  // namespace asim

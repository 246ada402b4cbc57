// Units of the memories, and how copies combine: what kernels and the machine both speak of.
#pragma once
#include <cstdint>

namespace asim {

constexpr uint32_t kUbBlockBytes = 32;      // data block: alignment unit of the unified buffer
constexpr uint32_t kRepeatBytes = 256;      // one vector repeat
constexpr uint32_t kKernelCrossCoreFlags = 16;  // flags between cores (docs/hardware.md section 2)

// Registers in which vector instructions leave a result for the scalar unit.
enum class VectorRegister : uint8_t {
    Extreme,        // the last maximum or minimum over a whole instruction, and its index
    Sum,            // the last accumulating sum
    MergeCounts,    // records that the last MrgSort took from each queue
};

enum class AtomicMode : uint8_t { None, Add, Max, Min };

// A flag in a structure that comes from a kernel: any value but 0 is set. As wide as its neighbours: compilers take stores of elements
// for stores to single bytes.
using Flag = uint32_t;

}  // namespace asim

// What calls refuse before they reach the machine: the launch ends with the message.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

enum class Refusal : uint8_t {
    ArgumentCount,      // of the kernel entry, and of the launch
    SliceDimensions,
    SliceExtents,
    DequantRows,        // elements of a row, and how many of them to scale
    DequantScales,      // calCount and scales
    DequantElements,    // elements, of how many, and scales
    OwnMatmulCopies,
    TransposeOfFractals,
    BlockSignals,
    NoInstruction,      // bytes of an element
    Trap,
    PoolHandle,         // number of a buffer, and how many the pool has
    SpecialRegister,    // first and last bit
    Saturation,
};

[[noreturn]] ASIM_API void refuse(Refusal what, uint32_t first = 0, uint32_t second = 0, uint32_t third = 0);

}  // namespace asim

// What kernels print and which clock they read.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

// A value to print: bits as wide as they can be; of text its address.
enum class PrintKind : uint8_t { Signed, Unsigned, Float, Text, Address };
struct PrintValue {
    uint64_t bits;
    PrintKind kind;
};

// Prints like printf, but only once the process shows output: operators under evaluation print nowhere. A conversion shows what the
// value is, whatever the format says of its size.
ASIM_API int device_print(const char *format, const PrintValue *values, uint32_t count);

// Element types of a dump.
enum class DumpType : uint8_t { Half, Bfloat16, Float, Double, Signed, Unsigned };
ASIM_API void dump_values(const void *values, DumpType type, uint32_t element_bytes, uint32_t description, uint32_t count);

// An assertion of a kernel that does not hold: says so, with the kernel's own words if it has any, and ends the launch.
[[noreturn]] ASIM_API void assertion_failed(const char *condition, const char *format, const PrintValue *values, uint32_t count);

// Reads the system counter. Execution knows no cycles: the value only counts the reads of this block, and pricing
// tells for each read which cycle it was made in.
ASIM_API int64_t read_system_counter();

}  // namespace asim

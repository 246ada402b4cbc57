// Ends the run with a report: what was expected, what came, and in which call.
#pragma once
#include <cstdint>

namespace asim {

enum class FaultKind : uint8_t { RuntimeFault, Unsupported, ResourceLimit };

[[noreturn]] void fault(FaultKind kind, const char *call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace asim

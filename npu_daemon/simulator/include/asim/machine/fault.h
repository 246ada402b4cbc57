// Ends the run with a report, or warns: what was expected, what came, and in which call.
#pragma once
#include <cstdint>

namespace asim {

enum class FaultKind : uint8_t { RuntimeFault, Unsupported, ResourceLimit };

[[noreturn]] void fault(FaultKind kind, const char *call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// What goes on all the same, and is told once a run.
enum class Warning : uint8_t { BufferOverrun, BufferOverflow, ReadBehind, WriteBehind, Estimate, PartOfRepeat };
constexpr uint32_t kWarningCount = 6;

// Says what to look at, with the call's place in the kernel. Nothing is said before tell_warnings.
void warn(Warning what, const char *call, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tell_warnings();
// Says that a call's results are off by more than `within`, a number, of their value.
void estimated(const char *call, const char *within);
// Says, once for each place in the kernel, that a copy of so many bytes leaves out what is no whole block.
void remainder_left_out(const char *call, uint64_t bytes, const void *place);

}  // namespace asim

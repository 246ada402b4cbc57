#include "asim/machine/fault.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "asim/machine/block.h"
#include "asim/machine/report.h"

namespace asim {

namespace {

constexpr const char *kKindNames[] = {"runtime_fault", "unsupported", "resource_limit"};
constexpr int kMaxFrames = 24;

bool g_tells_warnings = false;
bool g_told[kWarningCount] = {};

}  // namespace

void fault(FaultKind kind, const char *call, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    void *frames[kMaxFrames];
    const int frame_count = backtrace(frames, kMaxFrames);
    write_report(kKindNames[static_cast<int>(kind)], call, message, frames, frame_count);
    _exit(kFaultExit);
}

void tell_warnings() { g_tells_warnings = true; }

namespace {

bool is_news(Warning what) {
    bool &told = g_told[static_cast<int>(what)];
    return g_tells_warnings && !std::exchange(told, true);
}

}  // namespace

void estimated(const char *call, const char *within) {
    if (!is_news(Warning::Estimate)) return;
    char kind[32], message[160];
    snprintf(kind, sizeof kind, "estimate %s", within);
    snprintf(message, sizeof message, "%s is an estimate of eight bits, up to %s of the value off; use Div, and Sqrt, where more is asked for", call,
             within);
    void *frames[kMaxFrames];
    write_warning(kind, call, message, frames, backtrace(frames, kMaxFrames));
}

void warn(Warning what, const char *call, const char *format, ...) {
    if (!is_news(what)) return;
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    void *frames[kMaxFrames];
    write_warning("warning", call, message, frames, backtrace(frames, kMaxFrames));
}

}  // namespace asim

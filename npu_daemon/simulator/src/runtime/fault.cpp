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
constexpr int kMostPlaces = 8;     // of copies that leave out a remainder

bool g_tells_warnings = false;
bool g_told[kWarningCount] = {};
const void *g_places[kMostPlaces] = {};

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

bool is_new_place(const void *place) {
    if (!g_tells_warnings) return false;
    for (const void *&told : g_places) {
        if (told == place) return false;
        if (told == nullptr) return told = place, true;
    }
    return false;
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

void remainder_left_out(const char *call, uint64_t bytes, const void *place) {
    if (!is_new_place(place)) return;
    char message[160];
    snprintf(message, sizeof message, "copies %llu of %llu bytes: DataCopy moves whole 32-byte blocks and leaves out the rest; use DataCopyPad",
             static_cast<unsigned long long>(bytes / kUbBlockBytes * kUbBlockBytes), static_cast<unsigned long long>(bytes));
    void *frames[kMaxFrames];
    write_warning("warning", call, message, frames, backtrace(frames, kMaxFrames));
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

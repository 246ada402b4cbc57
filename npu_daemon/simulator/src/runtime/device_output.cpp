#include "asim/machine/device_output.h"

#include <cstdarg>
#include <cstdio>

#include "asim/machine/block.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

bool g_shown = false;

}  // namespace

void show_device_output() { g_shown = true; }

int device_print(const char *format, ...) {
    if (!g_shown) return 0;
    va_list values;
    va_start(values, format);
    const int printed = vprintf(format, values);
    va_end(values);
    return printed;
}

int64_t read_system_counter() {
    Record record{};
    record.op = Op::ReadClock;
    emit(record, {});
    return ++block().clock_reads;
}

}  // namespace asim

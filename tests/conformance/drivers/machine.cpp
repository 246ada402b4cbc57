#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/sync.h"
#include "asim/trace/writer.h"

namespace {

asim::Block g_test_block;
std::vector<uint8_t> g_ub;
std::string g_trace;
std::string g_message;

}  // namespace

std::map<std::string, Call> &calls() {
    static std::map<std::string, Call> registered;
    return registered;
}

namespace asim {

Block *g_block = &g_test_block;
uint64_t g_tiling_key = 0;

void sync_all_blocks(bool) {}

void fault(FaultKind, const char *call, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    throw std::runtime_error(std::string(call) + ": " + message);
}

void warn(Warning, const char *, const char *, ...) {}
void estimated(const char *, const char *) {}
void remainder_left_out(const char *, uint64_t, const void *) {}

// One line a record: name, element bytes, repeats, then offset:extent of each operand.
void emit(Record record, std::initializer_list<Operand> operands) {
    g_trace += std::string(info(record.op).name) + " " + std::to_string(record.dtype_bytes) + " " +
               std::to_string(record.repeats);
    for (const Operand &operand : operands) {
        g_trace += " " + std::to_string(static_cast<uint64_t>(operand.address)) + ":" + std::to_string(operand.extent_bytes);
    }
    g_trace += "\n";
}

// Accesses of one line are not told apart here.
uint64_t last_operand_place() { return 0; }
void add_line_parts(uint64_t, uint32_t) {}

}  // namespace asim

#pragma GCC visibility push(default)
extern "C" {

// Where this driver's global memory lies: each driver of a process has a range of its own.
void machine_memory_at(uint64_t first) { asim::begin_own_addresses(first); }

// Starts over with `bytes` of unified buffer; returns its address.
uint8_t *machine_reset(uint32_t bytes) {
    g_ub.assign(bytes + asim::kUbBlockBytes, 0);
    g_test_block = asim::Block();
    asim::allow_host_memory();      // where this driver's own variables lie
    auto base = reinterpret_cast<uintptr_t>(g_ub.data());
    g_test_block.ub = reinterpret_cast<uint8_t *>((base + asim::kUbBlockBytes - 1) / asim::kUbBlockBytes * asim::kUbBlockBytes);
    g_test_block.ub_bytes = bytes;
    g_trace.clear();
    return g_test_block.ub;
}

// Runs a registered call; returns null, or why it stopped.
const char *machine_call(const char *name, Arguments arguments) {
    const auto found = calls().find(name);
    g_message = std::string("no such call: ") + name;
    if (found == calls().end()) {
        return g_message.c_str();
    }
    try {
        found->second(arguments);
        return nullptr;
    } catch (const std::runtime_error &error) {
        g_message = error.what();
        return g_message.c_str();
    }
}

const char *machine_trace() { return g_trace.c_str(); }
}
#pragma GCC visibility pop

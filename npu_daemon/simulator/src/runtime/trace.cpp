#include <unistd.h>

#include <cstring>
#include <vector>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr size_t kFlushBytes = 1u << 20;

int g_trace_fd = -1;
uint64_t g_records_left = 0;
uint32_t g_segment_block = 0;
std::vector<uint8_t> g_segment;

void write_all(const void *data, size_t size) {
    const auto *bytes = static_cast<const uint8_t *>(data);
    while (size > 0) {
        const ssize_t written = write(g_trace_fd, bytes, size);
        if (written <= 0) {
            fault(FaultKind::InstructionLimit, "trace", "the instruction trace outgrew the space allowed for it");
        }
        bytes += written;
        size -= static_cast<size_t>(written);
    }
}

void flush_segment() {
    if (g_segment.empty()) {
        return;
    }
    const SegmentHeader header{g_segment_block, static_cast<uint32_t>(g_segment.size())};
    write_all(&header, sizeof header);
    write_all(g_segment.data(), g_segment.size());
    g_segment.clear();
}

void append(const void *data, size_t size) {
    const auto *bytes = static_cast<const uint8_t *>(data);
    g_segment.insert(g_segment.end(), bytes, bytes + size);
}

uint32_t take(uint64_t &counter) {
    const uint32_t taken = counter > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(counter);
    counter -= taken;
    return taken;
}

}  // namespace

void open_trace(int fd, uint32_t block_count, uint64_t record_limit) {
    g_trace_fd = fd;
    g_records_left = record_limit;
    g_segment.reserve(kFlushBytes + 4096);
    TraceHeader header{};
    std::memcpy(header.magic, kTraceMagic, sizeof header.magic);
    header.version = kTraceVersion;
    header.block_count = block_count;
    write_all(&header, sizeof header);
}

void close_trace() { flush_segment(); }

void switch_trace(uint32_t block_index) {
    flush_segment();
    g_segment_block = block_index;
}

void emit(Record record, std::initializer_list<Operand> operands) {
    Block &self = block();
    const Instruction &instruction = info(record.op);
    if (g_records_left-- == 0) {
        fault(FaultKind::InstructionLimit, instruction.name,
              "the kernel issued more instructions than any case needs: it looks like an endless loop");
    }
    record.operands = static_cast<uint8_t>(operands.size());
    record.scalar_blocks = take(self.scalar_blocks);
    record.scalar_accesses = take(self.scalar_accesses);
    self.last_call = instruction.name;
    if (record.op != Op::ScalarAccess) {
        std::memset(self.scalar_lines, 0, sizeof self.scalar_lines);
    }
    append(&record, sizeof record);
    append(operands.begin(), operands.size() * sizeof(Operand));
    if (g_segment.size() >= kFlushBytes) {
        flush_segment();
    }
}

}  // namespace asim

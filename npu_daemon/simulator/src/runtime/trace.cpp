#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/report.h"
#include "asim/trace/encoder.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr size_t kFlushBytes = 1u << 18;
constexpr uint64_t kMaxTraceBytes = 1u << 29;

int g_trace_fd = -1;
uint64_t g_record_limit = 0;
uint64_t g_records = 0;
uint64_t g_trace_bytes = 0;                         // in the file
uint32_t g_current = 0;                             // block whose records come in
std::vector<std::vector<uint8_t>> g_segments;       // records of each block that are not in the file yet
SegmentEncoder g_encoder;

struct Located {
    uint32_t block;
    uint64_t ordinal;
};
std::vector<Located> g_located;
uint64_t g_last_located = 0;    // the greatest ordinal among them

// Tells where the kernel issues the record, if it was asked for.
void locate(const char *call, uint64_t ordinal) {
    constexpr int kMaxFrames = 24;
    if (ordinal > g_last_located) return;
    for (const Located &wanted : g_located) {
        if (wanted.block != g_current || wanted.ordinal != ordinal) continue;
        void *frames[kMaxFrames];
        char message[48];
        snprintf(message, sizeof message, "%u %llu", g_current, static_cast<unsigned long long>(ordinal));
        write_report("located", call, message, frames, backtrace(frames, kMaxFrames));
    }
}

[[noreturn]] void too_large() {
    fault(FaultKind::ResourceLimit, "trace",
          "the kernel issued more than fits into its trace (at most %llu records and %llu bytes): %llu records, %llu bytes. "
          "It is an endless loop, or its instructions do too little each: use larger tiles",
          static_cast<unsigned long long>(g_record_limit), static_cast<unsigned long long>(kMaxTraceBytes),
          static_cast<unsigned long long>(g_records), static_cast<unsigned long long>(g_trace_bytes));
}

void write_all(const void *data, size_t size) {
    const auto *bytes = static_cast<const uint8_t *>(data);
    g_trace_bytes += size;
    if (g_trace_bytes > kMaxTraceBytes) too_large();
    while (size > 0) {
        const ssize_t written = write(g_trace_fd, bytes, size);
        if (written <= 0) too_large();
        bytes += written;
        size -= static_cast<size_t>(written);
    }
}

void write_segment(uint32_t block_index) {
    const std::vector<uint8_t> &bytes = g_encoder.finish();
    const SegmentHeader header{block_index, static_cast<uint32_t>(bytes.size())};
    write_all(&header, sizeof header);
    write_all(bytes.data(), bytes.size());
    g_encoder.begin();
}

// Reads a record as append has kept it; returns how many bytes that are.
size_t kept_record(Entry &entry, ScalarCounts &scalar, const uint8_t *kept) {
    const uint8_t *at = kept;
    const auto take = [&at](void *to, size_t bytes) {
        std::memcpy(to, at, bytes);
        at += bytes;
    };
    uint32_t classes;
    take(&entry.record, sizeof entry.record);
    take(&classes, sizeof classes);
    scalar = {};
    for (; classes != 0; classes &= classes - 1) take(&scalar[static_cast<size_t>(__builtin_ctz(classes))], sizeof scalar[0]);
    take(entry.operands, entry.record.operands * sizeof(Operand));
    return static_cast<size_t>(at - kept);
}

void flush_segment(uint32_t block_index) {
    std::vector<uint8_t> &segment = g_segments[block_index];
    if (segment.empty()) return;
    g_encoder.begin();
    for (size_t at = 0; at < segment.size();) {
        Entry entry;
        ScalarCounts scalar;
        at += kept_record(entry, scalar, segment.data() + at);
        if (g_encoder.full()) write_segment(block_index);
        g_encoder.add(entry.record, scalar, entry.operands);
    }
    write_segment(block_index);
    segment.clear();
}

void forget_scalar_lines(Block &block) {
    for (auto &set : block.scalar_lines) std::fill(std::begin(set), std::end(set), ScalarLine{});
}

// Keeps a record of the running block until it is written: it, which counts of scalar work are not 0, these, and the operands.
void append(const Record &record, const ScalarCounts &scalar, std::initializer_list<Operand> operands) {
    uint8_t kept[sizeof record + sizeof(uint32_t) + sizeof scalar + kMaxOperands * sizeof(Operand)];
    uint32_t classes = 0;
    uint8_t *end = kept + sizeof record + sizeof classes;
    for (uint32_t i = 0; i < kScalarClassCount; ++i) {
        if (scalar[i] == 0) continue;
        classes |= 1u << i;
        std::memcpy(end, &scalar[i], sizeof scalar[i]);
        end += sizeof scalar[i];
    }
    std::memcpy(kept, &record, sizeof record);
    std::memcpy(kept + sizeof record, &classes, sizeof classes);
    if (operands.size() != 0) std::memcpy(end, operands.begin(), operands.size() * sizeof(Operand));
    end += operands.size() * sizeof(Operand);
    g_segments[g_current].insert(g_segments[g_current].end(), kept, end);
}

// Vector calls do nothing on a cube core.
bool exists_on_cube_core(Op op) {
    return info(op).pipe != Pipe::V && op != Op::CopyGmToUb && op != Op::CopyUbToGm;
}

// Ends the run where an instruction touches what CheckLocalMemoryIA watches.
void check_watched(const Block &self, const Instruction &instruction, std::initializer_list<Operand> operands) {
    if (instruction.pipe == Pipe::S) return;    // the scalar unit's accesses are checked one by one
    const uint32_t shift = instruction.pipe == Pipe::V ? 2 : 4;
    for (const Operand *operand = operands.begin(); operand != operands.end(); ++operand) {
        if (static_cast<Space>(operand->space) != Space::Ub) continue;
        const uint32_t kind = 1u << (shift + (operand == operands.begin() ? 1 : 0));
        for (const WatchedMemory &watched : self.watched) {
            if ((watched.kinds & kind) == 0 || operand->address >= watched.end || operand->address + operand->extent_bytes <= watched.begin) continue;
            fault(FaultKind::RuntimeFault, instruction.name, "%s unified buffer byte %llu, which CheckLocalMemoryIA watches",
                  operand == operands.begin() ? "writes" : "reads", static_cast<unsigned long long>(std::max<uint64_t>(operand->address, watched.begin)));
        }
    }
}

uint32_t take(uint64_t &counter) {
    const uint32_t taken = counter > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(counter);
    counter -= taken;
    return taken;
}

}  // namespace

void open_trace(int fd, uint32_t block_count, const Composition &composition, uint64_t record_limit) {
    g_trace_fd = fd;
    g_record_limit = record_limit;
    g_records = g_trace_bytes = 0;
    g_segments.resize(block_count);
    TraceHeader header{};
    std::memcpy(header.magic, kTraceMagic, sizeof header.magic);
    header.version = kTraceVersion;
    header.block_count = block_count;
    header.composition = composition;
    write_all(&header, sizeof header);
}

void locate_record(uint32_t block_index, uint64_t ordinal) {
    g_located.push_back({block_index, ordinal});
    if (ordinal > g_last_located) g_last_located = ordinal;
}

void close_trace() {
    for (uint32_t block_index = 0; block_index < g_segments.size(); ++block_index) flush_segment(block_index);
}

void switch_trace(uint32_t block_index) { g_current = block_index; }

void emit(Record record, std::initializer_list<Operand> operands) {
    Block &self = block();
    const Instruction &instruction = info(record.op);
    if (self.kind == CoreKind::Cube && !exists_on_cube_core(record.op)) return;
    if (__builtin_expect(self.watches, 0)) check_watched(self, instruction, operands);
    if (++g_records > g_record_limit) too_large();
    record.operands = static_cast<uint8_t>(operands.size());
    ScalarCounts scalar;
    for (uint32_t i = 0; i < kScalarClassCount; ++i) scalar[i] = take(self.scalar_counts[i]);
    self.last_call = instruction.name;
    const bool full = g_segments[g_current].size() >= kFlushBytes;
    if (full) flush_segment(g_current);
    if (full || record.op != Op::ScalarAccess) forget_scalar_lines(self);
    if (record.op != Op::ScalarAccess) self.after_load = false;
    if (!g_located.empty()) locate(instruction.name, self.records);
    ++self.records;
    append(record, scalar, operands);
    const bool ended = record.op == Op::BlockEnd;
    if (ended) {
        flush_segment(g_current);
        g_segments[g_current].shrink_to_fit();
    }
}

uint64_t last_operand_place() { return g_segments[g_current].size() - sizeof(Operand); }

void add_line_parts(uint64_t place, uint32_t parts) {
    Operand operand;
    uint8_t *bytes = g_segments[g_current].data() + place;
    std::memcpy(&operand, bytes, sizeof operand);
    operand.stride |= parts;
    std::memcpy(bytes, &operand, sizeof operand);
}

}  // namespace asim

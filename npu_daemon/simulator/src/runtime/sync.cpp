#include "asim/machine/sync.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "asim/check/check.h"
#include "asim/machine/buffer_flags.h"
#include "asim/machine/gm.h"
#include "asim/machine/rerun.h"
#include "asim/machine/scalar_access.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr const char *kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};

const char *name(Pipe pipe) { return kPipeNames[static_cast<int>(pipe)]; }

void emit_flag(Op op, Pipe source, Pipe target, uint32_t flag_id) {
    Record record{};
    record.op = op;
    record.source_pipe = static_cast<uint8_t>(source);
    record.target_pipe = static_cast<uint8_t>(target);
    record.flag_id = static_cast<uint16_t>(flag_id);
    emit(record, {});
}

void check_event_id(const char *call, uint32_t event_id) {
    if (event_id >= kEventIds) {
        fault(FaultKind::RuntimeFault, call, "event id %u does not exist: a pipe pair has ids 0 to %u", event_id,
              kEventIds - 1);
    }
}

bool is_pipe(Pipe pipe) { return static_cast<uint32_t>(pipe) < kPipeCount; }

uint8_t &raised(Pipe source, Pipe target) {
    return block().flags_raised[static_cast<int>(source)][static_cast<int>(target)];
}

uint8_t &allocated(Pipe source, Pipe target) {
    return block().event_ids[static_cast<int>(source)][static_cast<int>(target)];
}

uint8_t &of_buffers(Pipe source, Pipe target) {
    return block().buffer_events[static_cast<int>(source)][static_cast<int>(target)];
}

uint8_t bit_of(uint32_t event_id) { return static_cast<uint8_t>(1u << event_id); }

uint32_t first_free_event(Pipe source, Pipe target, const char *call) {
    const uint32_t free_ids = ~allocated(source, target) & 0xffu;
    if (free_ids == 0) {
        fault(FaultKind::RuntimeFault, call,
              "all %u event ids from %s to %s are in use: release one; buffers of queues hold one each while enqueued, and from "
              "FreeTensor to AllocTensor or FreeAllEvent", kEventIds, name(source), name(target));
    }
    return static_cast<uint32_t>(__builtin_ctz(free_ids));
}

[[noreturn]] void fault_of_buffer(const char *call, Pipe source, Pipe target, uint32_t event_id) {
    fault(FaultKind::RuntimeFault, call,
          "flag %u from %s to %s is set for a buffer of a queue: in a kernel with queues event ids come from FetchEventID or AllocEventID",
          event_id, name(source), name(target));
}

// Which parts of its cache line an access touches.
uint32_t line_parts(uint64_t address, uint32_t bytes) {
    const uint64_t first = address % kScalarLineBytes;
    const uint64_t last = first + bytes - 1;
    const uint64_t up_to_last = ~0ull >> (63 - last / kLinePartBytes);
    return static_cast<uint32_t>(up_to_last & ~0ull << first / kLinePartBytes);
}

// The line of this key in a set, or one of no key in the place of the oldest.
ScalarLine &line_in(ScalarLine (&lines)[kScalarWays], uint64_t key) {
    for (ScalarLine &line : lines) {
        if (line.key == key) return line;
    }
    std::move_backward(std::begin(lines), std::end(lines) - 1, std::end(lines));
    lines[0] = {};
    return lines[0];
}

Record scalar_record(uint32_t bytes, bool write, uint16_t how) {
    Record record{};
    record.op = Op::ScalarAccess;
    record.dtype_bytes = static_cast<uint8_t>(bytes);
    record.repeats = write ? 1 : 0;
    record.flag_id = how;
    return record;
}

// Loads that follow each other overlap: one of their latencies is waited for. What else ends such a chain is told by the
// block of code (asim_count: more than addresses are computed) and by each instruction that is issued (emit).
ScalarClass class_of_access(Space space, bool write) {
    const bool follows = block().after_load;
    block().after_load = space == Space::Ub && !write;
    if (space != Space::Ub) return ScalarClass::Access;
    return write ? ScalarClass::Store : follows ? ScalarClass::Access : ScalarClass::Load;
}

// Folds accesses to the same cache lines into one record each, which is paid once and tells all the bytes touched. `how` is
// the record's flag_id.
void trace_in_line(uint64_t address, Space space, uint32_t bytes, bool write, uint16_t how) {
    Block &self = block();
    count_scalar(class_of_access(space, write), 1);
    // Stores to global memory are told one by one: every output byte must have its writer in the trace.
    // Loads past the data cache find no line there that one before them brought.
    const bool fold = space == Space::Ub || (!write && (how & kPastCache) == 0);
    const uint64_t line = address / kScalarLineBytes;
    const uint64_t key =
        line << 6 | uint64_t{how} << 3 | static_cast<uint64_t>(space) << 2 | (write ? 2 : 0) | 1;  // never 0
    if (!fold) return emit(scalar_record(bytes, write, how), {Operand{address, static_cast<uint64_t>(space), bytes, 0}});
    const uint32_t parts = line_parts(address, bytes);
    ScalarLine &known = line_in(self.scalar_lines[line % kScalarSets], key);
    if (key == known.key) return add_line_parts(known.place, parts);
    emit(scalar_record(bytes, write, how), {Operand{address, static_cast<uint64_t>(space), bytes, parts}});
    known = {key, last_operand_place()};
}

// An access that reaches into the next line is one of each.
void trace_scalar(uint64_t address, Space space, uint32_t bytes, bool write, uint16_t how) {
    const auto first = static_cast<uint32_t>(std::min<uint64_t>(bytes, kScalarLineBytes - address % kScalarLineBytes));
    trace_in_line(address, space, first, write, how);
    if (first < bytes) trace_in_line(address + first, space, bytes - first, write, how);
}

}  // namespace

void check_pipes(const char *call, Pipe source, Pipe target) {
    if (is_pipe(source) && is_pipe(target)) return;
    fault(FaultKind::RuntimeFault, call, "from pipe %u to pipe %u: expected two of the pipes S, V, M, MTE1, MTE2, MTE3 and FIX",
          static_cast<unsigned>(source), static_cast<unsigned>(target));
}

void set_flag(Pipe source, Pipe target, uint32_t event_id) {
    check_pipes("SetFlag", source, target);
    check_event_id("SetFlag", event_id);
    if (of_buffers(source, target) & bit_of(event_id)) fault_of_buffer("SetFlag", source, target, event_id);
    if (raised(source, target) & bit_of(event_id)) {
        fault(FaultKind::RuntimeFault, "SetFlag", "flag %u from %s to %s is set twice without a WaitFlag in between",
              event_id, name(source), name(target));
    }
    raised(source, target) |= bit_of(event_id);
    emit_flag(Op::SetFlag, source, target, event_id);
}

void wait_flag(Pipe source, Pipe target, uint32_t event_id) {
    check_pipes("WaitFlag", source, target);
    check_event_id("WaitFlag", event_id);
    if (of_buffers(source, target) & bit_of(event_id)) fault_of_buffer("WaitFlag", source, target, event_id);
    if (!(raised(source, target) & bit_of(event_id))) {
        fault(FaultKind::RuntimeFault, "WaitFlag",
              "flag %u from %s to %s was never set: this core would wait for ever", event_id, name(source),
              name(target));
    }
    raised(source, target) &= static_cast<uint8_t>(~bit_of(event_id));
    emit_flag(Op::WaitFlag, source, target, event_id);
}

void check_flags_awaited() {
    for (uint32_t source = 0; source < kPipeCount; ++source) {
        for (uint32_t target = 0; target < kPipeCount; ++target) {
            const uint32_t flags = block().flags_raised[source][target];
            if (flags == 0) continue;
            const uint32_t enqueued = block().buffer_events[source][target];
            if (enqueued != 0) {
                fault(FaultKind::RuntimeFault, "EnQue",
                      "a tensor is still enqueued from %s to %s when the kernel ends, and its flag %u set: DeQue it", kPipeNames[source],
                      kPipeNames[target], static_cast<uint32_t>(__builtin_ctz(enqueued)));
            }
            fault(FaultKind::RuntimeFault, "SetFlag",
                  "flag %u from %s to %s is still set when the kernel ends: SetFlag and WaitFlag come in pairs",
                  static_cast<uint32_t>(__builtin_ctz(flags)), kPipeNames[source], kPipeNames[target]);
        }
    }
}

void pipe_barrier(Pipe pipe) {
    if (pipe != Pipe::ALL) check_pipes("PipeBarrier", pipe, pipe);
    if (block().values_only > 0) return;
    emit_flag(Op::PipeBarrier, pipe, pipe, 0);
}

void set_buffer_flag(Pipe source, Pipe target, uint32_t buffer) {
    emit_flag(Op::SetFlag, source, target, kBufferFlagBase + buffer);
}

void wait_buffer_flag(Pipe source, Pipe target, uint32_t buffer) {
    emit_flag(Op::WaitFlag, source, target, kBufferFlagBase + buffer);
}

uint32_t raise_event(const char *call, Pipe source, Pipe target, uint32_t buffer) {
    const uint32_t event_id = first_free_event(source, target, call);
    if (raised(source, target) & bit_of(event_id)) {
        fault(FaultKind::RuntimeFault, call,
              "the queue takes event id %u from %s to %s, whose flag is set: in a kernel with queues event ids come from AllocEventID, "
              "or from FetchEventID if the flag is awaited before any queue is used", event_id, name(source), name(target));
    }
    allocated(source, target) |= bit_of(event_id);
    raised(source, target) |= bit_of(event_id);
    of_buffers(source, target) |= bit_of(event_id);
    set_buffer_flag(source, target, buffer);
    return event_id;
}

void await_event(Pipe source, Pipe target, uint32_t event_id, uint32_t buffer) {
    const auto others = static_cast<uint8_t>(~bit_of(event_id));
    allocated(source, target) &= others;
    raised(source, target) &= others;
    of_buffers(source, target) &= others;
    wait_buffer_flag(source, target, buffer);
}

void forget_event_ids() {
    for (auto &of_source : block().event_ids) std::fill(std::begin(of_source), std::end(of_source), uint8_t{0});
}

uint32_t fetch_event_id(Pipe source, Pipe target) {
    check_pipes("FetchEventID", source, target);
    return first_free_event(source, target, "FetchEventID");
}

uint32_t alloc_event_id(Pipe source, Pipe target) {
    check_pipes("AllocEventID", source, target);
    const uint32_t event_id = first_free_event(source, target, "AllocEventID");
    allocated(source, target) |= bit_of(event_id);
    return event_id;
}

void release_event_id(Pipe source, Pipe target, uint32_t event_id) {
    check_pipes("ReleaseEventID", source, target);
    check_event_id("ReleaseEventID", event_id);
    allocated(source, target) &= static_cast<uint8_t>(~bit_of(event_id));
}

namespace {

// What CheckLocalMemoryIA watches; instructions are checked where they are traced.
void check_watched_scalar(const char *call, uint64_t offset, uint32_t bytes, bool write) {
    if (__builtin_expect(!block().watches, 1)) return;
    for (const WatchedMemory &watched : block().watched) {
        if ((watched.kinds & (write ? 2u : 1u)) == 0 || offset >= watched.end || offset + bytes <= watched.begin) continue;
        fault(FaultKind::RuntimeFault, call, "%s unified buffer byte %llu, which CheckLocalMemoryIA watches", write ? "writes" : "reads",
              static_cast<unsigned long long>(offset));
    }
}

// A cube core has no unified buffer: what vector calls leave in the simulated one is nothing that its scalar unit could load.
void forget_on_cube_core(void *pointer, uint32_t bytes, bool write) {
    if (on_cube_core() && !write) std::memset(pointer, rerun().poison, bytes);
}

}  // namespace

void *scalar_ub(const char *call, void *pointer, uint32_t bytes, bool write) {
    const uint64_t offset = checked_ub(call, pointer, bytes);
    check_ub_alignment(call, "element", offset, bytes);
    check_watched_scalar(call, offset, bytes, write);
    trace_scalar(offset, Space::Ub, bytes, write, 0);
    forget_on_cube_core(pointer, bytes, write);
    return pointer;
}

void *native_ub(const char *call, void *pointer, uint32_t bytes, bool write) {
    trace_scalar(checked_ub(call, pointer, bytes), Space::Ub, bytes, write, kFromPointer);
    forget_on_cube_core(pointer, bytes, write);
    return pointer;
}

void *scalar_gm(const char *call, void *pointer, uint32_t bytes, bool write) {
    trace_scalar(checked_gm(call, pointer, bytes, write), Space::Gm, bytes, write, 0);
    return pointer;
}

void *scalar_gm_store(const char *call, void *pointer, const void *value, uint32_t bytes) {
    const uint64_t address = checked_gm(call, pointer, bytes, true);
    trace_scalar(address, Space::Gm, bytes, true, std::memcmp(pointer, value, bytes) == 0 ? kKeepsValue : 0);
    return pointer;
}

void *uncached_gm(const char *call, void *pointer, uint32_t bytes, bool write) {
    trace_scalar(checked_gm(call, pointer, bytes, write), Space::Gm, bytes, write, kPastCache);
    return pointer;
}

void *native_gm(const char *call, void *pointer, uint32_t bytes, bool write) {
    trace_scalar(checked_gm(call, pointer, bytes, write), Space::Gm, bytes, write, kFromPointer);
    return pointer;
}

void clean_whole_cache() {
    Record record{};
    record.op = Op::CleanCache;
    emit(record, {});
}

void clean_cache(const void *address) {
    Record record{};
    record.op = Op::CleanCache;
    const uint64_t line = checked_gm("DataCacheCleanAndInvalid", address, 1, false);
    emit(record, {Operand{line, static_cast<uint64_t>(Space::Gm), 1, 0}});
}

}  // namespace asim

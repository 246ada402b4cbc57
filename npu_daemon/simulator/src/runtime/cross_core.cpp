#include "asim/machine/cross_core.h"

#include <cstdio>

#include "asim/machine/fault.h"
#include "asim/machine/scheduler.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

void add(uint8_t &counter, uint32_t flag) {
    if (++counter > kCrossCoreLimit) {
        fault(FaultKind::RuntimeFault, "CrossCoreSetFlag", "flag %u is set %u times without a CrossCoreWaitFlag: the counter holds up to %u",
              flag, counter, kCrossCoreLimit);
    }
}

void emit_set(CrossCoreMode mode, Pipe pipe, uint32_t flag, uint32_t position) {
    Record record{};
    record.op = Op::CrossCoreSet;
    record.source_pipe = record.target_pipe = static_cast<uint8_t>(pipe);
    record.flag_id = static_cast<uint16_t>(flag);
    record.repeats = static_cast<uint32_t>(mode);
    record.burst_bytes = position;
    emit(record, {});
}

uint32_t position_in_group(const Block &core) { return core.trace_index % launch_shape().composition.cores(); }

// Those that meet the running block in `mode`, itself included, are all there: nobody waits for them any more.
template <typename Meets>
bool complete(uint32_t first, uint32_t last, uint32_t flag, const Meets &meets) {
    Block *blocks = launch_blocks();
    for (uint32_t i = first; i < last; ++i) {
        if (meets(blocks[i]) && blocks[i].cross_core_sets[flag] == 0) return false;
    }
    for (uint32_t i = first; i < last; ++i) {
        if (meets(blocks[i])) --blocks[i].cross_core_sets[flag];
    }
    return true;
}

template <typename Receives>
void raise(uint32_t first, uint32_t last, uint32_t flag, const Receives &receives) {
    Block *blocks = launch_blocks();
    for (uint32_t i = first; i < last; ++i) {
        if (receives(blocks[i])) add(blocks[i].cross_core_flags[flag], flag);
    }
}

void meet(CrossCoreMode mode, uint32_t flag) {
    const LaunchShape &shape = launch_shape();
    const Block &self = block();
    const uint32_t cores = shape.composition.cores();
    const uint32_t first = mode == CrossCoreMode::AllOfKind ? 0 : self.group * cores;
    const uint32_t last = mode == CrossCoreMode::AllOfKind ? shape.group_count * cores : first + cores;
    const auto same_kind = [&](const Block &other) { return other.kind == self.kind; };
    const auto receives = [&](const Block &other) { return same_kind(other) != (mode == CrossCoreMode::Group); };
    if (complete(first, last, flag, same_kind)) raise(first, last, flag, receives);
}

}  // namespace

void cross_core_set(uint32_t mode, Pipe pipe, uint32_t flag) {
    const auto which = static_cast<CrossCoreMode>(mode);
    flag %= kKernelCrossCoreFlags;  // the lowest four bits count, as documented
    if (which == CrossCoreMode::AllOfKind) require_residency("CrossCoreSetFlag");
    emit_set(which, pipe, flag, 0);
    add(block().cross_core_sets[flag], flag);
    meet(which, flag);
}

void direct_set(Pipe pipe, Block &target, uint32_t flag) {
    emit_set(CrossCoreMode::Direct, pipe, flag, position_in_group(target));
    add(target.cross_core_flags[flag], flag);
}

void cross_core_wait(uint32_t flag) {
    uint8_t &counter = block().cross_core_flags[flag % kCrossCoreFlags];
    char what[64];
    snprintf(what, sizeof what, "flag %u, which not all cores have set", flag);
    if (counter == 0) wait_until("CrossCoreWaitFlag", what, [&counter] { return counter > 0; });
    --counter;
    Record record{};
    record.op = Op::CrossCoreWait;
    record.flag_id = static_cast<uint16_t>(flag % kCrossCoreFlags);
    emit(record, {});
}

}  // namespace asim

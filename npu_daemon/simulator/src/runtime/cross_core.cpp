#include "asim/machine/cross_core.h"

#include <cstdio>

#include "asim/check/check.h"
#include "asim/machine/buffer_flags.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
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

// Modes 1 and 2 are for the cores of a group: the kernel has to be of a type that has several.
void require_group(uint32_t mode) {
    const Composition &composition = launch_shape().composition;
    if (composition.cores() > 1) return;
    fault(FaultKind::RuntimeFault, "CrossCoreSetFlag", "mode %u is for the cores of one group, and each group of this launch has one core: "
          "SyncAll or mode 0 is for all cores", mode);
}

template <typename Receives>
void raise(uint32_t first, uint32_t last, uint32_t flag, const Receives &receives) {
    Block *blocks = launch_blocks();
    for (uint32_t i = first; i < last; ++i) {
        if (receives(blocks[i])) add(blocks[i].cross_core_flags[flag], flag);
    }
}

// Blocks that a set concerns: those of its own kind meet, those that receive it get the flag.
struct Concerned {
    explicit Concerned(CrossCoreMode mode)
        : self(block()), to_others(mode == CrossCoreMode::Group),
          first(mode == CrossCoreMode::AllOfKind ? 0 : self.group * launch_shape().composition.cores()),
          last(mode == CrossCoreMode::AllOfKind ? launch_shape().group_count * launch_shape().composition.cores()
                                                : first + launch_shape().composition.cores()) {}
    bool meets(const Block &other) const { return other.kind == self.kind; }
    bool receives(const Block &other) const { return meets(other) != to_others; }

    const Block &self;
    bool to_others;
    uint32_t first, last;
};

void meet(const Concerned &concerned, uint32_t flag) {
    const auto meets = [&](const Block &other) { return concerned.meets(other); };
    if (!complete(concerned.first, concerned.last, flag, meets)) return;
    raise(concerned.first, concerned.last, flag, [&](const Block &other) { return concerned.receives(other); });
}

// Cores run one after another here: a full counter is for those that are to wait for it to go on first.
void await_room(const Concerned &concerned, uint32_t flag) {
    const auto has_room = [&] {
        if (concerned.self.cross_core_sets[flag] >= kCrossCoreLimit) return false;
        for (uint32_t i = concerned.first; i < concerned.last; ++i) {
            const Block &other = launch_blocks()[i];
            if (concerned.receives(other) && other.cross_core_flags[flag] >= kCrossCoreLimit) return false;
        }
        return true;
    };
    if (has_room()) return;
    char what[96];
    snprintf(what, sizeof what, "a CrossCoreWaitFlag of flag %u, which was set %u times, as often as it can be", flag, kCrossCoreLimit);
    wait_until("CrossCoreSetFlag", what, has_room);
}

}  // namespace

void cross_core_set(uint32_t mode, Pipe pipe, uint32_t flag) {
    check_pipes("CrossCoreSetFlag", pipe, pipe);
    if (mode > static_cast<uint32_t>(CrossCoreMode::Group)) {
        fault(FaultKind::RuntimeFault, "CrossCoreSetFlag", "mode %u does not exist: 0 is for all cores of a kind, 1 for the vector cores of a group, 2 for its "
              "cube and vector cores", mode);
    }
    const auto which = static_cast<CrossCoreMode>(mode);
    flag %= kKernelCrossCoreFlags;  // the lowest four bits count, as documented
    if (which == CrossCoreMode::AllOfKind) require_residency("CrossCoreSetFlag");
    if (which != CrossCoreMode::AllOfKind) require_group(mode);
    const Concerned concerned(which);
    await_room(concerned, flag);
    emit_set(which, pipe, flag, 0);
    add(block().cross_core_sets[flag], flag);
    meet(concerned, flag);
}

void direct_set(Pipe pipe, Block &target, uint32_t flag) {
    emit_set(CrossCoreMode::Direct, pipe, flag, position_in_group(target));
    add(target.cross_core_flags[flag], flag);
}

void check_sync_all_flags(bool all_kinds) {
    // Those of cube cores, of vector cores for cube cores, of both, and of vector cores (asc-devkit: CrossCoreSetFlag, 11 to 14).
    constexpr uint32_t kCubes = 11, kVectorsToCubes = 12, kCubesToVectors = 13, kVectors = 14;
    const Block &self = block();
    const auto check = [&self](uint32_t flag) {
        if (self.cross_core_flags[flag] + self.cross_core_sets[flag] == 0) return;
        fault(FaultKind::RuntimeFault, "SyncAll", "flag %u between cores is set and not yet waited for, and SyncAll uses it, too: take one below %u",
              flag, kCubes);
    };
    check(on_cube_core() ? kCubes : kVectors);
    if (all_kinds) check(on_cube_core() ? kVectorsToCubes : kCubesToVectors);
}

void check_cross_core_flags_awaited() {
    const Block *blocks = launch_blocks();
    const LaunchShape &shape = launch_shape();
    for (uint32_t core = 0; core < shape.group_count * shape.composition.cores(); ++core) {
        const Block &self = blocks[core];
        const char *kind = self.kind == CoreKind::Cube ? "cube" : "vector";
        for (uint32_t flag = 0; flag < kKernelCrossCoreFlags; ++flag) {
            if (self.cross_core_flags[flag] > 0) {
                fault(FaultKind::RuntimeFault, "CrossCoreSetFlag",
                      "flag %u is still set for %s core %u when the kernel ends, %u times: each set needs its CrossCoreWaitFlag", flag, kind,
                      self.index, self.cross_core_flags[flag]);
            }
            if (self.cross_core_sets[flag] > 0) {
                fault(FaultKind::RuntimeFault, "CrossCoreSetFlag",
                      "%s core %u has set flag %u when the kernel ends, and not all cores that should meet it there have", kind, self.index, flag);
            }
        }
    }
}

void sync_by_signals(const int32_t *signals, const uint8_t *work, uint32_t used_cores) {
    if (on_cube_core()) return;
    const uint32_t cores = block().count * block().sub_count;
    if (used_cores != 0 && used_cores != cores) {
        fault(FaultKind::Unsupported, "SyncAll", "a meeting of %u of the %u cores is not simulated", used_cores, cores);
    }
    checked_ub("SyncAll", work, uint64_t{cores} * kUbBlockBytes);
    checked_gm("SyncAll", const_cast<int32_t *>(signals), uint64_t{cores} * kUbBlockBytes, true);
    for (uint32_t core = 0; core < cores; ++core) {
        const int32_t signal = signals[core * kUbBlockBytes / sizeof(int32_t)];
        if (signal == 0) continue;
        fault(FaultKind::RuntimeFault, "SyncAll", "the signal of core %u is %d: clear 32 bytes for each core in gmWorkspace first", core, signal);
    }
    sync_all_blocks(false);
}

void cross_core_wait(uint32_t flag) { await_cross_core(flag % kKernelCrossCoreFlags); }

void await_cross_core(uint32_t flag) {
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

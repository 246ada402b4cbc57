// Runs the blocks of a launch as fibers, one at a time and in a fixed order.
#pragma once
#include <cstdint>
#include <functional>

#include "asim/machine/block.h"

namespace asim {

struct LaunchShape {
    uint32_t group_count = 1;       // block dim
    Composition composition;        // cores of a group
    uint32_t resident_groups = 1;   // groups that run at once: meetings of all cores need all of them
    uint32_t ub_bytes = 0;
    uint32_t memory_bytes[kSpaceCount] = {};    // of a cube core
};

// Calls `entry` once per block. A block runs until it ends or waits for others.
void run_blocks(const LaunchShape &shape, const std::function<void()> &entry);

// Parks the running block until `ready`, which others must bring about; `what` completes "waits for ...".
void wait_until(const char *call, const char *what, const std::function<bool()> &ready);

// A block of the running one's group, or null when the launch has no such core.
Block *group_block(CoreKind kind, uint32_t sub_index);

// Does `work` in the name of another block: on its memories and flags, and in its trace.
void run_as(Block &other, const std::function<void()> &work);

// All blocks of the launch, and its shape.
Block *launch_blocks();
const LaunchShape &launch_shape();

// Ends the run when not all groups are resident, for calls that need them all.
void require_residency(const char *call);

}  // namespace asim

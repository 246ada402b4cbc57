// Runs the blocks of a launch as fibers, one at a time and in a fixed order.
#pragma once
#include <cstdint>
#include <functional>

namespace asim {

struct LaunchShape {
    uint32_t block_count = 1;
    uint32_t core_count = 1;        // blocks that can be resident at once: SyncAll needs all of them
    uint32_t ub_bytes = 0;
};

// Calls `entry` once per block. A block runs until it ends or waits in SyncAll.
void run_blocks(const LaunchShape &shape, const std::function<void()> &entry);

}  // namespace asim

// Prices a whole launch: blocks on cores, cores on shared memory, in one global order of time.
#pragma once
#include <vector>

#include "asim/timing/chip.h"
#include "asim/timing/core.h"
#include "asim/timing/trace_reader.h"

namespace asim {

struct Price {
    double kernel_cycles = 0;           // from the first block's start to the last block's end
    double task_us = 0;                 // with launch
    uint32_t blocks = 0;
    Composition composition;
    std::vector<CoreCounters> cores;    // of the cores that ran blocks, group by group
};

// `l2` is what the cache holds when the launch begins, and then when it ends. Throws std::runtime_error when the trace is
// malformed or its blocks wait for each other for ever. `timeline` is told what each pipe does, a core by its place in
// Price::cores, and `coverage` which bytes instructions touch.
Price price_trace(const Trace &trace, const Chip &chip, Timeline &timeline, Coverage &coverage, std::vector<CachedLine> &l2);

}  // namespace asim

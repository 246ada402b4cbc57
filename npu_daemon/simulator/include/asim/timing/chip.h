// Figures of one chip, read from the flat file that the trusted side makes of chips/*.toml.
#pragma once
#include <string>

#include "asim/trace/record.h"

namespace asim {

constexpr uint32_t kListedBytes = 9;    // element widths from 0 to 8

// Cycles are core cycles; bytes per cycle are per core unless named shared.
struct Chip {
    double clock_mhz = 0;
    double aiv_cores = 0;
    double aic_cores = 0;
    double launch_us = 0;
    double launch_per_block_us = 0;     // of a vector core
    double launch_per_cube_us = 0;
    double block_stagger_us = 0;
    double block_start_us = 0;
    double block_fetch_us = 0;
    double block_restart_us = 0;
    double scalar_integer_cycles = 0;   // one of each class of scalar work
    double scalar_multiply_cycles = 0;
    double scalar_divide_cycles = 0;
    double scalar_float_cycles = 0;
    double scalar_float_divide_cycles = 0;
    double scalar_branch_cycles = 0;
    double scalar_call_cycles = 0;
    double scalar_convert_cycles = 0;
    double scalar_stack_cycles = 0;
    double scalar_block_cycles = 0;
    double scalar_access_cycles = 0;
    double scalar_load_cycles = 0;      // of the unified buffer, with the wait for its value
    double scalar_store_cycles = 0;     // to the unified buffer
    double scalar_queue_cycles = 0;     // a load or store of what a queue knows, by the library
    double code_line_cycles = 0;        // of a line of code that is not in the instruction cache, once its unit is on its way
    double code_unit_cycles = 0;        // of a unit of code that is not there: the round trip
    double code_turn_cycles = 0;        // beside that, for each core that fetches the same unit at the same time
    double icache_bytes = 0;            // instruction cache of a vector core
    double scalar_gm_miss_cycles = 0;    // of an access to a line of global memory that is not in the data cache
    double scalar_gm_stream_cycles = 0;  // the same where the line before is in it
    double issue_cycles = 0;
    double queue_depth = 0;
    double flag_cycles = 0;
    double barrier_cycles = 0;
    double sync_all_cycles = 0;
    double vector_start_cycles = 0;             // from the start of an instruction to its results, beside its repeats
    double transcendental_start_cycles = 0;     // likewise of functions and divisions
    double vector_issue_cycles = 0;             // of that, what an instruction that needs no results of others waits for
    double simple_16bit = 0, simple_32bit = 0;                  // elements per cycle
    double half_rate_16bit = 0, half_rate_32bit = 0;
    double transcendental_16bit = 0, transcendental_32bit = 0;
    double divide_16bit = 0, divide_32bit = 0;
    double block_reduce_16bit = 0, block_reduce_32bit = 0;
    double repeat_reduce_16bit = 0, repeat_reduce_32bit = 0;
    double gather_16bit = 0, gather_32bit = 0;
    double gather_block_16bit = 0, gather_block_32bit = 0;
    double sort_16bit = 0, sort_32bit = 0;
    double hbm_gb_per_s = 0;  // shared by all cores; 10^9 bytes
    double l2_gb_per_s = 0;
    double hbm_core_bytes_per_cycle = 0;
    double l2_core_bytes_per_cycle = 0;
    double write_core_bytes_per_cycle = 0;
    double write_buffer_bytes = 0;
    double write_yield = 0;             // share of their speed that writes lose to reads that take all of HBM
    double mte2_latency_cycles = 0;
    double mte2_l2_latency_cycles = 0;
    double mte3_latency_cycles = 0;
    double copy_start_cycles = 0;
    double burst_cycles = 0;
    double odd_burst_cycles = 0;
    double off_grid_factor = 0;
    double same_line_cycles = 0;
    double hbm_write_factor = 0;
    double hbm_request_bytes = 0;       // the least that HBM fetches or writes for a burst past the cache
    double mmad_start_cycles = 0;
    double mmad_latency_cycles = 0;
    double mmad_depth_8bit = 0, mmad_depth_16bit = 0, mmad_depth_32bit = 0, mmad_depth_hf32 = 0;
    double l0_copy_start_cycles = 0;
    double l1_l0a_bytes_per_cycle = 0;
    double l1_l0b_bytes_per_cycle = 0;
    double l1_l0_latency_cycles = 0;
    double l1_table_bytes_per_cycle = 0;
    double l1_table_latency_cycles = 0;
    double l1_fill_bytes_per_cycle = 0;
    double l0c_l1_bytes_per_cycle = 0;
    double fixpipe_core_bytes_per_cycle = 0;
    double fixpipe_gm_bytes_per_cycle = 0;
    double fixpipe_latency_cycles = 0;
    double cube_hbm_core_bytes_per_cycle = 0;
    double cube_l2_core_bytes_per_cycle = 0;
    double cube_row_cycles = 0;
    double l2_bytes = 0;
    double l2_line_bytes = 0;
    double hbm_reached_share = 0;   // of what HBM could give, what all vector cores together get
    double l2_usable_share = 0;     // of its bytes, what one kernel's data keep
    double l2_dirty_bytes = 0;      // results of other kernels in it, which are written to HBM as this one takes their lines
    double launches = 0;            // of the same trace, one after another; the last one is priced

    // Shared by all cores, and computed from the figures above: what HBM could give; what all vector cores together get of it,
    // each waiting its turn; and how long a request waits beside its own time when others take half of what HBM could give.
    double hbm_peak_bytes_per_cycle = 0;
    double hbm_shared_bytes_per_cycle = 0;
    double hbm_waiting = 0;
    double l2_shared_bytes_per_cycle = 0;
    double scalar_cycles[kScalarClassCount] = {};   // one of each class of scalar work, in their order; Fetched, the last, is priced by lines

    double listed_repeat_cycles[kCostCount][kListedBytes] = {};     // what repeat_cycles returns, by cost group and element width

    // Cycles of a repeat of a cost group for the given element width, without bank conflicts.
    double repeat_cycles(Cost cost, uint32_t element_bytes) const {
        const auto group = static_cast<size_t>(cost);
        return element_bytes < kListedBytes ? listed_repeat_cycles[group][element_bytes] : computed_repeat_cycles(cost, element_bytes);
    }
    double computed_repeat_cycles(Cost cost, uint32_t element_bytes) const;
    double elements_per_cycle(Cost cost, uint32_t element_bytes) const;
    // Cycles from the start of an instruction to its results, beside its repeats.
    double start_cycles(Cost cost) const;

};

// Lines `name value`; throws std::runtime_error when a figure is missing, unknown or not positive.
Chip load_chip(const std::string &path);

}  // namespace asim

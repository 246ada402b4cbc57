#include "asim/timing/chip.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>

namespace asim {

namespace {

constexpr double kLeastLineBytes = 64;

std::map<std::string, double Chip::*> figures() {
    return {
        {"clock_mhz", &Chip::clock_mhz},
        {"aiv_cores", &Chip::aiv_cores},
        {"aic_cores", &Chip::aic_cores},
        {"mmad_start_cycles", &Chip::mmad_start_cycles},
        {"mmad_latency_cycles", &Chip::mmad_latency_cycles},
        {"mmad_depth_8bit", &Chip::mmad_depth_8bit},
        {"mmad_depth_16bit", &Chip::mmad_depth_16bit},
        {"mmad_depth_32bit", &Chip::mmad_depth_32bit},
        {"mmad_depth_hf32", &Chip::mmad_depth_hf32},
        {"l0_copy_start_cycles", &Chip::l0_copy_start_cycles},
        {"l1_l0a_bytes_per_cycle", &Chip::l1_l0a_bytes_per_cycle},
        {"l1_l0b_bytes_per_cycle", &Chip::l1_l0b_bytes_per_cycle},
        {"l1_l0_latency_cycles", &Chip::l1_l0_latency_cycles},
        {"l1_table_bytes_per_cycle", &Chip::l1_table_bytes_per_cycle},
        {"l1_table_latency_cycles", &Chip::l1_table_latency_cycles},
        {"l1_fill_bytes_per_cycle", &Chip::l1_fill_bytes_per_cycle},
        {"l0c_l1_bytes_per_cycle", &Chip::l0c_l1_bytes_per_cycle},
        {"fixpipe_core_bytes_per_cycle", &Chip::fixpipe_core_bytes_per_cycle},
        {"fixpipe_gm_bytes_per_cycle", &Chip::fixpipe_gm_bytes_per_cycle},
        {"fixpipe_latency_cycles", &Chip::fixpipe_latency_cycles},
        {"cube_l2_core_bytes_per_cycle", &Chip::cube_l2_core_bytes_per_cycle},
        {"launch_us", &Chip::launch_us},
        {"launch_per_cube_us", &Chip::launch_per_cube_us},
        {"cube_hbm_core_bytes_per_cycle", &Chip::cube_hbm_core_bytes_per_cycle},
        {"cube_row_cycles", &Chip::cube_row_cycles},
        {"launch_per_block_us", &Chip::launch_per_block_us},
        {"block_stagger_us", &Chip::block_stagger_us},
        {"block_start_us", &Chip::block_start_us},
        {"block_fetch_us", &Chip::block_fetch_us},
        {"block_restart_us", &Chip::block_restart_us},
        {"scalar_integer_cycles", &Chip::scalar_integer_cycles},
        {"scalar_multiply_cycles", &Chip::scalar_multiply_cycles},
        {"scalar_divide_cycles", &Chip::scalar_divide_cycles},
        {"scalar_float_cycles", &Chip::scalar_float_cycles},
        {"scalar_float_divide_cycles", &Chip::scalar_float_divide_cycles},
        {"scalar_branch_cycles", &Chip::scalar_branch_cycles},
        {"scalar_call_cycles", &Chip::scalar_call_cycles},
        {"scalar_convert_cycles", &Chip::scalar_convert_cycles},
        {"scalar_stack_cycles", &Chip::scalar_stack_cycles},
        {"scalar_block_cycles", &Chip::scalar_block_cycles},
        {"scalar_access_cycles", &Chip::scalar_access_cycles},
        {"scalar_load_cycles", &Chip::scalar_load_cycles},
        {"scalar_store_cycles", &Chip::scalar_store_cycles},
        {"scalar_queue_cycles", &Chip::scalar_queue_cycles},
        {"code_line_cycles", &Chip::code_line_cycles},
        {"code_unit_cycles", &Chip::code_unit_cycles},
        {"code_turn_cycles", &Chip::code_turn_cycles},
        {"icache_bytes", &Chip::icache_bytes},
        {"scalar_gm_miss_cycles", &Chip::scalar_gm_miss_cycles},
        {"scalar_gm_stream_cycles", &Chip::scalar_gm_stream_cycles},
        {"issue_cycles", &Chip::issue_cycles},
        {"queue_depth", &Chip::queue_depth},
        {"flag_cycles", &Chip::flag_cycles},
        {"barrier_cycles", &Chip::barrier_cycles},
        {"sync_all_cycles", &Chip::sync_all_cycles},
        {"vector_start_cycles", &Chip::vector_start_cycles},
        {"transcendental_start_cycles", &Chip::transcendental_start_cycles},
        {"vector_issue_cycles", &Chip::vector_issue_cycles},
        {"divide_16bit", &Chip::divide_16bit},
        {"divide_32bit", &Chip::divide_32bit},
        {"simple_16bit", &Chip::simple_16bit},
        {"simple_32bit", &Chip::simple_32bit},
        {"half_rate_16bit", &Chip::half_rate_16bit},
        {"half_rate_32bit", &Chip::half_rate_32bit},
        {"transcendental_16bit", &Chip::transcendental_16bit},
        {"transcendental_32bit", &Chip::transcendental_32bit},
        {"block_reduce_16bit", &Chip::block_reduce_16bit},
        {"block_reduce_32bit", &Chip::block_reduce_32bit},
        {"repeat_reduce_16bit", &Chip::repeat_reduce_16bit},
        {"repeat_reduce_32bit", &Chip::repeat_reduce_32bit},
        {"gather_16bit", &Chip::gather_16bit},
        {"gather_32bit", &Chip::gather_32bit},
        {"gather_block_16bit", &Chip::gather_block_16bit},
        {"gather_block_32bit", &Chip::gather_block_32bit},
        {"sort_16bit", &Chip::sort_16bit},
        {"sort_32bit", &Chip::sort_32bit},
        {"hbm_gb_per_s", &Chip::hbm_gb_per_s},
        {"l2_gb_per_s", &Chip::l2_gb_per_s},
        {"hbm_core_bytes_per_cycle", &Chip::hbm_core_bytes_per_cycle},
        {"l2_core_bytes_per_cycle", &Chip::l2_core_bytes_per_cycle},
        {"write_core_bytes_per_cycle", &Chip::write_core_bytes_per_cycle},
        {"write_buffer_bytes", &Chip::write_buffer_bytes},
        {"write_yield", &Chip::write_yield},
        {"mte2_latency_cycles", &Chip::mte2_latency_cycles},
        {"mte2_l2_latency_cycles", &Chip::mte2_l2_latency_cycles},
        {"mte3_latency_cycles", &Chip::mte3_latency_cycles},
        {"copy_start_cycles", &Chip::copy_start_cycles},
        {"same_line_cycles", &Chip::same_line_cycles},
        {"hbm_write_factor", &Chip::hbm_write_factor},
        {"hbm_request_bytes", &Chip::hbm_request_bytes},
        {"off_grid_factor", &Chip::off_grid_factor},
        {"burst_cycles", &Chip::burst_cycles},
        {"odd_burst_cycles", &Chip::odd_burst_cycles},
        {"l2_bytes", &Chip::l2_bytes},
        {"l2_line_bytes", &Chip::l2_line_bytes},
        {"hbm_reached_share", &Chip::hbm_reached_share},
        {"l2_usable_share", &Chip::l2_usable_share},
        {"l2_dirty_bytes", &Chip::l2_dirty_bytes},
        {"launches", &Chip::launches},
    };
}

bool power_of_two(double value) {
    int exponent;
    return std::frexp(value, &exponent) == 0.5;
}

void compute_shared_rates(Chip &chip) {
    chip.hbm_shared_bytes_per_cycle = chip.hbm_gb_per_s * 1000 / chip.clock_mhz;
    chip.l2_shared_bytes_per_cycle = chip.l2_gb_per_s * 1000 / chip.clock_mhz;
    chip.hbm_peak_bytes_per_cycle = chip.hbm_shared_bytes_per_cycle / chip.hbm_reached_share;
    const double speed = std::min(1.0, chip.hbm_shared_bytes_per_cycle / (chip.aiv_cores * chip.hbm_core_bytes_per_cycle));
    chip.hbm_waiting = 1 - (1 - (1 - speed) / chip.hbm_reached_share) / speed;
}

void list_scalar_cycles(Chip &chip) {
    const double by_class[kScalarClassCount] = {
        chip.scalar_integer_cycles, chip.scalar_multiply_cycles, chip.scalar_divide_cycles, chip.scalar_float_cycles,
        chip.scalar_float_divide_cycles, chip.scalar_branch_cycles, chip.scalar_call_cycles, chip.scalar_convert_cycles,
        chip.scalar_stack_cycles, chip.scalar_block_cycles, chip.scalar_access_cycles, chip.scalar_load_cycles,
        chip.scalar_store_cycles, chip.scalar_queue_cycles, 0};
    std::copy_n(by_class, kScalarClassCount, chip.scalar_cycles);
}

void list_repeat_cycles(Chip &chip) {
    for (uint32_t cost = 0; cost < kCostCount; ++cost) {
        for (uint32_t bytes = 0; bytes < kListedBytes; ++bytes) {
            chip.listed_repeat_cycles[cost][bytes] = chip.computed_repeat_cycles(static_cast<Cost>(cost), bytes);
        }
    }
}

}  // namespace

double Chip::computed_repeat_cycles(Cost cost, uint32_t element_bytes) const {
    constexpr double kRepeatBytes = 256;
    return kRepeatBytes / std::max<uint32_t>(element_bytes, 1) / elements_per_cycle(cost, element_bytes);
}

double Chip::elements_per_cycle(Cost cost, uint32_t element_bytes) const {
    const bool wide = element_bytes >= 4;
    const double narrow_scale = element_bytes == 1 ? 2.0 : 1.0;  // twice as many elements in a 256 B repeat
    switch (cost) {
        case Cost::HalfRate: return wide ? half_rate_32bit : half_rate_16bit * narrow_scale;
        case Cost::Transcendental: return wide ? transcendental_32bit : transcendental_16bit;
        case Cost::Divide: return wide ? divide_32bit : divide_16bit;
        case Cost::BlockReduce: return wide ? block_reduce_32bit : block_reduce_16bit;
        case Cost::RepeatReduce: return wide ? repeat_reduce_32bit : repeat_reduce_16bit;
        case Cost::Gather: return wide ? gather_32bit : gather_16bit;
        case Cost::GatherBlock: return wide ? gather_block_32bit : gather_block_16bit;
        case Cost::Sort: return wide ? sort_32bit : sort_16bit;
        default: return (wide ? simple_32bit : simple_16bit * narrow_scale) / (element_bytes == 8 ? 2.0 : 1.0);
    }
}

double Chip::start_cycles(Cost cost) const {
    return cost == Cost::Transcendental || cost == Cost::Divide ? transcendental_start_cycles : vector_start_cycles;
}

Chip load_chip(const std::string &path) {
    Chip chip;
    auto missing = figures();
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read chip " + path);
    std::string name;
    for (double value; file >> name >> value;) {
        const auto figure = missing.find(name);
        if (figure == missing.end() || !(value > 0)) throw std::runtime_error("bad or repeated chip figure '" + name + "'");
        chip.*(figure->second) = value;
        missing.erase(figure);
    }
    if (!missing.empty()) throw std::runtime_error("chip figure '" + missing.begin()->first + "' is missing");
    const bool line = power_of_two(chip.l2_line_bytes) && chip.l2_line_bytes >= kLeastLineBytes && chip.l2_line_bytes <= chip.l2_bytes;
    if (!line) throw std::runtime_error("chip figure 'l2_line_bytes' must be a power of two, from 64 to l2_bytes");
    compute_shared_rates(chip);
    list_scalar_cycles(chip);
    list_repeat_cycles(chip);
    return chip;
}

}  // namespace asim

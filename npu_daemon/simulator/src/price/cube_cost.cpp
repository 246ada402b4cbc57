#include "asim/timing/cube_cost.h"

#include <algorithm>

namespace asim {

namespace {

// 16 x 16 x k elements a cycle, k by element type (docs/hardware.md section 5).
double fractal_depth(const Record &record, const Chip &chip) {
    if ((record.flag_id & kMmadHf32) != 0) return chip.mmad_depth_hf32;
    switch (record.dtype_bytes) {
        case 1: return chip.mmad_depth_8bit;
        case 2: return chip.mmad_depth_16bit;
        default: return chip.mmad_depth_32bit;
    }
}

double mmad_cycles(const Record &record, const Chip &chip) {
    const double steps = record.burst_bytes / (record.dtype_bytes * fractal_depth(record, chip));
    return chip.mmad_start_cycles + record.repeats * std::max(1.0, steps);
}

InstructionTime copied(double bytes, double bytes_per_cycle, double latency_cycles, const Chip &chip) {
    return {chip.l0_copy_start_cycles + bytes / bytes_per_cycle, latency_cycles};
}

}  // namespace

InstructionTime cube_time(const Entry &entry, const Chip &chip) {
    const Record &record = entry.record;
    const double bytes = static_cast<double>(record.repeats) * record.burst_bytes;
    switch (record.op) {
        case Op::Mmad: return {mmad_cycles(record, chip), chip.mmad_latency_cycles};
        case Op::LoadL0A: return copied(bytes, chip.l1_l0a_bytes_per_cycle, chip.l1_l0_latency_cycles, chip);
        case Op::LoadL0B: return copied(bytes, chip.l1_l0b_bytes_per_cycle, chip.l1_l0_latency_cycles, chip);
        case Op::CopyL0cToL1: return copied(bytes, chip.l0c_l1_bytes_per_cycle, chip.l1_table_latency_cycles, chip);
        case Op::CopyL1ToBias:
        case Op::CopyL1ToFixpipe: return copied(bytes, chip.l1_table_bytes_per_cycle, chip.l1_table_latency_cycles, chip);
        default: return copied(bytes, chip.l1_fill_bytes_per_cycle, 0, chip);
    }
}

double unit_flag_cycles(const Record &record, const Chip &chip) {
    const bool from_l0c = record.op == Op::CopyL0cToGm || record.op == Op::CopyL0cToL1;
    if (!from_l0c || (record.flag_id & kUnitFlag) == 0) return 0;
    return static_cast<double>(record.repeats) * record.burst_bytes / chip.fixpipe_core_bytes_per_cycle;
}

}  // namespace asim

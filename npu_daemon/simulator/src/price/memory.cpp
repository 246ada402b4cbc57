#include "asim/timing/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace asim {

Memory::Memory(const Chip &chip)
    : chip_(chip), cache_(static_cast<uint64_t>(chip.l2_bytes), static_cast<uint64_t>(chip.l2_line_bytes)) {}

CacheTraffic Memory::traffic_of(const Entry &entry, const Operand &gm, bool write) {
    const uint32_t burst = entry.record.burst_bytes;
    const bool contiguous = entry.record.repeats <= 1 || gm.stride == burst;
    const uint64_t bursts = contiguous ? 1 : entry.record.repeats;
    const uint64_t bytes = contiguous ? uint64_t{entry.record.repeats} * burst : burst;
    const auto unit = static_cast<uint64_t>(chip_.request_bytes);
    CacheTraffic total;
    for (uint64_t i = 0; i < bursts && bytes > 0; ++i) {
        const uint64_t address = gm.address + i * gm.stride;
        const uint64_t requested = (address + bytes + unit - 1) / unit * unit - address / unit * unit;
        const CacheTraffic one = cache_.access(address, bytes, write, static_cast<double>(requested) / static_cast<double>(bytes));
        total.hit_bytes += one.hit_bytes;
        total.miss_bytes += one.miss_bytes;
        total.written_back_bytes += one.written_back_bytes;
    }
    return total;
}

Demand Memory::demand_of(const Entry &entry, bool write) {
    const Operand &gm = entry.operands[write ? 0 : 1];
    const CacheTraffic traffic = traffic_of(entry, gm, write);
    const bool aligned = gm.address % static_cast<uint64_t>(chip_.aligned_bytes) == 0 &&
                         (entry.record.repeats <= 1 || gm.stride % static_cast<uint64_t>(chip_.aligned_bytes) == 0);
    const double core_factor = aligned ? 1.0 : chip_.unaligned_core_factor;
    const double shared_factor = aligned ? 1.0 : chip_.unaligned_shared_factor;
    const double all_bytes = traffic.hit_bytes + traffic.miss_bytes;
    double core_cycles, shared_cycles;
    if (write) {  // writes land in L2; only evicted dirty lines reach HBM
        core_cycles = all_bytes / chip_.write_core_bytes_per_cycle;
        shared_cycles = all_bytes / chip_.l2_shared_bytes_per_cycle;
    } else {
        core_cycles = traffic.miss_bytes / chip_.hbm_core_bytes_per_cycle + traffic.hit_bytes / chip_.l2_core_bytes_per_cycle;
        shared_cycles = traffic.miss_bytes / chip_.hbm_shared_bytes_per_cycle + traffic.hit_bytes / chip_.l2_shared_bytes_per_cycle;
    }
    shared_cycles = shared_cycles * shared_factor + traffic.written_back_bytes / chip_.hbm_shared_bytes_per_cycle;
    Demand demand;
    demand.solo_cycles = std::max({chip_.copy_min_cycles, core_cycles * core_factor, entry.record.repeats * chip_.burst_cycles});
    demand.shared_per_cycle = shared_cycles / demand.solo_cycles;
    demand.latency_cycles = write ? chip_.mte3_latency_cycles
                            : traffic.miss_bytes > 0 ? chip_.mte2_latency_cycles
                                                     : chip_.mte2_l2_latency_cycles;
    return demand;
}

void Memory::advance(double now) {
    progress_ += (now - now_) * speed();
    now_ = now;
}

void Memory::start(double now, const Demand &demand, uint64_t owner) {
    advance(now);
    transfers_.push({progress_ + demand.solo_cycles, demand.shared_per_cycle, owner});
    load_ += demand.shared_per_cycle;
}

double Memory::next_finish() const {
    if (transfers_.empty()) return std::numeric_limits<double>::infinity();
    return now_ + std::max(0.0, transfers_.top().finish_progress - progress_) / speed();
}

uint64_t Memory::finish_next() {
    advance(next_finish());
    const Transfer done = transfers_.top();
    transfers_.pop();
    load_ = transfers_.empty() ? 0.0 : load_ - done.shared_per_cycle;
    return done.owner;
}

}  // namespace asim

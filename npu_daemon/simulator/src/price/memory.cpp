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
    const bool bypasses = entry.record.flag_id == kBypassesL2;
    CacheTraffic total;
    for (uint64_t i = 0; i < bursts && bytes > 0; ++i) {
        const uint64_t address = gm.address + i * gm.stride;
        const uint64_t requested = (address + bytes + unit - 1) / unit * unit - address / unit * unit;
        const double factor = static_cast<double>(requested) / static_cast<double>(bytes);
        const CacheTraffic one = bypasses ? cache_.bypass(address, bytes, factor) : cache_.access(address, bytes, write, factor);
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
    const bool through = write && entry.record.flag_id == kBypassesL2;  // written to HBM at once
    const double missed_bytes = write && !through ? 0.0 : traffic.miss_bytes;
    const bool by_fixpipe = entry.record.op == Op::CopyL0cToGm;
    const double write_rate = by_fixpipe ? chip_.fixpipe_core_bytes_per_cycle : chip_.write_core_bytes_per_cycle;
    const double l2_rate = entry.record.op == Op::CopyGmToL1 ? chip_.cube_l2_core_bytes_per_cycle : chip_.l2_core_bytes_per_cycle;
    const double core_cycles = write ? all_bytes / write_rate
                                     : traffic.miss_bytes / chip_.hbm_core_bytes_per_cycle + traffic.hit_bytes / l2_rate;
    const double hbm_bytes = missed_bytes * shared_factor + traffic.written_back_bytes * chip_.write_back_factor;
    Demand demand;
    demand.solo_cycles = std::max({chip_.copy_min_cycles, core_cycles * core_factor, entry.record.repeats * chip_.burst_cycles});
    demand.hbm_share = hbm_bytes / chip_.hbm_shared_bytes_per_cycle() / demand.solo_cycles;
    demand.l2_share = all_bytes * shared_factor / chip_.l2_shared_bytes_per_cycle() / demand.solo_cycles;
    demand.waits_for_hbm = missed_bytes > 0;
    demand.latency_cycles = write                  ? chip_.mte3_latency_cycles
                            : demand.waits_for_hbm ? chip_.mte2_latency_cycles
                                                   : chip_.mte2_l2_latency_cycles;
    return demand;
}

double Memory::speed(const Lane &lane) const {
    const double load = &lane == &hbm_lane_ ? std::max(hbm_load_, l2_load_) : l2_load_;
    return load > 1.0 ? 1.0 / load : 1.0;
}

double Memory::finish_time(const Lane &lane) const {
    if (lane.transfers.empty()) return std::numeric_limits<double>::infinity();
    return now_ + std::max(0.0, lane.transfers.top().finish_progress - lane.progress) / speed(lane);
}

void Memory::advance(double now) {
    for (Lane *lane : {&hbm_lane_, &l2_lane_}) lane->progress += (now - now_) * speed(*lane);
    now_ = now;
}

void Memory::start(double now, const Demand &demand, uint64_t owner) {
    advance(now);
    Lane &lane = demand.waits_for_hbm ? hbm_lane_ : l2_lane_;
    lane.transfers.push({lane.progress + demand.solo_cycles, demand, owner});
    hbm_load_ += demand.hbm_share;
    l2_load_ += demand.l2_share;
}

double Memory::next_finish() const { return std::min(finish_time(hbm_lane_), finish_time(l2_lane_)); }

uint64_t Memory::finish_next() {
    Lane &lane = finish_time(hbm_lane_) <= finish_time(l2_lane_) ? hbm_lane_ : l2_lane_;
    advance(finish_time(lane));
    const Transfer done = lane.transfers.top();
    lane.transfers.pop();
    const bool idle = hbm_lane_.transfers.empty() && l2_lane_.transfers.empty();
    hbm_load_ = idle ? 0.0 : hbm_load_ - done.demand.hbm_share;
    l2_load_ = idle ? 0.0 : l2_load_ - done.demand.l2_share;
    return done.owner;
}

}  // namespace asim

#include "asim/timing/memory.h"

#include <algorithm>
#include <limits>

namespace asim {

namespace {

constexpr uint64_t kSmallestRequestBytes = 128;  // requests are of 128, 256 or 512 B (facts/npu_2201.md section 3)
constexpr Lane kAllLanes[kLanes] = {Lane::Miss, Lane::Hit, Lane::Write};

// Bursts that follow each other without a gap are one.
bool contiguous(const Record &record, const Operand &gm) { return record.repeats <= 1 || gm.stride == record.burst_bytes; }

// Whether bursts begin between the places where requests of the smallest size begin.
bool off_grid(const Record &record, const Operand &gm) {
    return gm.address % kSmallestRequestBytes != 0 || (!contiguous(record, gm) && gm.stride % kSmallestRequestBytes != 0);
}

// What moves data between a core and global memory.
struct CopyEngine {
    double miss_bytes_per_cycle;
    double hit_bytes_per_cycle;
    double burst_cycles;
};

CopyEngine engine_of(Op op, const Chip &chip) {
    if (op == Op::CopyGmToUb) return {chip.hbm_core_bytes_per_cycle, chip.l2_core_bytes_per_cycle, chip.burst_cycles};
    if (op == Op::CopyGmToL1) return {chip.cube_hbm_core_bytes_per_cycle, chip.cube_l2_core_bytes_per_cycle, chip.cube_burst_cycles};
    return {chip.write_core_bytes_per_cycle, chip.write_core_bytes_per_cycle, chip.burst_cycles};
}

}  // namespace

Memory::Memory(const Chip &chip)
    : chip_(chip), cache_(static_cast<uint64_t>(chip.l2_bytes), static_cast<uint64_t>(chip.l2_line_bytes)) {}

CacheTraffic Memory::traffic_of(const Entry &entry, const Operand &gm, CacheUse use) {
    const Record &record = entry.record;
    const bool one_burst = contiguous(record, gm);
    const uint64_t bursts = one_burst ? 1 : record.repeats;
    const uint64_t bytes = one_burst ? uint64_t{record.repeats} * record.burst_bytes : record.burst_bytes;
    CacheTraffic traffic;
    for (uint64_t i = 0; i < bursts && bytes > 0; ++i) cache_.access(gm.address + i * gm.stride, bytes, use, traffic);
    return traffic;
}

// What the copy engine of the core needs for the requests, when memory answers at once.
double Memory::core_cycles(const Entry &entry, const CacheTraffic &traffic, bool write) const {
    if (entry.record.op == Op::CopyL0cToGm) return chip_.copy_start_cycles + entry.operands[1].extent_bytes / chip_.fixpipe_core_bytes_per_cycle;
    const CopyEngine engine = engine_of(entry.record.op, chip_);
    const double moving = traffic.miss_bytes / engine.miss_bytes_per_cycle + traffic.hit_bytes / engine.hit_bytes_per_cycle;
    const bool shifted = off_grid(entry.record, entry.operands[write ? 0 : 1]);
    return chip_.copy_start_cycles + moving * (shifted ? chip_.off_grid_factor : 1.0) + entry.record.repeats * engine.burst_cycles;
}

// How long HBM is held up by the requests of a copy that another core's copy asks for too: those that the other still
// has before it. What the cache holds it gives to many at a time.
double Memory::sharing_cycles(uint64_t line, const CacheTraffic &traffic, const Entry &entry) const {
    const auto found = begun_in_line_.find(line);
    if (traffic.miss_bytes == 0 || found == begun_in_line_.end()) return 0;
    const Begun &other = found->second;
    const double ahead = (other.finish_progress - state_of(other.lane).progress) / other.solo_cycles;
    const double requests = std::max<double>(entry.record.repeats, 1) * std::max(1.0, entry.record.burst_bytes / chip_.l2_line_bytes);
    const double missing = traffic.miss_bytes / (traffic.miss_bytes + traffic.hit_bytes);
    return std::clamp(ahead, 0.0, 1.0) * missing * requests * chip_.same_line_cycles;
}

Demand Memory::demand_of(double now, const Entry &entry, bool write) {
    const Operand &gm = entry.operands[write ? 0 : 1];
    const bool bypasses = (entry.record.flag_id & kBypassesL2) != 0;
    const CacheUse use = bypasses ? CacheUse::Bypass : write ? CacheUse::Write : CacheUse::Read;
    const CacheTraffic traffic = traffic_of(entry, gm, use);
    const bool atomic = (entry.record.flag_id & kAtomic) != 0;  // the cache reads before it writes
    const double read_bytes = write && !atomic ? 0 : traffic.miss_bytes;
    const double written_bytes = traffic.written_back_bytes + (write && bypasses ? traffic.miss_bytes : 0);
    advance(now);
    Demand demand;
    demand.traffic = traffic;
    demand.first_line = gm.address / cache_.line_bytes();
    demand.lane = read_bytes > 0 ? Lane::Miss : write ? Lane::Write : Lane::Hit;
    demand.solo_cycles = core_cycles(entry, traffic, write);
    demand.sharing_load = sharing_cycles(demand.first_line, traffic, entry) / demand.solo_cycles;
    demand.read_load = read_bytes / chip_.hbm_queue_bytes_per_cycle() / demand.solo_cycles;
    demand.write_load = written_bytes * chip_.hbm_write_factor / chip_.hbm_queue_bytes_per_cycle() / demand.solo_cycles;
    demand.l2_share = (traffic.hit_bytes + traffic.miss_bytes) * (atomic ? 2 : 1) / chip_.l2_shared_bytes_per_cycle() / demand.solo_cycles;
    const double read_latency = read_bytes > 0 ? chip_.mte2_latency_cycles : chip_.mte2_l2_latency_cycles;
    demand.latency_cycles = (write ? chip_.mte3_latency_cycles : 0) + (write && !atomic ? 0 : read_latency);
    return demand;
}

double Memory::speed(Lane lane) const {
    const double l2_speed = l2_load_ > 1.0 ? 1.0 / l2_load_ : 1.0;
    if (lane == Lane::Hit) return l2_speed;
    const double queued = read_load_ + sharing_load_ + (lane == Lane::Miss ? write_load_ : 0.0);
    return std::min(1.0 / (1.0 + queued), l2_speed);
}

double Memory::finish_time(Lane lane) const {
    const LaneState &state = state_of(lane);
    if (state.transfers.empty()) return std::numeric_limits<double>::infinity();
    return now_ + std::max(0.0, state.transfers.top().finish_progress - state.progress) / speed(lane);
}

Lane Memory::next_lane() const {
    return *std::min_element(std::begin(kAllLanes), std::end(kAllLanes),
                             [&](Lane a, Lane b) { return finish_time(a) < finish_time(b); });
}

void Memory::advance(double now) {
    for (const Lane lane : kAllLanes) state_of(lane).progress += (now - now_) * speed(lane);
    now_ = now;
}

// Loads return to zero exactly when nothing is under way: rounding must not pile up.
void Memory::add_load(const Demand &demand, double sign) {
    sharing_load_ = under_way_ ? std::max(0.0, sharing_load_ + sign * demand.sharing_load) : 0.0;
    read_load_ = under_way_ ? std::max(0.0, read_load_ + sign * demand.read_load) : 0.0;
    write_load_ = under_way_ ? std::max(0.0, write_load_ + sign * demand.write_load) : 0.0;
    l2_load_ = under_way_ ? std::max(0.0, l2_load_ + sign * demand.l2_share) : 0.0;
}

void Memory::start(double now, const Demand &demand, uint64_t owner) {
    advance(now);
    LaneState &state = state_of(demand.lane);
    state.transfers.push({state.progress + demand.solo_cycles, demand, owner});
    Begun &begun = begun_in_line_[demand.first_line];
    begun = {begun.copies + 1, demand.lane, state.progress + demand.solo_cycles, demand.solo_cycles};
    ++under_way_;
    add_load(demand, 1.0);
}

double Memory::next_finish() const { return finish_time(next_lane()); }

uint64_t Memory::finish_next() {
    const Lane lane = next_lane();
    LaneState &state = state_of(lane);
    advance(finish_time(lane));
    const Transfer done = state.transfers.top();
    state.transfers.pop();
    const auto begun = begun_in_line_.find(done.demand.first_line);
    if (--begun->second.copies == 0) begun_in_line_.erase(begun);
    --under_way_;
    add_load(done.demand, -1.0);
    return done.owner;
}

}  // namespace asim

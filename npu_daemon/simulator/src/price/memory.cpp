#include "asim/timing/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace asim {

namespace {

constexpr uint64_t kSmallestRequestBytes = 128;  // requests are of 128, 256 or 512 B (docs/hardware.md section 3)
constexpr Lane kAllLanes[kLanes] = {Lane::Miss, Lane::Hit, Lane::Write};

// Whether bursts begin between the places where requests of the smallest size begin.
bool off_grid(const GlobalCopy &copy) {
    return copy.address % kSmallestRequestBytes != 0 || (!copy.contiguous() && copy.stride % kSmallestRequestBytes != 0);
}

// Whether rows are no whole data blocks of 32 B: the last one of each is padded on its way in, and only a part of it is written on
// its way out. Where in global memory rows begin does not matter for that (data_copy UB S4).
bool odd_rows(const GlobalCopy &copy) {
    constexpr uint64_t kBlockBytes = 32;
    return copy.bursts > 1 && copy.burst_bytes % kBlockBytes != 0;
}

// Rows that begin in the line in which the row before ends. Requests for one line are served in turn (asc-devkit, guide:
// avoid access to the same address): each such row waits as a copy of its own does.
uint32_t rows_in_turn(const GlobalCopy &copy, uint64_t line_bytes) {
    if (copy.bursts <= 1 || copy.stride % line_bytes == 0 || copy.stride >= copy.burst_bytes + line_bytes) return 0;
    uint32_t rows = 0;
    for (uint64_t row = 1; row < copy.bursts; ++row) {
        const uint64_t begin = copy.address + row * copy.stride;
        rows += begin / line_bytes == (begin - copy.stride + copy.burst_bytes - 1) / line_bytes;
    }
    return rows;
}

// A line's key in a small table: cores work at equal distances, whose low bits are the same. No two lines have one key.
uint64_t key_of(uint64_t line) { return line * 0x9e3779b97f4a7c15ull; }

}  // namespace

Memory::Memory(const Chip &chip)
    : chip_(chip), cache_(static_cast<uint64_t>(chip.l2_bytes * chip.l2_usable_share), static_cast<uint64_t>(chip.l2_line_bytes),
             static_cast<uint64_t>(chip.l2_dirty_bytes)) {
    speeds_.fill(1.0);
}

CacheTraffic Memory::traffic_of(const GlobalCopy &copy) {
    const CacheUse use = copy.bypasses_l2() ? CacheUse::Bypass : copy.writes() ? CacheUse::Write : CacheUse::Read;
    const bool one_burst = copy.contiguous();
    const uint64_t bursts = one_burst ? 1 : copy.bursts;
    const uint64_t bytes = one_burst ? uint64_t{copy.bursts} * copy.burst_bytes : copy.burst_bytes;
    CacheTraffic traffic;
    for (uint64_t i = 0; i < bursts && bytes > 0; ++i) cache_.access(copy.address + i * copy.stride, bytes, use, traffic);
    return traffic;
}

// What requests that begin off the grid cost more, the core and HBM.
double Memory::grid_factor_of(const GlobalCopy &copy) const {
    return off_grid(copy) ? chip_.off_grid_factor : 1.0;
}

// What the copy engine of the core needs for the requests, when memory answers at once.
double Memory::core_cycles(const GlobalCopy &copy, const CacheTraffic &traffic) const {
    const double bytes = traffic.hit_bytes + traffic.miss_bytes, bursts = copy.bursts;
    if (copy.op == Op::CopyL0cToGm) {
        const double inside = copy.source_bytes / chip_.fixpipe_core_bytes_per_cycle;
        return chip_.copy_start_cycles + std::max(inside, bytes / chip_.fixpipe_gm_bytes_per_cycle);
    }
    const double grid_factor = grid_factor_of(copy);
    const double waiting = rows_in_turn(copy, cache_.line_bytes()) * chip_.copy_start_cycles;
    if (copy.op == Op::CopyGmToL1) {    // rows are turned into fractals while others are on their way
        const double from_hbm = traffic.miss_bytes / chip_.cube_hbm_core_bytes_per_cycle;
        const double into_l1 = bytes / chip_.cube_l2_core_bytes_per_cycle;
        const double converting = into_l1 * grid_factor + bursts * chip_.cube_row_cycles + waiting;
        return chip_.copy_start_cycles + std::max(from_hbm * grid_factor, converting);
    }
    const double miss_rate = copy.writes() ? chip_.write_core_bytes_per_cycle : chip_.hbm_core_bytes_per_cycle;
    const double hit_rate = copy.writes() ? chip_.write_core_bytes_per_cycle : chip_.l2_core_bytes_per_cycle;
    const double missing = traffic.miss_bytes > 0 ? traffic.miss_bytes / miss_rate : 0;
    const double moving = missing + (traffic.hit_bytes > 0 ? traffic.hit_bytes / hit_rate : 0);
    const double each_burst = chip_.burst_cycles + (odd_rows(copy) ? chip_.odd_burst_cycles : 0);
    return chip_.copy_start_cycles + moving * grid_factor + bursts * each_burst + waiting;
}

// Where another copy fetches from the same line on: the share of its lines that it still has before it.
double Memory::share_in_front(uint64_t line) const {
    const uint32_t found = begun_in_line_.find(key_of(line));
    if (found == Table<Begun>::kNone) return 0;
    const Begun &other = begun_in_line_[found];
    return std::clamp((other.finish_progress - state_of(Lane::Miss).progress) / other.solo_cycles, 0.0, 1.0);
}

// How long HBM is held up by the requests of a copy that another core's copy asks for too: those that the other still
// has before it. What the cache holds it gives to many at a time, but what is on its way there is not in it yet.
double Memory::sharing_cycles(double in_front, const CacheTraffic &traffic, const GlobalCopy &copy) const {
    const double requests = std::max<double>(copy.bursts, 1) * std::max(1.0, copy.burst_bytes / chip_.l2_line_bytes);
    const double missing = traffic.miss_bytes > 0 ? traffic.miss_bytes / (traffic.miss_bytes + traffic.hit_bytes) : 1.0;
    return in_front * missing * requests * chip_.same_line_cycles;
}

// What HBM fetches for the bytes that the cache does not hold. Lines that the cache takes in are fetched as a whole, in
// parts or in order, as it suits HBM; what goes past the cache is fetched for the sake of each burst alone.
double Memory::fetched_bytes(const GlobalCopy &copy, const CacheTraffic &traffic) const {
    if (!copy.bypasses_l2() || traffic.miss_bytes == 0) return traffic.miss_bytes;
    const double missing = traffic.miss_bytes / (traffic.miss_bytes + traffic.hit_bytes);
    const double bursts = copy.contiguous() ? 1 : copy.bursts;
    return std::max(traffic.miss_bytes, missing * bursts * chip_.hbm_request_bytes);
}

Demand Memory::demand_of(double now, const GlobalCopy &copy) {
    const bool write = copy.writes(), atomic = copy.atomic();   // for an atomic write the cache reads first
    const CacheTraffic traffic = traffic_of(copy);
    const double fetched = fetched_bytes(copy, traffic);
    const double read_bytes = write && !atomic ? 0 : fetched;
    const double written_bytes = traffic.written_back_bytes + (write && copy.bypasses_l2() ? fetched : 0);
    advance(now);
    Demand demand;
    demand.traffic = traffic;
    demand.load.first_line = cache_.line_of(copy.address);
    const double in_front = write && !atomic ? 0 : share_in_front(demand.load.first_line);
    demand.lane = read_bytes > 0 || (!write && in_front > 0) ? Lane::Miss : write ? Lane::Write : Lane::Hit;
    demand.solo_cycles = core_cycles(copy, traffic);
    if (write) {
        demand.least_cycles = demand.solo_cycles;
        demand.buffered_cycles = demand.solo_cycles * std::min(1.0, chip_.write_buffer_bytes / (traffic.hit_bytes + traffic.miss_bytes));
    }
    if (demand.lane == Lane::Miss && in_front > 0) demand.load.sharing = sharing_cycles(in_front, traffic, copy) / demand.solo_cycles;
    if (read_bytes > 0) demand.load.read = read_bytes * grid_factor_of(copy) / chip_.hbm_peak_bytes_per_cycle / demand.solo_cycles;
    if (written_bytes > 0) demand.load.write = written_bytes * chip_.hbm_write_factor / chip_.hbm_peak_bytes_per_cycle / demand.solo_cycles;
    demand.load.l2 = (traffic.hit_bytes + traffic.miss_bytes) * (atomic ? 2 : 1) / chip_.l2_shared_bytes_per_cycle / demand.solo_cycles;
    const double read_latency = demand.lane == Lane::Miss ? chip_.mte2_latency_cycles : chip_.mte2_l2_latency_cycles;
    demand.latency_cycles = (write ? chip_.mte3_latency_cycles : 0) + (write && !atomic ? 0 : read_latency);
    return demand;
}

// The speed s of copies that ask for `load` times what HBM could give. A request waits in a queue that is the longer the more of
// HBM is in use, u = s * load: 1 / s = 1 + hbm_waiting * u / (1 - u), which this solves.
double Memory::hbm_speed(double load) const {
    const double both = 1.0 + load;
    return 2.0 / (both + std::sqrt(both * both - 4.0 * load * (1.0 - chip_.hbm_waiting)));
}

// The speed of each lane under the present loads; writes yield to the reads.
void Memory::find_speeds() {
    const double l2_speed = l2_load_ > 1.0 ? 1.0 / l2_load_ : 1.0;
    const double hbm_load = read_load_ + sharing_load_ + write_load_;
    const double miss_speed = hbm_load > 0.0 ? std::min(hbm_speed(hbm_load), l2_speed) : l2_speed;
    speeds_[static_cast<size_t>(Lane::Hit)] = l2_speed;
    speeds_[static_cast<size_t>(Lane::Miss)] = miss_speed;
    // What writes evict goes to HBM no faster than that takes it.
    const double evicted_bytes_per_cycle = write_load_ * chip_.hbm_peak_bytes_per_cycle;
    const double taken = evicted_bytes_per_cycle > 0 ? chip_.hbm_shared_bytes_per_cycle / evicted_bytes_per_cycle : 1.0;
    speeds_[static_cast<size_t>(Lane::Write)] = std::min({1.0 - chip_.write_yield * read_share(), l2_speed, taken});
}

// Share of HBM's bandwidth that reads use.
double Memory::read_share() const {
    if (read_load_ == 0) return 0;
    const double read_bytes_per_cycle = speed(Lane::Miss) * read_load_ * chip_.hbm_peak_bytes_per_cycle;
    return std::min(1.0, read_bytes_per_cycle / chip_.hbm_shared_bytes_per_cycle);
}

double Memory::finish_time(Lane lane) const {
    const LaneState &state = state_of(lane);
    if (state.transfers.empty()) return std::numeric_limits<double>::infinity();
    const double left = std::max(0.0, state.transfers.first().finish_progress - state.progress);
    return now_ + (speed(lane) == 1.0 ? left : left / speed(lane));
}

const Memory::Finish &Memory::next() {
    if (next_) return *next_;
    next_ = Finish{kAllLanes[0], finish_time(kAllLanes[0])};
    for (size_t i = 1; i < kLanes; ++i) {
        const double time = finish_time(kAllLanes[i]);
        if (time < next_->time) next_ = Finish{kAllLanes[i], time};
    }
    return *next_;
}

void Memory::advance(double now) {
    if (now == now_) return;
    for (const Lane lane : kAllLanes) state_of(lane).progress += (now - now_) * speed(lane);
    now_ = now;
    next_.reset();
}

// Loads return to zero exactly when nothing is under way: rounding must not pile up.
void Memory::add_load(const Load &load, double sign) {
    sharing_load_ = under_way_ ? std::max(0.0, sharing_load_ + sign * load.sharing) : 0.0;
    read_load_ = under_way_ ? std::max(0.0, read_load_ + sign * load.read) : 0.0;
    write_load_ = under_way_ ? std::max(0.0, write_load_ + sign * load.write) : 0.0;
    l2_load_ = under_way_ ? std::max(0.0, l2_load_ + sign * load.l2) : 0.0;
    find_speeds();
    next_.reset();
}

uint32_t Memory::keep(const Load &load) {
    if (free_loads_.empty()) {
        loads_.push_back(load);
        return static_cast<uint32_t>(loads_.size() - 1);
    }
    const uint32_t place = free_loads_.back();
    free_loads_.pop_back();
    loads_[place] = load;
    return place;
}

// A copy fetches from that line on: returns the place of what is known of such copies.
uint64_t Memory::remember_fetch(uint64_t line, double finish_progress, double solo_cycles) {
    const uint32_t place = begun_in_line_.find_or_insert(key_of(line));
    Begun &begun = begun_in_line_[place];
    begun = {begun.copies + 1, finish_progress, solo_cycles};
    return place;
}

// A copy is under way with this load, whose place is returned.
uint32_t Memory::begin(const Demand &demand, const Load &load, double finish_progress) {
    ++under_way_;
    add_load(load, 1.0);
    const uint32_t place = keep(load);
    const bool fetches = load.read > 0;
    loads_[place].first_line = fetches ? remember_fetch(load.first_line, finish_progress, demand.solo_cycles) : Table<Begun>::kNone;
    return place;
}

void Memory::end(uint32_t place) {
    const auto begun = static_cast<uint32_t>(loads_[place].first_line);
    if (begun != Table<Begun>::kNone && --begun_in_line_[begun].copies == 0) begun_in_line_.erase(begun);
    --under_way_;
    add_load(loads_[place], -1.0);
    free_loads_.push_back(place);
}

bool Memory::start(double now, const Demand &demand, uint32_t owner) {
    advance(now);
    if (demand.lane == Lane::Write) return start_write(demand, owner);
    LaneState &state = state_of(demand.lane);
    const double finish = state.progress + demand.solo_cycles;
    state.transfers.add({finish, begin(demand, demand.load, finish), owner << kEndsBits | kCopy | kLoad});
    return false;
}

// What the write buffer still holds of earlier writes goes first.
bool Memory::start_write(const Demand &demand, uint32_t owner) {
    LaneState &state = state_of(Lane::Write);
    if (buffer_empty_.size() <= owner) buffer_empty_.resize(owner + 1);
    double &empty = buffer_empty_[owner];
    const double finish = std::max(empty, state.progress) + demand.solo_cycles;
    empty = finish;
    const double stretch = demand.solo_cycles / (finish - state.progress);
    Load load = demand.load;
    load.write *= stretch;
    load.l2 *= stretch;
    const uint32_t place = begin(demand, load, finish);
    state.transfers.add({finish, place, owner << kEndsBits | kLoad});
    const double over = std::max(state.progress, finish - demand.buffered_cycles);
    if (over == state.progress && next().time > now_) return true;
    state.transfers.add({over, place, owner << kEndsBits | kCopy});
    next_.reset();
    return false;
}

double Memory::next_finish() { return next().time; }

std::optional<uint32_t> Memory::finish_next() {
    const Finish finish = next();
    LaneState &state = state_of(finish.lane);
    advance(finish.time);
    const Transfer done = state.transfers.first();
    state.transfers.pop();
    next_.reset();
    if ((done.owner_and_ends & kLoad) != 0) end(done.load);
    if ((done.owner_and_ends & kCopy) == 0) return std::nullopt;
    return done.owner_and_ends >> kEndsBits;
}

}  // namespace asim

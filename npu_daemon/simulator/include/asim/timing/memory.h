// Bandwidth of global memory, shared by all copies that are under way at a time.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "asim/timing/chip.h"
#include "asim/timing/l2_cache.h"
#include "asim/timing/ring.h"
#include "asim/timing/table.h"
#include "asim/timing/trace_reader.h"

namespace asim {

// A copy from or to global memory: bursts of bytes there, from one address on.
struct GlobalCopy {
    uint64_t address = 0;
    uint32_t stride = 0;            // bytes from burst to burst
    uint32_t bursts = 0;
    uint32_t burst_bytes = 0;
    uint32_t source_bytes = 0;      // what it reads, with gaps, where it comes from
    Op op = Op::Count;
    uint16_t how = 0;               // kBypassesL2 and kAtomic, added up

    GlobalCopy() = default;
    explicit GlobalCopy(const Entry &entry)
        : bursts(entry.record.repeats), burst_bytes(entry.record.burst_bytes), source_bytes(entry.operands[1].extent_bytes),
          op(entry.record.op), how(entry.record.flag_id) {
        const Operand &gm = entry.operands[writes_gm(op) ? 0 : 1];
        address = gm.address;
        stride = gm.stride;
    }

    uint64_t bytes() const { return uint64_t{bursts} * burst_bytes; }
    bool writes() const { return writes_gm(op); }
    bool bypasses_l2() const { return (how & kBypassesL2) != 0; }
    bool atomic() const { return (how & kAtomic) != 0; }
    bool contiguous() const { return bursts <= 1 || stride == burst_bytes; }    // such bursts are one
};

// What a copy waits for: reads that miss the cache for HBM; reads that hit for the cache; writes, which land in the
// cache and leave it later, for gaps that the reads leave.
enum class Lane : uint8_t { Miss, Hit, Write };
constexpr size_t kLanes = 3;

// What a copy takes of what all share while it is under way.
struct Load {
    double read = 0;                // HBM reads per cycle at its speed alone, as a share of what HBM could give
    double write = 0;               // likewise HBM writes, of evicted lines or past the cache
    double sharing = 0;             // likewise time that requests for a line take which other cores ask for too
    double l2 = 0;                  // share of the common L2 bandwidth taken at that speed
    uint64_t first_line = 0;        // where it begins: copies that begin in the same line ask for the same lines
};

// What one copy asks of the memory system.
struct Demand {
    Lane lane = Lane::Miss;
    double solo_cycles = 0;         // duration if no other copy were under way
    double least_cycles = 0;        // that the copy engine is busy with a write, however much fits the write buffer
    double buffered_cycles = 0;     // of solo_cycles, those that the end of a write spends in the write buffer
    double latency_cycles = 0;      // from the end of the transfer until its data can be used
    Load load;
    CacheTraffic traffic;           // what the cache did for it
};

// Copies under way slow each other down. The more of HBM is in use, the longer each request waits in its queues. HBM serves
// requests of several cores for the same line one after another, which holds up all others. Of the L2 cache copies
// get equal shares once they ask for more than it has. Copies of the same lane progress alike.
//
// What a copy under way fetches for the cache is not there before it has come: others that ask for it meanwhile queue at HBM.
//
// Reads go before writes: the more of HBM's bandwidth reads use, the slower writes progress. A write is over for its core
// when what is left of it fits the core's write buffer, which is emptied in order.
class Memory {
public:
    explicit Memory(const Chip &chip);

    L2Cache &cache() { return cache_; }

    // What a copy that starts at `now` asks for.
    Demand demand_of(double now, const GlobalCopy &copy);

    // Starts a copy at `now`; `owner`, a small number, comes back from `finish_next`. But a write that the write buffer takes
    // at once may be over for its core, before anything else happens: then this returns true.
    bool start(double now, const Demand &demand, uint32_t owner);
    double next_finish();           // infinity when nothing is under way
    std::optional<uint32_t> finish_next();      // whose copy is over; none when only a write buffer got empty

private:
    struct Transfer {
        double finish_progress;
        uint32_t load;              // its place in loads_
        uint32_t owner_and_ends;    // what it ends, see Ends

        bool operator>(const Transfer &other) const {
            return finish_progress != other.finish_progress ? finish_progress > other.finish_progress : owner_and_ends > other.owner_and_ends;
        }
    };
    // In the order in which they finish: most finish in the order in which they begin.
    class Transfers {
    public:
        bool empty() const { return all_.empty(); }
        const Transfer &first() const { return all_.front(); }
        void pop() { all_.pop(); }
        void add(const Transfer &transfer) {
            uint32_t place = all_.size();
            all_.push(transfer);
            for (; place > 0 && all_[place - 1] > transfer; --place) all_[place] = all_[place - 1];
            all_[place] = transfer;
        }

    private:
        Ring<Transfer> all_;
    };
    enum Ends : uint32_t { kCopy = 1, kLoad = 2 };      // of its owner, on memory
    static constexpr uint32_t kEndsBits = 2;
    struct Begun {                  // copies under way that fetch from one line on, and the latest of them
        uint32_t copies = 0;
        double finish_progress = 0;
        double solo_cycles = 1;
    };
    struct LaneState {
        double progress = 0;  // cycles of progress that a copy under way since time 0 would have made
        Transfers transfers;
    };
    struct Finish {
        Lane lane;
        double time;
    };
    double speed(Lane lane) const { return speeds_[static_cast<size_t>(lane)]; }
    double hbm_speed(double load) const;
    void find_speeds();
    double read_share() const;
    bool start_write(const Demand &demand, uint32_t owner);
    uint32_t begin(const Demand &demand, const Load &load, double finish_progress);
    uint64_t remember_fetch(uint64_t line, double finish_progress, double solo_cycles);
    void end(uint32_t place);
    double finish_time(Lane lane) const;
    const Finish &next();
    uint32_t keep(const Load &load);
    void advance(double now);
    void add_load(const Load &load, double sign);
    CacheTraffic traffic_of(const GlobalCopy &copy);
    double grid_factor_of(const GlobalCopy &copy) const;
    double fetched_bytes(const GlobalCopy &copy, const CacheTraffic &traffic) const;
    double core_cycles(const GlobalCopy &copy, const CacheTraffic &traffic) const;
    double share_in_front(uint64_t line) const;
    double sharing_cycles(double in_front, const CacheTraffic &traffic, const GlobalCopy &copy) const;
    LaneState &state_of(Lane lane) { return lanes_[static_cast<size_t>(lane)]; }
    const LaneState &state_of(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }

    const Chip &chip_;
    L2Cache cache_;
    double now_ = 0;
    double read_load_ = 0;
    double write_load_ = 0;
    double sharing_load_ = 0;
    double l2_load_ = 0;
    uint64_t under_way_ = 0;
    std::array<double, kLanes> speeds_;     // of each lane, under these loads
    std::array<LaneState, kLanes> lanes_;
    std::vector<Load> loads_;               // of copies under way, their first lines by the places in begun_in_line_, or kNone
    std::vector<uint32_t> free_loads_;
    Table<Begun> begun_in_line_{256};
    std::vector<double> buffer_empty_;      // of each owner, at which progress of the lane
    std::optional<Finish> next_;    // unless something has changed since
};

}  // namespace asim

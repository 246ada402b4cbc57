// Bandwidth of global memory, shared by all copies that are under way at a time.
#pragma once
#include <cstdint>
#include <queue>
#include <vector>

#include "asim/timing/chip.h"
#include "asim/timing/l2_cache.h"
#include "asim/timing/trace_reader.h"

namespace asim {

// What one copy asks of the memory system.
struct Demand {
    double solo_cycles = 0;         // duration if no other copy were under way
    double hbm_share = 0;           // share of the common HBM bandwidth taken at full speed, 1 = all of it
    double l2_share = 0;            // likewise of the common L2 bandwidth
    bool waits_for_hbm = false;     // reads that miss do; writes land in L2 and leave it later
    double latency_cycles = 0;      // from the end of the transfer until its data can be used
};

// Processor sharing: while the copies under way ask for more than a common bandwidth, all that need it slow down
// alike. Copies form two lanes, those that wait for HBM and those that only need L2, each with its own progress.
class Memory {
public:
    explicit Memory(const Chip &chip);

    Demand demand_of(const Entry &entry, bool write);

    // Starts a copy at `now`; `owner` comes back from `finish_next`.
    void start(double now, const Demand &demand, uint64_t owner);
    double next_finish() const;     // infinity when nothing is under way
    uint64_t finish_next();

private:
    struct Transfer {
        double finish_progress;
        Demand demand;
        uint64_t owner;
        bool operator>(const Transfer &other) const {
            return finish_progress != other.finish_progress ? finish_progress > other.finish_progress : owner > other.owner;
        }
    };
    struct Lane {
        double progress = 0;  // cycles of progress that a copy under way since time 0 would have made
        std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> transfers;
    };
    double speed(const Lane &lane) const;
    double finish_time(const Lane &lane) const;
    void advance(double now);
    CacheTraffic traffic_of(const Entry &entry, const Operand &gm, bool write);

    const Chip &chip_;
    L2Cache cache_;
    double now_ = 0;
    double hbm_load_ = 0;
    double l2_load_ = 0;
    Lane hbm_lane_;
    Lane l2_lane_;
};

}  // namespace asim

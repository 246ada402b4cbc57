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
    double shared_per_cycle = 0;    // share of the common bandwidth taken per cycle at full speed, 1 = all of it
    double latency_cycles = 0;      // from the end of the transfer until its data can be used
};

// Processor sharing: while the copies under way ask for more than the common bandwidth, all slow down alike.
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
        double shared_per_cycle;
        uint64_t owner;
        bool operator>(const Transfer &other) const {
            return finish_progress != other.finish_progress ? finish_progress > other.finish_progress : owner > other.owner;
        }
    };
    double speed() const { return load_ > 1.0 ? 1.0 / load_ : 1.0; }
    void advance(double now);
    CacheTraffic traffic_of(const Entry &entry, const Operand &gm, bool write);

    const Chip &chip_;
    L2Cache cache_;
    double now_ = 0;
    double progress_ = 0;   // cycles of progress that a copy under way since time 0 would have made
    double load_ = 0;
    std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> transfers_;
};

}  // namespace asim

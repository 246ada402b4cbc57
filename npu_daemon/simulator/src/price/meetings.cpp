#include "asim/timing/meetings.h"

#include <algorithm>

namespace asim {

// When those of the kind of `from` among [first, last) have all set the flag, or kNever while some have not.
double Meetings::meet(uint32_t from, uint32_t first, uint32_t last, uint32_t flag) {
    double latest = 0;
    for (uint32_t core = first; core < last; ++core) {
        if (cube(core) != cube(from)) continue;
        if (sets_[core][flag].empty()) return kNever;
        latest = std::max(latest, sets_[core][flag].front());
    }
    for (uint32_t core = first; core < last; ++core) {
        if (cube(core) == cube(from)) sets_[core][flag].pop_front();
    }
    return latest;
}

std::vector<Arrival> Meetings::add(uint32_t from, const RaisedFlag &raised) {
    const uint32_t cores = composition_.cores();
    const uint32_t group = from / cores * cores;
    if (raised.mode == CrossCoreMode::Direct) {
        if (raised.position >= cores) return {};
        return {{group + raised.position, raised.time}};
    }
    sets_[from][raised.flag].push_back(raised.time);
    const bool everywhere = raised.mode == CrossCoreMode::AllOfKind;
    const uint32_t first = everywhere ? 0 : group;
    const uint32_t last = everywhere ? static_cast<uint32_t>(sets_.size()) : group + cores;
    const double time = meet(from, first, last, raised.flag);
    std::vector<Arrival> arrivals;
    for (uint32_t core = first; core < last && time < kNever; ++core) {
        const bool receives = (cube(core) == cube(from)) != (raised.mode == CrossCoreMode::Group);
        if (receives) arrivals.push_back({core, time});
    }
    return arrivals;
}

}  // namespace asim

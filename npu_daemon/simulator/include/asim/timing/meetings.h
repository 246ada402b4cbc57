// Flags between cores as machine/cross_core.h describes them, with the times at which they arrive.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "asim/timing/core.h"

namespace asim {

struct Arrival {
    uint32_t core;
    double time;
};

class Meetings {
public:
    Meetings() = default;
    Meetings(const Composition &composition, uint32_t places)
        : composition_(composition), sets_(places * composition.cores()) {}

    // Takes note of a flag that core `from` has set; returns the cores whose counter goes up by it.
    std::vector<Arrival> add(uint32_t from, const RaisedFlag &raised);

private:
    bool cube(uint32_t core) const { return core % composition_.cores() < composition_.cubes; }
    double meet(uint32_t from, uint32_t first, uint32_t last, uint32_t flag);

    Composition composition_;
    std::vector<std::array<std::deque<double>, kCrossCoreFlags>> sets_;     // not yet part of a complete meeting
};

}  // namespace asim

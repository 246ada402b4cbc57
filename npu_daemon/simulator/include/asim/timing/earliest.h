// The earliest of a fixed number of times that change one by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace asim {

// There are as many times as a chip has cores: the least of a few and of the groups of those is found sooner than a tree
// is climbed, whose turns nothing foresees.
class Earliest {
public:
    explicit Earliest(uint32_t places) : of_groups_((places + kGroup - 1) / kGroup, kNone), times_(of_groups_.size() * kGroup, kNone) {}

    double time() const { return time_; }

    // Of equal times the lowest place has the earliest.
    uint32_t place() const {
        const size_t group = first(of_groups_.data());
        return static_cast<uint32_t>(group * kGroup + first(&times_[group * kGroup]));
    }

    void set(uint32_t place, double time) {
        const double before = times_[place];
        if (before == time) return;
        times_[place] = time;
        const size_t group = place / kGroup;
        const double of_group = of_groups_[group];
        if (changed(of_groups_[group], before, time, &times_[group * kGroup], kGroup)) {
            changed(time_, of_group, of_groups_[group], of_groups_.data(), of_groups_.size());
        }
    }

private:
    static constexpr size_t kGroup = 8;
    static constexpr double kNone = std::numeric_limits<double>::infinity();

    // One of `count` times was `before` and is `now`: brings up to date which of them is the least, and says whether that may
    // have changed.
    static bool changed(double &least, double before, double now, const double *times, size_t count) {
        if (now <= least) {
            least = now;
        } else if (before == least) {
            least = times[0];
            for (size_t i = 1; i < count; ++i) least = times[i] < least ? times[i] : least;    // by value: no branch
        } else {
            return false;
        }
        return true;
    }

    size_t first(const double *times) const {
        size_t place = 0;
        while (times[place] != time_) ++place;
        return place;
    }

    double time_ = kNone;
    std::vector<double> of_groups_;     // the earliest of each
    std::vector<double> times_;
};

}  // namespace asim

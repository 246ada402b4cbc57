// The earliest of a fixed number of times that change one by one: a knock-out tournament between them.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace asim {

class Earliest {
public:
    explicit Earliest(uint32_t places) {
        while (leaves_ < places) leaves_ *= 2;
        times_.assign(leaves_, std::numeric_limits<double>::infinity());
        winners_.resize(2 * leaves_);
        for (uint32_t place = 0; place < leaves_; ++place) winners_[leaves_ + place] = place;
        for (uint32_t node = leaves_ - 1; node > 0; --node) winners_[node] = winners_[2 * node];
    }

    // Of equal times the lowest place has the earliest.
    uint32_t place() const { return winners_[1]; }
    double time() const { return times_[winners_[1]]; }

    void set(uint32_t place, double time) {
        if (times_[place] == time) return;
        times_[place] = time;
        uint32_t winner = place;
        for (uint32_t node = leaves_ + place; node > 1; node /= 2) {
            const uint32_t other = winners_[node ^ 1];
            const double other_time = times_[other];
            const bool loses = (other_time < time) | ((other_time == time) & (other < winner));     // cannot be foreseen: no branch
            winner = loses ? other : winner;
            time = loses ? other_time : time;
            winners_[node / 2] = winner;
        }
    }

private:
    uint32_t leaves_ = 1;               // a power of two
    std::vector<double> times_;
    std::vector<uint32_t> winners_;     // of each match, the final first, then those of the leaves; [0] is not used
};

}  // namespace asim

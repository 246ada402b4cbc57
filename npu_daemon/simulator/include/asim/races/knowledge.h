// What a core knows of the others: how many instructions of each of their pipes are over.
#pragma once
#include <cstdint>
#include <map>

#include "asim/races/clocks.h"

namespace asim {

class Knowledge {
public:
    bool covers(uint32_t core, Pipe pipe, uint32_t index) const {
        const auto found = clocks_.find(core);
        return found != clocks_.end() && found->second[static_cast<size_t>(pipe)] >= index;
    }
    void add(uint32_t core, const Clock &clock) { join(clocks_.emplace(core, Clock{}).first->second, clock); }
    void add(const Knowledge &other) {
        for (const auto &[core, clock] : other.clocks_) add(core, clock);
    }
    // What is known of `core`; nothing when nothing is.
    Clock of(uint32_t core) const {
        const auto found = clocks_.find(core);
        return found == clocks_.end() ? Clock{} : found->second;
    }
    void clear() { clocks_.clear(); }

private:
    std::map<uint32_t, Clock> clocks_;
};

}  // namespace asim

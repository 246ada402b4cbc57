// Flags between cores as machine/cross_core.h describes them, and SyncAll, with what those who set them know.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "asim/races/knowledge.h"
#include "asim/trace/record.h"

namespace asim {

class FlagBoard {
public:
    FlagBoard(const Composition &composition, uint32_t cores) : composition_(composition), cores_(cores) {}

    // Core `from` sets a flag between cores, or arrives at SyncAll.
    void set(uint32_t from, const Record &record, const Knowledge &known);

    // Whether a wait of `core`, for a flag or in SyncAll, can end.
    bool arrived(uint32_t core, const Record &record) const;
    // Ends it; returns what those who brought it about knew.
    std::shared_ptr<const Knowledge> take(uint32_t core, const Record &record);

private:
    using Posts = std::map<uint64_t, std::deque<std::shared_ptr<const Knowledge>>>;

    static uint32_t slot_of(const Record &record);
    static uint64_t key(uint32_t core, uint32_t slot) { return uint64_t{core} << 8 | slot; }
    bool cube(uint32_t core) const { return core % composition_.cores() < composition_.cubes; }
    template <typename Meets>
    std::shared_ptr<const Knowledge> meet(uint32_t first, uint32_t last, uint32_t slot, const Meets &meets);

    Composition composition_;
    uint32_t cores_;
    Posts sets_;        // not yet part of a complete meeting
    Posts arrived_;     // not yet waited for
};

}  // namespace asim

// Makes the bytes of a segment out of records; see site.h.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "asim/trace/site.h"

namespace asim {

class SegmentEncoder {
public:
    bool full() const { return sites_.size() == kMaxSites; }
    void add(const Record &record, const ScalarCounts &scalar, const Operand *operands);

    // Ends the segment; it is valid until the next one is begun.
    const std::vector<uint8_t> &finish();
    void begin();

private:
    struct Known {
        Site site;
        uint64_t hash;      // of all but addresses and counts
        uint64_t in_place;  // of that, and of the site before
    };
    static constexpr size_t kPlaces = 2 * kMaxSites;

    uint32_t find(const Record &record, const Operand *operands, uint64_t hash, size_t &place) const;
    void add_new(const Record &record, const ScalarCounts &scalar, const Operand *operands, uint64_t hash, size_t place);
    void add_changed(uint32_t site, const Record &record, const ScalarCounts &scalar, const Operand *operands);
    void put(uint64_t number);
    void put_scalar(const ScalarCounts &before, const ScalarCounts &now);
    void end_run();

    std::vector<uint8_t> bytes_;
    std::vector<Known> sites_;
    std::array<uint16_t, kPlaces> places_{};    // of sites by hash, each number plus 1; by the site before, too
    uint32_t last_ = kNoSite;
    uint64_t run_ = 0;                          // records as foreseen that are not written yet
};

}  // namespace asim

// Reads a trace file, which came from an untrusted process: nothing in it is believed before it is checked.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asim/timing/ring.h"
#include "asim/timing/table.h"
#include "asim/trace/site.h"

namespace asim {

class Trace {
public:
    explicit Trace(const std::string &path);  // throws std::runtime_error when malformed
    ~Trace();
    Trace(const Trace &) = delete;

    uint32_t block_count() const { return static_cast<uint32_t>(segments_.size()); }
    const Composition &composition() const { return composition_; }

private:
    friend class Cursor;
    struct Segment {
        const uint8_t *begin;
        const uint8_t *end;
    };
    void index(const uint8_t *begin, const uint8_t *end);

    const uint8_t *data_ = nullptr;
    uint64_t bytes_ = 0;
    Composition composition_;
    std::vector<std::vector<Segment>> segments_;
};

// Walks over the records of one block, in program order.
class Cursor {
public:
    Cursor(const Trace &trace, uint32_t block_index) : segments_(&trace.segments_.at(block_index)) {}
    const Entry *next();        // null at the end; valid until the next call
    bool next(Entry &entry);    // false at the end
    uint64_t ordinal() const { return count_ - 1; }     // of the entry that next() gave, among those of the block

    // Whether the scalar unit accesses the unified buffer or a vector register in this block; asked before the first entry.
    bool scalar_meets_pipes() const;

    Site &site() { return sites_[last_]; }      // of that entry

private:
    static constexpr uint64_t kFlags = 64;      // of most blocks

    bool open_segment();
    uint64_t number();
    void take(void *to, size_t bytes);
    bool read_code();
    void read_record();
    uint16_t number_of_flag(const Record &record);
    void read_changes(uint64_t index);
    void read_scalar(Site &site);
    void go_to(uint16_t index);
    void follow();

    std::vector<Site> sites_;       // of the segment
    uint32_t last_ = kNoSite;
    uint32_t next_ = kNoSite;       // the site that followed it
    uint64_t run_ = 0;              // records as foreseen that are still to come
    uint64_t count_ = 0;
    const uint8_t *position_ = nullptr;
    const uint8_t *end_ = nullptr;
    const std::vector<Trace::Segment> *segments_;
    size_t next_segment_ = 0;
    Table<char> flags_{kFlags};     // that have been met, by what they are
    uint64_t site_count_ = 0;
};

inline const Entry *Cursor::next() {
    if (run_ > 0) {
        follow();
    } else if (!read_code()) {
        return nullptr;
    }
    ++count_;
    return &sites_[last_].entry;
}

inline bool Cursor::next(Entry &entry) {
    const Entry *read = next();
    if (read != nullptr) entry = *read;
    return read != nullptr;
}

// The records of one block.
class Records {
public:
    explicit Records(const Cursor &cursor) : cursor_(cursor) {}
    bool next() { return (current_ = cursor_.next()) != nullptr; }     // false at the end
    const Entry &current() const { return *current_; }                  // what next() went to

    const ScalarCounts &scalar_counts() { return cursor_.site().scalar; }

    // The cycles of its scalar work, which `price` gives for the counts of a site: it is asked when they are new.
    template <typename Price>
    double scalar_cycles(Price price) {
        Site &site = cursor_.site();
        if (site.scalar_cycles == kUnknownCycles) site.scalar_cycles = price(site.scalar);
        return site.scalar_cycles;
    }

private:
    const Entry *current_ = nullptr;    // of the cursor
    Cursor cursor_;
};

}  // namespace asim

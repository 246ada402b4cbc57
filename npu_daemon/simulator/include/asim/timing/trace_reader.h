// Reads a trace file, which came from an untrusted process: nothing in it is believed before it is checked.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asim/trace/record.h"

namespace asim {

constexpr uint32_t kMaxOperands = 5;     // MrgSort: a result and four queues

struct Entry {
    Record record;
    Operand operands[kMaxOperands];
};

class Trace {
public:
    explicit Trace(const std::string &path);  // throws std::runtime_error when malformed
    ~Trace();
    Trace(const Trace &) = delete;

    uint32_t block_count() const { return static_cast<uint32_t>(segments_.size()); }
    const Composition &composition() const { return composition_; }
    uint64_t offset_of(const uint8_t *position) const { return static_cast<uint64_t>(position - data_); }

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
    bool next(Entry &entry);  // false at the end
    const uint8_t *last() const { return last_; }  // where the entry lies that next() gave

private:
    const std::vector<Trace::Segment> *segments_;
    size_t segment_ = 0;
    const uint8_t *position_ = nullptr;
    const uint8_t *last_ = nullptr;
};

}  // namespace asim

// What each pipe of each core did when, written as it is priced: one line `CORE PIPE NAME START END BYTES` an event,
// times in cycles. The number of events is limited; those beyond the limit are counted, not written.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "asim/trace/record.h"

namespace asim {

class Timeline {
public:
    Timeline() = default;                                       // writes nothing
    Timeline(const std::string &path, uint64_t max_events);     // throws std::runtime_error
    ~Timeline();
    Timeline(const Timeline &) = delete;

    bool on() const { return file_ != nullptr; }

    void add(uint64_t core, Pipe pipe, const char *name, double start, double end, uint64_t bytes);

    // Work of a scalar unit; pieces that follow each other without a gap are one event.
    [[gnu::noinline]] void add_scalar(uint64_t core, double start, double end);

    void finish();      // writes what is pending; throws std::runtime_error when the file is incomplete

    uint64_t events() const { return events_; }
    uint64_t written() const { return written_; }

private:
    struct Span {
        double start = 0;
        double end = 0;
    };

    FILE *file_ = nullptr;
    uint64_t max_events_ = 0;
    uint64_t events_ = 0;
    uint64_t written_ = 0;
    std::vector<Span> scalar_;  // pending, by core
};

}  // namespace asim

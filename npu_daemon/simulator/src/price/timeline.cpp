#include "asim/timing/timeline.h"

#include <stdexcept>

namespace asim {

namespace {

constexpr const char *kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
constexpr double kGapCycles = 1e-6;     // rounding of sums, not time

}  // namespace

Timeline::Timeline(const std::string &path, uint64_t max_events) : file_(fopen(path.c_str(), "w")), max_events_(max_events) {
    if (file_ == nullptr) throw std::runtime_error("cannot write timeline " + path);
}

Timeline::~Timeline() {
    if (file_ != nullptr) fclose(file_);
}

void Timeline::add(uint64_t core, Pipe pipe, const char *name, double start, double end, uint64_t bytes) {
    if (file_ == nullptr) return;
    if (++events_ > max_events_) return;
    ++written_;
    fprintf(file_, "%llu %s %s %.3f %.3f %llu\n", static_cast<unsigned long long>(core), kPipeNames[static_cast<size_t>(pipe)],
            name, start, end, static_cast<unsigned long long>(bytes));
}

void Timeline::add_scalar(uint64_t core, double start, double end) {
    if (file_ == nullptr || end <= start) return;
    if (scalar_.size() <= core) scalar_.resize(core + 1);
    Span &span = scalar_[core];
    if (span.end > span.start && start > span.end + kGapCycles) {
        add(core, Pipe::S, "Scalar", span.start, span.end, 0);
        span = {start, end};
    } else {
        if (span.end <= span.start) span.start = start;
        span.end = end;
    }
}

void Timeline::finish() {
    if (file_ == nullptr) return;
    for (size_t core = 0; core < scalar_.size(); ++core) {
        if (scalar_[core].end > scalar_[core].start) add(core, Pipe::S, "Scalar", scalar_[core].start, scalar_[core].end, 0);
    }
    if (fflush(file_) != 0) throw std::runtime_error("the timeline could not be written completely");
}

}  // namespace asim

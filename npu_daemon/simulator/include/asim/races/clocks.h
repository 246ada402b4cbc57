// What each pipe of a core knows to be finished: vector clocks, moved by issue order, flags and barriers.
#pragma once
#include <array>
#include <cstdint>

#include "asim/timing/ring.h"
#include "asim/timing/table.h"
#include "asim/timing/trace_reader.h"

namespace asim {

// How many instructions of each pipe are known to be finished. One counter more than there are pipes fills a vector register.
using Clock = std::array<uint32_t, kPipeCount + 1>;

inline void join(Clock &into, const Clock &from) {
    for (size_t pipe = 0; pipe < into.size(); ++pipe) into[pipe] = std::max(into[pipe], from[pipe]);
}

class PipeClocks {
public:
    // Counts an instruction of `pipe`, which starts after what the scalar unit had waited for when it issued it.
    uint32_t issue(Pipe pipe) {
        reach(pipe);
        return ++issued_[at(pipe)];
    }
    uint32_t issued(Pipe pipe) const { return issued_[at(pipe)]; }
    const Clock &everything() const { return issued_; }
    bool knows(Pipe pipe, Pipe other, uint32_t index) const { return known_[at(pipe)][at(other)] >= index; }

    // What has finished when `pipe` has done everything issued to it so far.
    Clock when_done(Pipe pipe) {
        reach(pipe);
        Clock clock = known_[at(pipe)];
        clock[at(pipe)] = issued_[at(pipe)];
        return clock;
    }
    void learn(Pipe pipe, const Clock &clock) {
        reach(pipe);
        join(known_[at(pipe)], clock);
    }

    void set_flag(const Record &record) { raised(record).push(when_done(Pipe(record.source_pipe))); }
    void wait_flag(const Record &record) {
        Ring<Clock> &raised = this->raised(record);
        if (raised.empty()) return;
        learn(Pipe(record.target_pipe), raised.front());
        raised.pop();
    }
    void barrier(Pipe pipe) {
        if (pipe == Pipe::ALL) {
            known_.fill(issued_);
        } else {
            learn(pipe, when_done(pipe));
        }
    }

private:
    static size_t at(Pipe pipe) { return static_cast<size_t>(pipe); }
    Ring<Clock> &raised(const Record &record) {
        return raised_[raised_.find_or_insert(uint32_t{record.flag_id} << 6 | record.source_pipe << 3 | record.target_pipe)];
    }
    void reach(Pipe pipe) { join(known_[at(pipe)], known_[at(Pipe::S)]); }

    std::array<Clock, kPipeCount> known_{};
    Clock issued_{};
    Table<Ring<Clock>> raised_{64};
};

}  // namespace asim

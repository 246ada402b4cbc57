// Prices a trace on a chip and checks that it accounts for every tensor byte; prints one JSON document.
// Trusted: no candidate code runs here, and the trace is checked as it is read.
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "asim/timing/engine.h"
#include "coverage.h"

namespace asim {

namespace {

constexpr int kUsageExit = 2;
constexpr int kMalformedExit = 4;

// Lines `in|out ADDRESS BYTES NAME`.
std::vector<TensorRange> load_tensors(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read tensors " + path);
    std::vector<TensorRange> tensors;
    std::string side;
    for (TensorRange range; file >> side >> range.address >> range.bytes >> range.name;) {
        range.output = side == "out";
        tensors.push_back(range);
    }
    return tensors;
}

void print_missing(const std::vector<TensorRange> &tensors, const std::vector<uint64_t> &missing, bool output) {
    const char *separator = "";
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].output != output || missing[i] == 0) continue;
        printf("%s\"%s\":%llu", separator, tensors[i].name.c_str(), static_cast<unsigned long long>(missing[i]));
        separator = ",";
    }
}

void print_core(const CoreCounters &core, const char *separator) {
    const auto busy = [&](Pipe pipe) { return core.busy_cycles[static_cast<size_t>(pipe)]; };
    const auto count = [&](Pipe pipe) { return static_cast<unsigned long long>(core.instructions[static_cast<size_t>(pipe)]); };
    printf("%s{\"total_cycles\":%.17g,\"scalar_cycles\":%.17g,\"vec_cycles\":%.17g,\"mte2_cycles\":%.17g,\"mte3_cycles\":%.17g,"
           "\"vec_instructions\":%llu,\"mte2_instructions\":%llu,\"mte3_instructions\":%llu,\"gm_to_ub_bytes\":%llu,"
           "\"ub_to_gm_bytes\":%llu,\"clock_reads\":[",
           separator, core.total_cycles, busy(Pipe::S), busy(Pipe::V), busy(Pipe::MTE2), busy(Pipe::MTE3), count(Pipe::V),
           count(Pipe::MTE2), count(Pipe::MTE3), static_cast<unsigned long long>(core.gm_to_ub_bytes),
           static_cast<unsigned long long>(core.ub_to_gm_bytes));
    for (size_t i = 0; i < core.clock_reads.size(); ++i) printf("%s%.17g", i ? "," : "", core.clock_reads[i]);
    printf("]}");
}

void report(const Price &price, const std::vector<TensorRange> &tensors, const std::vector<uint64_t> &missing) {
    printf("{\"kernel_cycles\":%.17g,\"task_us\":%.17g,\"blocks\":%u,\"unwritten\":{", price.kernel_cycles, price.task_us,
           price.blocks);
    print_missing(tensors, missing, true);
    printf("},\"unread\":{");
    print_missing(tensors, missing, false);
    printf("},\"cores\":[");
    for (size_t i = 0; i < price.cores.size(); ++i) print_core(price.cores[i], i ? "," : "");
    printf("]}\n");
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s TRACE CHIP TENSORS\n", argv[0]);
        return asim::kUsageExit;
    }
    try {
        const asim::Chip chip = asim::load_chip(argv[2]);
        const std::vector<asim::TensorRange> tensors = asim::load_tensors(argv[3]);
        const asim::Trace trace(argv[1]);
        const std::vector<uint64_t> missing = asim::untouched_bytes(trace, tensors);
        asim::report(asim::price_trace(trace, chip), tensors, missing);
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kMalformedExit;
    }
    return 0;
}

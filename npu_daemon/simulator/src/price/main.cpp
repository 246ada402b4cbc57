// Prices a trace on a chip and checks that it accounts for every tensor byte; prints one JSON document.
// Trusted: no candidate code runs here, and the trace is checked as it is read.
#include <cstdio>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "asim/timing/engine.h"

namespace asim {

namespace {

constexpr int kArguments = 4;     // the program's name, TRACE, CHIP, TENSORS
constexpr int kMostArguments = kArguments + 3;
constexpr int kUsageExit = 2;
constexpr int kMalformedExit = 4;
constexpr int kOutOfMemoryExit = 5;

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

using Figure = uint64_t TensorCoverage::*;

// Prints `"KEY":{"TENSOR":BYTES,...},` of the inputs or the outputs for which the figure is not 0; BYTES are those of `printed`.
void print_bytes(const char *key, const std::vector<TensorRange> &tensors, const std::vector<TensorCoverage> &coverage,
                 bool output, Figure figure, Figure printed) {
    printf("\"%s\":{", key);
    const char *separator = "";
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].output != output || coverage[i].*figure == 0) continue;
        printf("%s\"%s\":%llu", separator, tensors[i].name.c_str(), static_cast<unsigned long long>(coverage[i].*printed));
        separator = ",";
    }
    printf("},");
}

void print_memory(const CoreCounters &core) {
    printf(",\"read_hit_bytes\":%.17g,\"read_miss_bytes\":%.17g,\"write_hit_bytes\":%.17g,\"write_miss_bytes\":%.17g",
           core.read_traffic.hit_bytes, core.read_traffic.miss_bytes, core.write_traffic.hit_bytes,
           core.write_traffic.miss_bytes);
    printf(",\"main_read_bytes\":%.17g,\"main_written_bytes\":%.17g", core.read_traffic.miss_bytes, core.main_written_bytes);
}

void print_scalar_work(const ScalarWork &work) {
    printf(",\"scalar_work\":{\"fetched_instructions\":%llu,\"fetch_cycles\":%.17g,\"issue_cycles\":%.17g,\"code_cycles\":%.17g,"
           "\"queue_cycles\":%.17g,\"access_cycles\":%.17g,\"order_cycles\":%.17g}",
           static_cast<unsigned long long>(work.fetched_instructions), work.fetch_cycles, work.issue_cycles, work.code_cycles,
           work.queue_cycles, work.access_cycles, work.order_cycles);
}

void print_core(const CoreCounters &core, bool cube, bool drawn, const char *separator) {
    constexpr struct { Pipe pipe; const char *name; } kPipes[] = {{Pipe::S, "scalar"}, {Pipe::V, "vec"}, {Pipe::M, "mac"},
        {Pipe::MTE1, "mte1"}, {Pipe::MTE2, "mte2"}, {Pipe::MTE3, "mte3"}, {Pipe::FIX, "fixpipe"}};
    printf("%s{\"kind\":\"%s\",\"total_cycles\":%.17g", separator, cube ? "aic" : "aiv", core.total_cycles);
    for (const auto &entry : kPipes) {
        const auto index = static_cast<size_t>(entry.pipe);
        printf(",\"%s_cycles\":%.17g,\"%s_wait_cycles\":%.17g,\"%s_instructions\":%llu", entry.name, core.busy_cycles[index],
               entry.name, core.wait_cycles[index], entry.name, static_cast<unsigned long long>(core.instructions[index]));
    }
    printf(",\"read_bytes\":%llu,\"written_bytes\":%llu", static_cast<unsigned long long>(core.read_bytes),
           static_cast<unsigned long long>(core.written_bytes));
    print_memory(core);
    if (drawn) print_scalar_work(core.scalar_work);
    printf(",\"bank_group_conflict_cycles\":%.17g,\"bank_conflict_cycles\":%.17g,\"clock_reads\":[",
           core.bank_group_conflict_cycles, core.bank_conflict_cycles);
    for (size_t i = 0; i < core.clock_reads.size(); ++i) printf("%s%.17g", i ? "," : "", core.clock_reads[i]);
    printf("]}");
}

// Cycles of all cores that vector instructions lose to bank conflicts, of how many, for each that loses some.
void print_conflicts(const Price &price) {
    const char *separator = "";
    printf("\"bank_conflicts\":{");
    for (size_t op = 0; op < static_cast<size_t>(Op::Count); ++op) {
        double lost = 0, all = 0;
        for (const CoreCounters &core : price.cores) lost += core.vector_cycles[op].conflict_cycles, all += core.vector_cycles[op].repeat_cycles;
        if (lost <= 0) continue;
        printf("%s\"%s\":{\"lost_cycles\":%.17g,\"cycles\":%.17g}", separator, info(static_cast<Op>(op)).name, lost, all);
        separator = ",";
    }
    printf("},");
}

void report(const Price &price, const Timeline &timeline, const std::vector<TensorRange> &tensors,
            const std::vector<TensorCoverage> &coverage) {
    printf("{\"kernel_cycles\":%.17g,\"task_us\":%.17g,\"blocks\":%u,", price.kernel_cycles, price.task_us, price.blocks);
    printf("\"timeline_events\":%llu,\"timeline_written\":%llu,", static_cast<unsigned long long>(timeline.events()),
           static_cast<unsigned long long>(timeline.written()));
    constexpr Figure kMissing = &TensorCoverage::missing_bytes, kBeyond = &TensorCoverage::beyond_bytes;
    print_bytes("unwritten", tensors, coverage, true, kMissing, kMissing);
    print_bytes("unread", tensors, coverage, false, kMissing, kMissing);
    print_bytes("written_beyond", tensors, coverage, true, kBeyond, kBeyond);
    print_bytes("read_beyond", tensors, coverage, false, kBeyond, kBeyond);
    print_bytes("first_unwritten", tensors, coverage, true, kMissing, &TensorCoverage::first_missing);
    print_conflicts(price);
    printf("\"cores\":[");
    for (size_t i = 0; i < price.cores.size(); ++i) print_core(price.cores[i], i % price.composition.cores() < price.composition.cubes, timeline.on(), i ? "," : "");
    printf("]}\n");
}

std::unique_ptr<Timeline> timeline_of(int argc, char **argv) {
    if (argc == kArguments || argv[kArguments] == std::string("-")) return std::make_unique<Timeline>();
    return std::make_unique<Timeline>(argv[kArguments], std::stoull(argv[kArguments + 1]));
}

// What an earlier launch left in the cache, as save_cache wrote it; nothing where there is no such file.
std::vector<CachedLine> load_cache(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<CachedLine> lines;
    for (CachedLine line; file.read(reinterpret_cast<char *>(&line), sizeof line);) lines.push_back(line);
    return lines;
}

void save_cache(const std::string &path, const std::vector<CachedLine> &lines) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char *>(lines.data()), static_cast<std::streamsize>(lines.size() * sizeof(CachedLine)));
    if (!file) throw std::runtime_error("cannot write " + path);
}

void price(int argc, char **argv) {
    const Chip chip = load_chip(argv[2]);
    const std::vector<TensorRange> tensors = load_tensors(argv[3]);
    const Trace trace(argv[1]);
    Coverage coverage(tensors);
    const std::unique_ptr<Timeline> timeline = timeline_of(argc, argv);
    const std::string cache_path = argc == kMostArguments ? argv[argc - 1] : "";
    std::vector<CachedLine> l2;
    if (!cache_path.empty()) l2 = load_cache(cache_path);
    const Price price = price_trace(trace, chip, *timeline, coverage, l2);
    if (!cache_path.empty()) save_cache(cache_path, l2);
    timeline->finish();
    report(price, *timeline, tensors, coverage.of_tensors());
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc != asim::kArguments && argc != asim::kArguments + 2 && argc != asim::kMostArguments) {
        fprintf(stderr, "usage: %s TRACE CHIP TENSORS [TIMELINE|- MAX_EVENTS [CACHE]]\n", argv[0]);
        return asim::kUsageExit;
    }
    try {
        asim::price(argc, argv);
    } catch (const std::bad_alloc &) {
        fprintf(stderr, "out of memory\n");
        return asim::kOutOfMemoryExit;
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kMalformedExit;
    }
    return 0;
}

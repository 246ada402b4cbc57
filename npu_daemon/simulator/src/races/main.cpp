// Looks in a trace for a race, or for a read of what was never written; prints one JSON document. Trusted: no candidate code runs here.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>

#include "asim/races/find_race.h"
#include "asim/races/unwritten.h"

namespace asim {

namespace {

constexpr int kUsageExit = 2;
constexpr int kMalformedExit = 4;
constexpr int kOutOfMemoryExit = 5;
constexpr const char *kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
constexpr const char *kReasonNames[] = {"unordered", "unwritten", "stale", "line shared", "same bytes"};

// Lines `in|out ADDRESS BYTES NAME`: inputs are never written.
SharedMemory load_memory(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read tensors " + path);
    SharedMemory memory;
    std::string side, name;
    for (uint64_t address, bytes; file >> side >> address >> bytes >> name;) {
        if (side == "in") memory.add_constant(address, bytes);
    }
    return memory;
}

const char *name(bool value) { return value ? "true" : "false"; }

void print_side(const char *role, const Side &side) {
    const Instruction &instruction = info(side.record.op);
    printf("\"%s\":{\"block\":%u,\"cube\":%s,\"ordinal\":%llu,\"call\":\"%s\",\"pipe\":\"%s\",\"writes\":%s},", role, side.block,
           name(side.cube), static_cast<unsigned long long>(side.ordinal), instruction.name,
           kPipeNames[static_cast<int>(instruction.pipe)], name(side.writes));
}

void print_pair(const char *what, const std::optional<Race> &race, const Composition &composition) {
    printf("\"%s\":", what);
    if (!race) {
        printf("null");
        return;
    }
    printf("{\"cubes\":%u,\"vectors\":%u,", composition.cubes, composition.vectors);
    print_side("first", race->first);
    print_side("second", race->second);
    printf("\"space\":%u,\"begin\":%llu,\"end\":%llu,\"reason\":\"%s\"}", static_cast<unsigned>(race->space),
           static_cast<unsigned long long>(race->begin), static_cast<unsigned long long>(race->end), kReasonNames[static_cast<int>(race->reason)]);
}

void print(const std::optional<UnwrittenRead> &read, const Composition &composition) {
    printf("{\"read\":");
    if (!read) {
        printf("null}\n");
        return;
    }
    printf("{\"cubes\":%u,\"vectors\":%u,", composition.cubes, composition.vectors);
    print_side("side", read->side);
    printf("\"begin\":%llu,\"end\":%llu}}\n", static_cast<unsigned long long>(read->begin), static_cast<unsigned long long>(read->end));
}

void print(const Findings &findings, const Composition &composition) {
    printf("{");
    print_pair("race", findings.race, composition);
    printf(",");
    print_pair("rewritten", findings.rewritten, composition);
    printf("}\n");
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    const char *const kind = argc == 4 ? argv[3] : "";
    const bool explicit_only = std::strcmp(kind, "off") == 0, unwritten = std::strcmp(kind, "unwritten") == 0;
    if (!explicit_only && !unwritten && std::strcmp(kind, "on") != 0) {
        fprintf(stderr, "usage: %s TRACE TENSORS on|off|unwritten\n", argv[0]);
        return asim::kUsageExit;
    }
    try {
        const asim::Trace trace(argv[1]);
        if (unwritten) {
            asim::print(asim::first_unwritten_read(trace), trace.composition());
        } else {
            asim::print(asim::find_race(trace, asim::load_memory(argv[2]), !explicit_only), trace.composition());
        }
    } catch (const std::bad_alloc &) {
        fprintf(stderr, "out of memory\n");
        return asim::kOutOfMemoryExit;
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kMalformedExit;
    }
    return 0;
}

#include "asim/check/operand_overlap.h"

#include <algorithm>

#include "asim/check/check.h"

namespace asim {

namespace {

// Where an operand lies: `bytes` for each repeat, `step` apart.
struct Rows {
    int64_t begin, bytes, step;
};

Rows rows_of(const Operand &operand, uint32_t repeats, uint32_t widest_extent) {
    const int64_t extent = operand.extent_bytes, step = int64_t{operand.stride >> 16} * kUbBlockBytes;
    const int64_t before_last = (int64_t{repeats} - 1) * step;
    const auto begin = static_cast<int64_t>(operand.address);
    if (before_last < extent) return {begin, std::min<int64_t>(extent - before_last, kRepeatBytes), step};
    // A run of elements narrower than those of the result, or wider.
    const int64_t run = int64_t{kRepeatBytes} * extent / widest_extent;
    return {begin, run, run};
}

// Whether repeat `repeat` writes what one of those after it reads.
bool reaches_later(const Rows &written, const Rows &read, int64_t repeat, int64_t repeats) {
    const int64_t begin = written.begin + repeat * written.step, end = begin + written.bytes;
    if (read.step == 0) return repeat + 1 < repeats && begin < read.begin + read.bytes && read.begin < end;
    // The first repeat after this one whose operand ends after `begin`.
    const int64_t behind = begin - read.begin - read.bytes;
    const int64_t next = std::max(repeat + 1, behind < 0 ? 0 : behind / read.step + 1);
    return next < repeats && read.begin + next * read.step < end;
}

bool in_part(const Rows &written, const Rows &read, int64_t repeat) {
    const int64_t a = written.begin + repeat * written.step, b = read.begin + repeat * read.step;
    return a != b && a < b + read.bytes && b < a + written.bytes;
}

// Sums and the like of many repeats in one place, their second operand.
bool gathers(Op op, uint32_t index, const Rows &written, const Rows &read) {
    const bool allowed = op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Max || op == Op::Min || op == Op::AddRelu || op == Op::SubRelu;
    return allowed && index == 2 && (written.step == 0 || read.step == 0);
}

// Accumulations of halfs into floats allow no overlap at all (pages of Axpy and MulAddDst, constraints).
bool must_be_apart(Op op, const Operand &result, const Operand &operand) {
    return (op == Op::Axpy || op == Op::MulAddDst) && operand.extent_bytes < result.extent_bytes;
}

bool has_gaps(const Operand &operand) { return (operand.stride & 0xffff) > 1; }

bool share_bytes(const Operand &a, const Operand &b) {
    return a.extent_bytes != 0 && b.extent_bytes != 0 && a.address < b.address + b.extent_bytes && b.address < a.address + a.extent_bytes;
}

// Results of another size than what they are computed of: each repeat adds its share of the result.
void check_behind(Op op, uint32_t repeats, const Operand &result, const Operand &operand) {
    const int64_t share = (int64_t{result.extent_bytes} + repeats - 1) / repeats;
    const Rows written{static_cast<int64_t>(result.address), share, share}, read = rows_of(operand, repeats, kRepeatBytes);
    for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        if (!reaches_later(written, read, repeat, repeats)) continue;
        fault(FaultKind::RuntimeFault, info(op).name,
              "dst overlaps src: repeat %lld writes what a later repeat reads, at unified buffer byte %lld; use another buffer, or begin "
              "where src does",
              static_cast<long long>(repeat), static_cast<long long>(written.begin + repeat * written.step));
    }
}

void check_same(Op op, uint32_t repeats, std::initializer_list<Operand> operands) {
    const Operand &result = *operands.begin();
    uint32_t widest = 0;
    for (const Operand &operand : operands) widest = std::max(widest, operand.extent_bytes);
    for (uint32_t index = 1; index < operands.size(); ++index) {
        const Operand &operand = operands.begin()[index];
        const bool apart = operand.address >= result.address + result.extent_bytes || result.address >= operand.address + operand.extent_bytes;
        if (apart || has_gaps(result) || has_gaps(operand)) continue;
        if (must_be_apart(op, result, operand)) {
            fault(FaultKind::RuntimeFault, info(op).name, "dst overlaps source %u: floats that halfs are added to lie apart from them", index - 1);
        }
        const Rows written = rows_of(result, repeats, widest), read = rows_of(operand, repeats, widest);
        const bool in_place = written.begin == read.begin && written.step == read.step && written.step >= written.bytes;
        if (in_place || gathers(op, index, written, read)) continue;
        const bool widths_differ = op == Op::Cast || op == Op::Cast64 || op == Op::AddReluCast || op == Op::SubReluCast || op == Op::MulCast;
        for (int64_t repeat = 0; repeat < repeats; ++repeat) {
            const bool later = reaches_later(written, read, repeat, repeats);
            if (!later && (widths_differ || !in_part(written, read, repeat))) continue;
            fault(FaultKind::RuntimeFault, info(op).name,
                  later ? "dst overlaps source %u: repeat %lld writes what a later repeat reads, at unified buffer byte %lld; use another buffer, "
                          "or the same place and strides"
                        : "dst overlaps source %u in part, in repeat %lld at unified buffer byte %lld: they must be the same or apart",
                  index - 1, static_cast<long long>(repeat), static_cast<long long>(written.begin + repeat * written.step));
        }
    }
}

const char *role(size_t source, size_t sources) {
    constexpr const char *kNames[] = {"src0", "src1", "src2", "src3"};
    return sources == 1 ? "src" : kNames[source < 4 ? source : 3];
}

}  // namespace

void check_overlap(Op op, uint32_t repeats, std::initializer_list<Operand> operands) {
    const OverlapRule rule = info(op).overlap;
    if (rule == OverlapRule::Free || operands.size() < 2) return;
    if (rule == OverlapRule::Same) return check_same(op, repeats, operands);
    const Operand &result = *operands.begin();
    for (size_t index = 1; index < operands.size(); ++index) {
        const Operand &operand = operands.begin()[index];
        if (!share_bytes(result, operand)) continue;
        if (rule == OverlapRule::Behind) {
            check_behind(op, repeats, result, operand);
            continue;
        }
        fault(FaultKind::RuntimeFault, info(op).name,
              "dst overlaps %s at unified buffer byte %llu: the page of this call forbids it, also where they are the same; use another buffer",
              role(index - 1, operands.size() - 1), static_cast<unsigned long long>(std::max<uint64_t>(result.address, operand.address)));
    }
}

namespace {

struct Contract {
    const char *call;
    OverlapRule overlap;
};

constexpr Contract kContracts[] = {
#define CONTRACT(name, call, overlap, page) {call, OverlapRule::overlap},
#include "asim/check/contracts.def"
};

struct Bounds {
    const char *call, *parameter;
    int64_t least, most, multiple;
};

constexpr Bounds kRanges[] = {
#define RANGE(name, call, parameter, least, most, multiple, page) {call, parameter, least, most, multiple},
#include "asim/check/contracts.def"
};

}  // namespace

void check_range(ParameterRange which, int64_t value) {
    const Bounds &bounds = kRanges[static_cast<size_t>(which)];
    if (value < bounds.least || value > bounds.most) {
        fault(FaultKind::RuntimeFault, bounds.call, "%s is %lld, expected %lld to %lld", bounds.parameter, static_cast<long long>(value),
              static_cast<long long>(bounds.least), static_cast<long long>(bounds.most));
    }
    if (value % bounds.multiple == 0) return;
    fault(FaultKind::RuntimeFault, bounds.call, "%s is %lld, expected a multiple of %lld", bounds.parameter, static_cast<long long>(value),
          static_cast<long long>(bounds.multiple));
}

void check_contract(LibraryContract call, Extent dst, std::initializer_list<Extent> sources) {
    const Contract &contract = kContracts[static_cast<size_t>(call)];
    if (contract.overlap == OverlapRule::Free) return;
    const auto begin = reinterpret_cast<uintptr_t>(dst.base);
    size_t index = 0;
    for (const Extent &source : sources) {
        const auto other = reinterpret_cast<uintptr_t>(source.base);
        const size_t number = index++;
        if (source.bytes == 0 || dst.bytes == 0 || begin >= other + source.bytes || other >= begin + dst.bytes) continue;
        if (contract.overlap == OverlapRule::Same && begin == other) continue;
        fault(FaultKind::RuntimeFault, contract.call,
              contract.overlap == OverlapRule::Same ? "dst overlaps %s in part: they must begin at the same byte, or lie apart"
                                                : "dst overlaps %s: the page of this call forbids it, also where they are the same; use another buffer",
              role(number, sources.size()));
    }
}

void check_beside_scratch(LibraryContract call, const void *operand, uint64_t bytes, const void *scratch, uint64_t scratch_bytes) {
    const auto first = reinterpret_cast<uintptr_t>(operand), base = reinterpret_cast<uintptr_t>(scratch);
    if (bytes == 0 || scratch_bytes == 0 || first >= base + scratch_bytes || base >= first + bytes) return;
    fault(FaultKind::RuntimeFault, kContracts[static_cast<size_t>(call)].call,
          "an operand overlaps the temporary buffer of %llu bytes, which this call forbids: use another buffer",
          static_cast<unsigned long long>(scratch_bytes));
}

void check_operands(LibraryContract call, const void *dst, uint64_t dst_bytes, const void *src, uint64_t src_bytes) {
    check_contract(call, {dst, dst_bytes}, {{src, src_bytes}});
}

}  // namespace asim

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

}  // namespace

void check_overlap(Op op, uint32_t repeats, std::initializer_list<Operand> operands) {
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
        const bool widths_differ = op == Op::Cast || op == Op::Cast64;
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

}  // namespace asim

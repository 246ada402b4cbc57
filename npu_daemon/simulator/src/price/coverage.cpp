#include "asim/timing/coverage.h"

#include <algorithm>

#include "asim/numeric/bit_range.h"

namespace asim {

namespace {

constexpr uint64_t kScalarReadBytes = 64;  // a data cache line
constexpr uint64_t kAllocationUnit = 32;   // aclrtMalloc rounds up to it, and adds one
constexpr size_t kMostStretches = 1 << 14;

}  // namespace

TouchedBytes::TouchedBytes(const TensorRange &range)
    : begin_(range.address), end_(range.address + range.bytes), output_(range.output) {}

void TouchedBytes::mark_copy(uint32_t core, uint64_t address, uint64_t bytes) {
    if (address >= begin_ && address < end_ + kMostSlackBytes && address + bytes > end_) {
        beyond_bytes_ = std::max(beyond_bytes_, address + bytes - end_);
    }
    mark(core, address, bytes);
}

void TouchedBytes::mark(uint32_t core, uint64_t address, uint64_t bytes) {
    const uint64_t from = std::max(address, begin_);
    const uint64_t to = std::min(address + bytes, end_);
    if (from >= to) return;
    if (core >= last_.size()) last_.resize(core + 1);
    Stretch &last = last_[core];
    if (from == last.end) {
        last.end = to;
        return;
    }
    put_away(last);
    last = {from, to};
}

void TouchedBytes::put_away(Stretch &last) {
    if (last.begin < last.end) bits_.empty() ? stretches_.push_back(last) : set_bits_of(last);
    last = {};
    if (stretches_.size() < kMostStretches) return;
    merge();
    if (stretches_.size() > kMostStretches / 2) use_bits();
}

void TouchedBytes::set_bits_of(const Stretch &stretch) { set_bits(bits_.data(), stretch.begin - begin_, stretch.end - begin_); }

// Makes one of stretches that overlap or meet.
void TouchedBytes::merge() {
    std::sort(stretches_.begin(), stretches_.end(), [](const Stretch &a, const Stretch &b) { return a.begin < b.begin; });
    size_t merged = 0;
    for (const Stretch &stretch : stretches_) {
        if (merged > 0 && stretch.begin <= stretches_[merged - 1].end) {
            stretches_[merged - 1].end = std::max(stretches_[merged - 1].end, stretch.end);
        } else {
            stretches_[merged++] = stretch;
        }
    }
    stretches_.resize(merged);
}

// Bits take the place of stretches where merging does not halve their number.
void TouchedBytes::use_bits() {
    bits_.resize((end_ - begin_ + kWordBits - 1) / kWordBits);
    for (const Stretch &stretch : stretches_) set_bits_of(stretch);
    stretches_.clear();
}

uint64_t TouchedBytes::first_missing() const {
    if (bits_.empty()) return stretches_.empty() || stretches_[0].begin > begin_ ? 0 : stretches_[0].end - begin_;
    size_t word = 0;
    while (word + 1 < bits_.size() && ~bits_[word] == 0) ++word;
    const uint64_t missing = ~bits_[word];
    return word * kWordBits + (missing == 0 ? kWordBits : static_cast<uint64_t>(__builtin_ctzll(missing)));
}

TensorCoverage TouchedBytes::coverage() {
    for (Stretch &last : last_) put_away(last);
    merge();
    uint64_t touched = 0;
    for (const Stretch &stretch : stretches_) touched += stretch.end - stretch.begin;
    for (const uint64_t word : bits_) touched += static_cast<uint64_t>(__builtin_popcountll(word));
    const uint64_t bytes = end_ - begin_;
    const uint64_t promised = (0 - bytes) % kAllocationUnit + kAllocationUnit;
    return {bytes - touched, first_missing(), beyond_bytes_ > promised ? beyond_bytes_ : 0};
}

void Coverage::mark(uint32_t core, const Entry &entry) {
    const Record &record = entry.record;
    const bool scalar = entry.kind == RecordKind::Access;
    const bool write = scalar ? record.repeats == 1 : writes_gm(record.op);
    const Operand &operand = entry.operands[scalar || write ? 0 : 1];
    if (operand.space != static_cast<uint64_t>(Space::Gm)) return;
    const uint64_t line = operand.address / kScalarReadBytes * kScalarReadBytes;
    const uint64_t copied_span = uint64_t{record.repeats} * operand.stride + record.burst_bytes;
    const uint64_t span = scalar ? kScalarReadBytes + record.dtype_bytes : copied_span;
    for (TouchedBytes &tensor : tensors_) {
        if (tensor.output() != write || !tensor.near(scalar ? line : operand.address, span)) continue;
        if (!scalar) {
            for (uint64_t i = 0; i < record.repeats; ++i) tensor.mark_copy(core, operand.address + i * operand.stride, record.burst_bytes);
        } else if (write) {
            tensor.mark(core, operand.address, record.dtype_bytes);
        } else {    // reads of one line are folded into one record
            tensor.mark(core, line, kScalarReadBytes);
        }
    }
}

std::vector<TensorCoverage> Coverage::of_tensors() {
    std::vector<TensorCoverage> coverage;
    for (TouchedBytes &tensor : tensors_) coverage.push_back(tensor.coverage());
    return coverage;
}

}  // namespace asim

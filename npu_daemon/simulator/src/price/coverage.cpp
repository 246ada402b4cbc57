#include "coverage.h"

#include <algorithm>

namespace asim {

namespace {

constexpr uint64_t kScalarReadBytes = 64;  // a data cache line
constexpr uint64_t kAllocationUnit = 32;   // aclrtMalloc rounds up to it, and adds one
constexpr uint64_t kWordBytes = 64;         // of a tensor, that one word of bits stands for
constexpr uint64_t kMostSlackBytes = 544;  // of an allocation (runtime/gm.cpp)

// One bit a byte of a tensor.
class TouchedBytes {
public:
    explicit TouchedBytes(const TensorRange &range) : range_(range), bits_((range.bytes + kWordBytes - 1) / kWordBytes) {}

    // A copy: what it touches behind the end counts too.
    void mark_copy(uint64_t address, uint64_t bytes) {
        const uint64_t end = range_.address + range_.bytes;
        if (address >= range_.address && address < end + kMostSlackBytes && address + bytes > end) {
            beyond_bytes_ = std::max(beyond_bytes_, address + bytes - end);
        }
        mark(address, bytes);
    }

    void mark(uint64_t address, uint64_t bytes) {
        const uint64_t from = std::max(address, range_.address);
        const uint64_t to = std::min(address + bytes, range_.address + range_.bytes);
        if (from >= to) return;
        const uint64_t first = (from - range_.address) / kWordBytes, last = (to - 1 - range_.address) / kWordBytes;
        const uint64_t head = ~0ull << (from - range_.address) % kWordBytes;
        const uint64_t tail = ~0ull >> (kWordBytes - 1 - (to - 1 - range_.address) % kWordBytes);
        if (first == last) {
            bits_[first] |= head & tail;
            return;
        }
        bits_[first] |= head;
        std::fill(bits_.begin() + static_cast<std::ptrdiff_t>(first) + 1, bits_.begin() + static_cast<std::ptrdiff_t>(last), ~0ull);
        bits_[last] |= tail;
    }

    bool output() const { return range_.output; }

    TensorCoverage coverage() const {
        uint64_t touched = 0;
        for (const uint64_t word : bits_) touched += static_cast<uint64_t>(__builtin_popcountll(word));
        const uint64_t promised = (0 - range_.bytes) % kAllocationUnit + kAllocationUnit;
        return {range_.bytes - touched, beyond_bytes_ > promised ? beyond_bytes_ : 0};
    }

private:
    TensorRange range_;
    std::vector<uint64_t> bits_;
    uint64_t beyond_bytes_ = 0;
};

// The operand in global memory that the record touches on the given side, or nothing.
const Operand *gm_operand(const Entry &entry, bool write) {
    const Record &record = entry.record;
    const bool scalar = record.op == Op::ScalarAccess && (record.repeats == 1) == write;
    const bool copy = write ? writes_gm(record.op) : reads_gm(record.op);
    const uint32_t index = copy && !write ? 1 : 0;
    if ((!scalar && !copy) || record.operands <= index) return nullptr;
    const Operand &operand = entry.operands[index];
    return operand.space == static_cast<uint64_t>(Space::Gm) ? &operand : nullptr;
}

void mark_record(std::vector<TouchedBytes> &tensors, const Entry &entry) {
    const Operand *sides[] = {gm_operand(entry, false), gm_operand(entry, true)};
    if (sides[0] == nullptr && sides[1] == nullptr) return;
    const bool scalar = entry.record.op == Op::ScalarAccess;
    const uint64_t bursts = scalar ? 1 : entry.record.repeats;
    const uint64_t bytes = scalar ? kScalarReadBytes : entry.record.burst_bytes;
    for (TouchedBytes &tensor : tensors) {
        const Operand *operand = sides[tensor.output()];
        if (operand == nullptr) continue;
        const bool line = scalar && !tensor.output();  // reads of one line are folded into one record
        const uint64_t address = line ? operand->address / kScalarReadBytes * kScalarReadBytes : operand->address;
        for (uint64_t i = 0; i < bursts; ++i) {
            const uint64_t at = address + i * operand->stride;
            scalar ? tensor.mark(at, line ? bytes : entry.record.dtype_bytes) : tensor.mark_copy(at, bytes);
        }
    }
}

}  // namespace

std::vector<TensorCoverage> tensor_coverage(const Trace &trace, const std::vector<TensorRange> &tensors) {
    std::vector<TouchedBytes> touched(tensors.begin(), tensors.end());
    for (uint32_t block = 0; block < trace.block_count(); ++block) {
        Cursor cursor(trace, block);
        while (const Entry *entry = cursor.next()) mark_record(touched, *entry);
    }
    std::vector<TensorCoverage> coverage;
    for (const TouchedBytes &tensor : touched) coverage.push_back(tensor.coverage());
    return coverage;
}

}  // namespace asim

#include "coverage.h"

#include <algorithm>

namespace asim {

namespace {

// One bit a byte of an output.
class WrittenBytes {
public:
    explicit WrittenBytes(const OutputRange &range) : range_(range), bits_((range.bytes + 63) / 64) {}

    void mark(uint64_t address, uint64_t bytes) {
        const uint64_t from = std::max(address, range_.address);
        const uint64_t to = std::min(address + bytes, range_.address + range_.bytes);
        for (uint64_t at = from; at < to;) {
            const uint64_t offset = at - range_.address;
            const uint64_t count = std::min<uint64_t>(64 - offset % 64, to - at);
            const uint64_t ones = count == 64 ? ~0ull : (1ull << count) - 1;
            bits_[offset / 64] |= ones << (offset % 64);
            at += count;
        }
    }

    uint64_t missing() const {
        uint64_t written = 0;
        for (const uint64_t word : bits_) written += static_cast<uint64_t>(__builtin_popcountll(word));
        return range_.bytes - written;
    }

private:
    OutputRange range_;
    std::vector<uint64_t> bits_;
};

void mark_record(std::vector<WrittenBytes> &outputs, const Entry &entry) {
    const Record &record = entry.record;
    const Operand &destination = entry.operands[0];
    const bool scalar_write = record.op == Op::ScalarAccess && record.repeats == 1;
    if (record.operands == 0 || destination.space != static_cast<uint64_t>(Space::Gm)) return;
    if (record.op != Op::CopyUbToGm && !scalar_write) return;
    const uint64_t bursts = scalar_write ? 1 : record.repeats;
    const uint64_t bytes = scalar_write ? record.dtype_bytes : record.burst_bytes;
    for (WrittenBytes &output : outputs) {
        for (uint64_t i = 0; i < bursts; ++i) output.mark(destination.address + i * destination.stride, bytes);
    }
}

}  // namespace

std::vector<uint64_t> unwritten_bytes(const Trace &trace, const std::vector<OutputRange> &outputs) {
    std::vector<WrittenBytes> written(outputs.begin(), outputs.end());
    for (uint32_t block = 0; block < trace.block_count(); ++block) {
        Cursor cursor(trace, block);
        for (Entry entry; cursor.next(entry);) mark_record(written, entry);
    }
    std::vector<uint64_t> missing;
    for (const WrittenBytes &output : written) missing.push_back(output.missing());
    return missing;
}

}  // namespace asim

// Sort32 and MrgSort.
#include "asim/semantics/sort.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "asim/check/operand_overlap.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"
#include "asim/numeric/rounding.h"
#include "asim/semantics/copy.h"
#include "asim/semantics/indexed_lanes.h"

namespace asim {

namespace {

template <typename T>
T score_at(const uint8_t *record) {
    T value;
    std::memcpy(&value, record, sizeof value);
    return value;
}

uint32_t queue_count(const MergeQueues &queues) { return static_cast<uint32_t>(__builtin_popcount(queues.valid)); }

void check_queues(const MergeQueues &queues, uint32_t repeats) {
    if (queues.valid != 0b11 && queues.valid != 0b111 && queues.valid != 0b1111) {
        fault(FaultKind::RuntimeFault, "MrgSort", "validBit is %u, expected 3, 7 or 15: the first two, three or four queues", queues.valid);
    }
    check_range(ParameterRange::MergeRepeats, repeats);
    for (uint32_t i = 0; i < queue_count(queues); ++i) check_range(ParameterRange::MergeLength, queues.length[i]);
    if (repeats <= 1) return;
    bool regular = queue_count(queues) == kMergeQueues && !queues.stop_when_one_is_empty;
    for (uint32_t i = 1; i < queue_count(queues); ++i) {
        regular = regular && queues.length[i] == queues.length[0] &&
                  queues.base[i] == queues.base[i - 1] + uint64_t{queues.length[0]} * kSortRecordBytes;
    }
    if (!regular) {
        fault(FaultKind::RuntimeFault, "MrgSort",
              "repeatTime above 1 needs four queues of one length that follow each other, and no suspension");
    }
}

// Writes the merged records of one repeat and returns their number.
template <typename T>
uint32_t merge_once(uint8_t *dst, const MergeQueues &queues, uint64_t skip_bytes, uint32_t merged[kMergeQueues]) {
    std::fill(merged, merged + kMergeQueues, 0u);
    for (uint32_t total = 0;; ++total) {
        const uint8_t *best = nullptr;
        uint32_t from = 0;
        for (uint32_t i = 0; i < queue_count(queues); ++i) {
            if (merged[i] == queues.length[i]) {
                if (queues.stop_when_one_is_empty && queues.length[i] > 0) return total;
                continue;
            }
            const uint8_t *head = queues.base[i] + skip_bytes + uint64_t{merged[i]} * kSortRecordBytes;
            if (best == nullptr || score_at<T>(head) > score_at<T>(best)) {
                best = head;
                from = i;
            }
        }
        if (best == nullptr) return total;
        std::memcpy(dst + uint64_t{total} * kSortRecordBytes, best, kSortRecordBytes);
        ++merged[from];
    }
}

}  // namespace

template <typename T>
void sort_repeats(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint32_t repeats) {
    check_units("Sort32", "repeatTime", repeats);
    const uint32_t elements = repeats * kSortedTogether;
    const Operand out = range_operand(Op::Sort32, "dst", dst, uint64_t{elements} * kSortRecordBytes);
    const Operand first = range_operand(Op::Sort32, "src0", scores, uint64_t{elements} * sizeof(T));
    const Operand second = range_operand(Op::Sort32, "src1", indices, uint64_t{elements} * sizeof(uint32_t));
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        T values[kSortedTogether];
        uint32_t ids[kSortedTogether], order[kSortedTogether];
        std::memcpy(values, scores + repeat * sizeof values, sizeof values);
        std::memcpy(ids, indices + repeat * sizeof ids, sizeof ids);
        std::iota(order, order + kSortedTogether, 0u);
        std::stable_sort(order, order + kSortedTogether, [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
        uint8_t *to = dst + uint64_t{repeat} * kSortedTogether * kSortRecordBytes;
        for (uint32_t i = 0; i < kSortedTogether; ++i, to += kSortRecordBytes) {
            std::memset(to, 0, kSortRecordBytes);
            std::memcpy(to, &values[order[i]], sizeof(T));
            std::memcpy(to + 4, &ids[order[i]], sizeof(uint32_t));
        }
    }
    emit_vector(Op::Sort32, sizeof(T), repeats, {out, first, second});
}

template <typename T>
void sort32(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint32_t repeats) {
    check_range(ParameterRange::SortRepeats, repeats);
    constexpr uint32_t kRecordsOfRepeat = kSortedTogether * kSortRecordBytes;
    if (repeats == 0) return;
    const uint64_t elements = uint64_t{repeats} * kSortedTogether;
    check_ub_alignment("Sort32", "dst", checked_ub("Sort32", dst, elements * kSortRecordBytes), kRecordsOfRepeat);
    check_ub_alignment("Sort32", "src0", checked_ub("Sort32", scores, elements * sizeof(T)), kSortedTogether * sizeof(T));
    check_ub_alignment("Sort32", "src1", checked_ub("Sort32", indices, elements * sizeof(uint32_t)), kSortedTogether * sizeof(uint32_t));
    sort_repeats<T>(dst, scores, indices, repeats);
}

namespace {

// Merges queues into one; `merged` tells how many records were taken from each, as does a register if there is one in `left_in`.
template <typename T>
void merge_queues(uint8_t *dst, const MergeQueues &queues, uint32_t (&merged)[kMergeQueues], uint32_t repeats, uint16_t left_in = 0) {
    check_units("MrgSort", "repeatTime", repeats);
    uint64_t records = 0;
    Operand in[kMergeQueues] = {};
    for (uint32_t i = 0; i < queue_count(queues); ++i) {
        records += queues.length[i];
        in[i] = range_operand(Op::MrgSort, "src", queues.base[i], uint64_t{queues.length[i]} * repeats * kSortRecordBytes,
                              kSortRecordBytes);
    }
    std::vector<uint8_t> result(records * repeats * kSortRecordBytes);
    uint64_t written = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        written += merge_once<T>(result.data() + written, queues, repeat * records * kSortRecordBytes, merged) * kSortRecordBytes;
    }
    const Operand out = range_operand(Op::MrgSort, "dst", dst, written, kSortRecordBytes);
    std::copy_n(result.data(), written, dst);
    const auto groups = static_cast<uint32_t>((written / kSortRecordBytes + kSortedTogether - 1) / kSortedTogether);
    emit_vector(Op::MrgSort, sizeof(T), groups, {out, in[0], in[1], in[2], in[3]}, left_in);
}

}  // namespace

template <typename T>
void merge_sort(uint8_t *dst, MergeQueues queues, uint32_t *taken, uint32_t repeats) {
    uint32_t merged[kMergeQueues] = {};
    check_queues(queues, repeats);
    merge_queues<T>(dst, queues, merged, repeats, taken == nullptr ? leaves_in(VectorRegister::MergeCounts) : uint16_t{0});
    if (taken == nullptr) {
        std::copy_n(merged, kMergeQueues, vector_registers().merged);
        return;
    }
    if (queues.stop_when_one_is_empty) synchronise(Pipe::V, Pipe::S);   // for the counts that it returns
    kernel_access(taken, sizeof merged, true);
    std::copy_n(merged, kMergeQueues, taken);
}

namespace {

// Merges up to four runs of `run` records that begin at `from`, of `left` in all, into one at `to`.
template <typename T>
void merge_runs(uint8_t *to, uint8_t *from, uint32_t run, uint32_t left) {
    MergeQueues queues;
    uint32_t count = 0;
    for (; count < kMergeQueues && count * run < left; ++count) {
        queues.base[count] = from + uint64_t{count} * run * kSortRecordBytes;
        queues.length[count] = static_cast<uint16_t>(std::min(run, left - count * run));
    }
    queues.valid = (1u << count) - 1;
    if (count > 1) {
        uint32_t taken[kMergeQueues];
        return merge_queues<T>(to, queues, taken, 1);
    }
    const uint32_t bytes = queues.length[0] * kSortRecordBytes / kUbBlockBytes * kUbBlockBytes;
    copy_ub_to_ub(to, from, 1, bytes, bytes, bytes);
}

}  // namespace

template <typename T>
void sort_all(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint8_t *other, uint32_t repeats, bool whole) {
    const LibraryCall call;
    check_units("Sort32", "repeatTime", repeats);
    const uint64_t elements = uint64_t{repeats} * kSortedTogether, records = elements * kSortRecordBytes;
    check_contract(LibraryContract::Sort, {dst, records}, {{scores, elements * sizeof(T)}, {indices, elements * sizeof(uint32_t)}});
    for (const auto &[operand, bytes] : {std::pair{static_cast<const uint8_t *>(dst), records}, {scores, elements * sizeof(T)}, {indices, elements * sizeof(uint32_t)}}) {
        if (whole) check_beside_scratch(LibraryContract::Sort, operand, bytes, other, records);
    }
    sort_repeats<T>(dst, scores, indices, repeats);
    if (!whole) return;
    const uint32_t total = repeats * kSortedTogether;
    uint8_t *from = dst, *to = other;
    for (uint32_t run = kSortedTogether; run < total; run *= kMergeQueues) {
        for (uint32_t start = 0; start < total; start += kMergeQueues * run) {
            const uint64_t offset = uint64_t{start} * kSortRecordBytes;
            merge_runs<T>(to + offset, from + offset, run, total - start);
        }
        std::swap(from, to);
    }
    const uint32_t bytes = total * kSortRecordBytes / kUbBlockBytes * kUbBlockBytes;
    if (from != dst) copy_ub_to_ub(dst, from, 1, bytes, bytes, bytes);
}

template void sort_repeats<half>(uint8_t *, const uint8_t *, const uint8_t *, uint32_t);
template void sort_repeats<float>(uint8_t *, const uint8_t *, const uint8_t *, uint32_t);
template void sort32<half>(uint8_t *, const uint8_t *, const uint8_t *, uint32_t);
template void sort32<float>(uint8_t *, const uint8_t *, const uint8_t *, uint32_t);
template void sort_all<half>(uint8_t *, const uint8_t *, const uint8_t *, uint8_t *, uint32_t, bool);
template void sort_all<float>(uint8_t *, const uint8_t *, const uint8_t *, uint8_t *, uint32_t, bool);
template void merge_sort<half>(uint8_t *, MergeQueues, uint32_t *, uint32_t);
template void merge_sort<float>(uint8_t *, MergeQueues, uint32_t *, uint32_t);

}  // namespace asim

// TopK: the largest or smallest values of rows and their indices, by Sort32 and merging (asc-devkit, adv_api/detail/sort/topk).
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/library_steps.h"
#include "asim/api/library_tiling.h"
#include "asim/api/vector_gather.h"
#include "asim/api/vector_index.h"
#include "asim/api/vector_sort.h"

namespace AscendC {

#ifndef ASIM_TOPK_MODE      // of programs of one file, host headers have it, too
#define ASIM_TOPK_MODE
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
#endif
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };
struct TopKConfig {
    TopKAlgo algo = TopKAlgo::MERGE_SORT;
    TopKOrder order = TopKOrder::UNSET;
    bool sorted = true;
};
constexpr TopKConfig defaultTopKConfig = {TopKAlgo::MERGE_SORT, TopKOrder::UNSET, true};

struct TopKInfo {
    int32_t outter = 1;
    int32_t inner;
    int32_t n;
};

namespace composed_calls {

template <typename T>
void sort_in_library(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &indices, int32_t repeats) {
    asim::sort_repeats<T>(dst.bytes(), src.bytes(), indices.bytes(), static_cast<uint32_t>(repeats));
}

constexpr uint32_t kSortedRun = 32;     // records that Sort32 leaves in order
constexpr uint32_t kMergeWays = 4;

// Elements of T that so many records take.
template <typename T>
constexpr uint32_t record_elems(uint32_t records) {
    return records * (asim::kSortRecordBytes / sizeof(T));
}

// Two copies of a row's records; `current` says which holds the result of the last step.
template <typename T>
struct Records {
    LocalTensor<T> copies[2];
    uint32_t row_records;
    uint32_t current = 0;

    const LocalTensor<T> &from() const { return copies[current]; }
    const LocalTensor<T> &to() const { return copies[1 - current]; }
    // What is in one copy is also put into the other.
    void mirror(const LocalTensor<T> &dst, const LocalTensor<T> &src) const {
        DataCopy(dst, src, record_elems<T>(row_records));
        PipeBarrier<PIPE_V>();
    }
};

// Runs of 32 become runs of 128, 512 and so on, four at a time, all that are complete. Returns the length of the runs.
template <typename T>
uint32_t merge_fours(Records<T> &records) {
    uint32_t run = kSortedRun;
    for (; run * kMergeWays <= records.row_records; run *= kMergeWays) {
        const auto length = static_cast<uint16_t>(run);
        const uint16_t lengths[] = {length, length, length, length};
        const uint32_t step = record_elems<T>(run);
        const LocalTensor<T> &src = records.from();
        const MrgSortSrcList<T> list(src, src[step], src[2 * step], src[3 * step]);
        MrgSort<T>(records.to(), list,
                   MrgSort4Info(lengths, false, 15, static_cast<uint16_t>(records.row_records / (run * kMergeWays))));
        PipeBarrier<PIPE_V>();
        records.mirror(src, records.to());
        records.current = 1 - records.current;
    }
    return run;
}

// The runs that are left, longest first, are merged one after another, never more than `k` records of them.
template <typename T>
void merge_rest(Records<T> &records, uint32_t run, uint32_t k) {
    uint32_t merged = 0;
    for (uint32_t left = records.row_records, length = run; length >= kSortedRun; length /= kMergeWays) {
        for (; left >= length; left -= length) {
            if (merged > 0) {
                const auto first = static_cast<uint16_t>(merged < k ? merged : k);
                const auto next = static_cast<uint16_t>(length < k ? length : k);
                const uint16_t lengths[] = {first, next, 0, 0};
                const LocalTensor<T> &src = records.from();
                const MrgSortSrcList<T> list(src, src[record_elems<T>(merged)], src, src);
                MrgSort<T>(records.to(), list, MrgSort4Info(lengths, false, 3, 1));
                PipeBarrier<PIPE_V>();
                records.current = 1 - records.current;
            }
            merged += length;
        }
    }
}

// The first `k` records as values and indices.
template <typename T>
void take_records(const LocalTensor<T> &values, const LocalTensor<int32_t> &indices, const LocalTensor<T> &records, uint32_t k) {
    constexpr uint8_t kFirstOfTwo = 1, kSecondOfTwo = 2, kFirstOfFour = 3;
    const GatherMaskParams params(1, 1, 8, 1);
    uint64_t taken = 0;
    GatherMask<T>(values, records, sizeof(T) == sizeof(float) ? kFirstOfTwo : kFirstOfFour, true, record_elems<T>(k), params,
                  taken);
    GatherMask<float>(indices.template ReinterpretCast<float>(), records.template ReinterpretCast<float>(), kSecondOfTwo, true,
                      record_elems<float>(k), params, taken);
    PipeBarrier<PIPE_V>();
}

template <typename T>
struct TopKOperands {
    LocalTensor<T> values, source;
    LocalTensor<int32_t> indices, source_indices;
    LocalTensor<T> scratch;
    uint32_t k;
    bool largest;
};

template <typename T>
void top_of_row(const TopKOperands<T> &operands, const TopKInfo &info, uint32_t row) {
    const auto inner = static_cast<uint32_t>(info.inner), elems = record_elems<T>(inner);
    Records<T> records{{operands.scratch, operands.scratch[elems]}, inner};
    LocalTensor<T> source = operands.source[row * inner];
    if (!operands.largest) {
        Steps<T>(inner).muls(records.copies[1], source, T(-1));
        source = records.copies[1];
    }
    sort_in_library<T>(records.copies[0], source, operands.source_indices.template ReinterpretCast<uint32_t>(),
              static_cast<int32_t>(inner / kSortedRun));
    PipeBarrier<PIPE_V>();
    records.mirror(records.copies[1], records.copies[0]);
    const uint32_t run = merge_fours(records);
    merge_rest(records, run, operands.k);
    constexpr uint32_t values_unit = asim::kUbBlockBytes / sizeof(T), indices_unit = asim::kUbBlockBytes / sizeof(int32_t);
    take_records(operands.values[row * AlignUp(operands.k, values_unit)],
                 operands.indices[row * AlignUp(operands.k, indices_unit)], records.from(), operands.k);
}

// Which elements of the 32 records of a row are the values, or the indices, of the first `k`.
template <typename Bits>
void select_records(const LocalTensor<Bits> &bits, uint32_t words, uint32_t k, uint32_t stride_elems, uint32_t place) {
    constexpr uint32_t width = sizeof(Bits) * 8;
    for (uint32_t word = 0; word < words; ++word) {
        Bits value = 0;
        for (uint32_t bit = 0; bit < width; ++bit) {
            const uint32_t element = word * width + bit;
            if (element % stride_elems == place && element / stride_elems < k) value |= static_cast<Bits>(Bits(1) << bit);
        }
        bits.SetValue(word, value);
    }
}

// Rows of 32, all at once; results lie one after another.
template <typename T>
void top_of_short_rows(const TopKOperands<T> &operands, const TopKInfo &info) {
    using Bits = std::conditional_t<sizeof(T) == sizeof(float), uint32_t, uint16_t>;
    const auto rows = static_cast<uint32_t>(info.outter), records = rows * kSortedRun;
    const LocalTensor<T> sorted = operands.scratch, negated = operands.scratch[record_elems<T>(records)];
    const LocalTensor<Bits> masks = negated[operands.largest ? 0 : records].template ReinterpretCast<Bits>();
    const LocalTensor<uint32_t> index_masks = masks[asim::kUbBlockBytes / sizeof(Bits)].template ReinterpretCast<uint32_t>();
    LocalTensor<T> source = operands.source;
    if (!operands.largest) {
        Steps<T>(records).muls(negated, source, T(-1));
        source = negated;
    }
    sort_in_library<T>(sorted, source, operands.source_indices.template ReinterpretCast<uint32_t>(), static_cast<int32_t>(rows));
    await<HardEvent::V_S>();
    constexpr uint32_t elems = record_elems<T>(1), words = record_elems<T>(kSortedRun) / (sizeof(Bits) * 8);
    select_records(masks, words, operands.k, elems, 0);
    select_records(index_masks, 2, operands.k, 2, 1);
    await<HardEvent::S_V>();
    const GatherMaskParams params(1, static_cast<uint16_t>(rows), 8, 0);
    uint64_t taken = 0;
    GatherMask<T, Bits>(operands.values, sorted, masks, true, record_elems<T>(kSortedRun), params, taken);
    GatherMask<float, uint32_t>(operands.indices.template ReinterpretCast<float>(), sorted.template ReinterpretCast<float>(),
                                index_masks, true, record_elems<float>(kSortedRun), params, taken);
    PipeBarrier<PIPE_V>();
}

template <typename T>
void check_topk(const LocalTensor<uint8_t> &scratch, const TopKInfo &info, int32_t k, uint64_t needed_bytes, bool small) {
    const auto call = ComposedCall::TopK;
    require_math_type<T>();
    constexpr uint32_t kMostRecords = 4096;
    const auto inner = static_cast<uint32_t>(info.inner), n = static_cast<uint32_t>(info.n);
    asim::check_demand(call, Demand::Multiple, inner, kSortedRun, Quantity::Inner);
    asim::check_demand(call, Demand::Most, inner, kMostRecords, Quantity::Inner);
    if (small) asim::check_demand(call, Demand::Equal, inner, kSortedRun, Quantity::Inner);
    asim::check_matrix(call, {static_cast<uint32_t>(info.outter), inner});
    asim::check_demand(call, Demand::AboveZero, static_cast<uint32_t>(info.outter), 0, Quantity::Outter);
    asim::check_demand(call, Demand::AboveZero, n, 0, Quantity::N);
    asim::check_demand(call, Demand::Most, n, inner, Quantity::N);
    asim::check_demand(call, Demand::AboveZero, static_cast<uint32_t>(k), 0, Quantity::K);
    asim::check_demand(call, Demand::Most, static_cast<uint32_t>(k), n, Quantity::K);
    asim::check_scratch(call, bytes_of(scratch), needed_bytes);
}

}  // namespace composed_calls

template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig &config = defaultTopKConfig>
__aicore__ inline void TopK(const LocalTensor<T> &dstValueLocal, const LocalTensor<int32_t> &dstIndexLocal,
                            const LocalTensor<T> &srcLocal, const LocalTensor<int32_t> &srcIndexLocal,
                            const LocalTensor<bool> &finishLocal, const LocalTensor<uint8_t> &tmpLocal, const int32_t k,
                            const TopkTiling &, const TopKInfo &topKInfo, const bool isLargest = true) {
    static_assert(config.algo == TopKAlgo::MERGE_SORT, "TopK has no radix sort on Atlas A2");
    constexpr bool small = topkMode == TopKMode::TOPK_NSMALL;
    static_assert(!(small && isHasfinish), "TopK of short rows (TOPK_NSMALL) has no finished rows: isHasfinish must be false");
    const auto inner = static_cast<uint32_t>(topKInfo.inner), rows = static_cast<uint32_t>(topKInfo.outter);
    const uint32_t records = small ? inner * rows : 2 * inner, sources = small ? inner * rows : inner;
    const uint64_t negated = small && !isLargest ? uint64_t{sources} * sizeof(T) : 0, masks = small ? 2 * asim::kUbBlockBytes : 0;
    const uint64_t before_indices = uint64_t{records} * asim::kSortRecordBytes + negated + masks;
    composed_calls::check_topk<T>(tmpLocal, topKInfo, k, before_indices + (isInitIndex ? 0 : uint64_t{sources} * sizeof(int32_t)),
                                  small);
    asim::check_operands(asim::LibraryContract::TopK, dstValueLocal.bytes(), uint64_t{rows} * static_cast<uint32_t>(k) * sizeof(T), srcLocal.bytes(),
                         uint64_t{rows} * inner * sizeof(T));
    LocalTensor<int32_t> indices = srcIndexLocal;
    if constexpr (!isInitIndex) {
        indices = tmpLocal[static_cast<uint32_t>(before_indices)].template ReinterpretCast<int32_t>();
        ArithProgression(indices, int32_t{0}, int32_t{1}, topKInfo.inner);
        PipeBarrier<PIPE_V>();
        for (uint32_t row = 1; small && row < rows; ++row) DataCopy(indices[row * inner], indices, inner);
        PipeBarrier<PIPE_V>();
    }
    const LocalTensor<T> scratch = tmpLocal.template ReinterpretCast<T>();
    const composed_calls::TopKOperands<T> operands{dstValueLocal, srcLocal, dstIndexLocal, indices, scratch,
                                                   static_cast<uint32_t>(k), isLargest};
    const uint32_t row_values = small ? static_cast<uint32_t>(k) : AlignUp(static_cast<uint32_t>(k),
                                                                           asim::kUbBlockBytes / sizeof(T));
    if constexpr (small) composed_calls::top_of_short_rows(operands, topKInfo);
    for (uint32_t row = 0; !small && row < rows; ++row) {
        composed_calls::top_of_row(operands, topKInfo, row);
        if constexpr (isHasfinish) {
            if (!finishLocal.GetValue(row)) continue;
            composed_calls::await<HardEvent::S_V>();
            Duplicate(dstIndexLocal[row * AlignUp(static_cast<uint32_t>(k), 8u)], topKInfo.n, k);
        }
    }
    if (!isLargest) composed_calls::Steps<T>(rows * row_values).muls(dstValueLocal, dstValueLocal, T(-1));
}
template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,
          enum TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig &config = defaultTopKConfig>
__aicore__ inline void TopK(const LocalTensor<T> &dstValueLocal, const LocalTensor<int32_t> &dstIndexLocal,
                            const LocalTensor<T> &srcLocal, const LocalTensor<int32_t> &srcIndexLocal,
                            const LocalTensor<bool> &finishLocal, const int32_t k, const TopkTiling &tilling,
                            const TopKInfo &topKInfo, const bool isLargest = true) {
    TopK<T, isInitIndex, isHasfinish, isReuseSrc, topkMode, config>(dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal,
                                                                    finishLocal, composed_calls::free_scratch(), k, tilling,
                                                                    topKInfo, isLargest);
}

}  // namespace AscendC

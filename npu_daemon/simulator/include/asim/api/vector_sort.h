// Sort32, MrgSort and the calls composed of them: Concat, Sort, Extract.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/vector_gather.h"
#include "asim/machine/registers.h"
#include "asim/semantics/sort.h"

namespace AscendC {

template <typename T>
struct MrgSortSrcList {
    MrgSortSrcList() = default;
    MrgSortSrcList(const LocalTensor<T> &first, const LocalTensor<T> &second, const LocalTensor<T> &third,
                   const LocalTensor<T> &fourth)
        : src1(first), src2(second), src3(third), src4(fourth) {}

    LocalTensor<T> src1, src2, src3, src4;
};

struct MrgSort4Info {
    MrgSort4Info() = default;
    MrgSort4Info(const uint16_t lengths[asim::kMergeQueues], bool suspend, uint16_t valid, uint16_t repeats)
        : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(repeats) {
        std::copy_n(lengths, asim::kMergeQueues, elementLengths);
    }

    uint16_t elementLengths[asim::kMergeQueues] = {};
    bool ifExhaustedSuspension = false;
    uint16_t validBit = 0;
    uint8_t repeatTimes = 1;
};

// Elements of T that `count` records take.
template <typename T>
__aicore__ inline uint32_t GetSortLen(const uint32_t count) {
    return count * asim::kSortRecordBytes / sizeof(T);
}
template <typename T>
__aicore__ inline uint32_t GetSortOffset(const uint32_t count) {
    return GetSortLen<T>(count);
}

template <typename T>
__aicore__ inline void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &src1,
                              const int32_t repeatTime) {
    static_assert(asim::contains<T, asim::FloatTypes>::value, "Sort32 takes half or float");
    asim::sort32<T>(dst.bytes(), src0.bytes(), src1.bytes(), static_cast<uint32_t>(repeatTime));
}

template <typename T>
asim::MergeQueues merge_queues(const MrgSortSrcList<T> &list, const uint16_t lengths[asim::kMergeQueues], uint16_t valid,
                               bool suspend) {
    asim::MergeQueues queues;
    const LocalTensor<T> *sources[] = {&list.src1, &list.src2, &list.src3, &list.src4};
    queues.valid = valid;
    queues.stop_when_one_is_empty = suspend;
    for (uint32_t i = 0; i < asim::kMergeQueues; ++i) {
        queues.base[i] = sources[i]->bytes();
        queues.length[i] = lengths[i];
    }
    return queues;
}

template <typename T, bool isExhaustedSuspension = false>
__aicore__ inline void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &sortList,
                               const uint16_t elementCountList[asim::kMergeQueues], uint32_t sortedNum[asim::kMergeQueues],
                               uint16_t validBit, const int32_t repeatTime) {
    asim::merge_sort<T>(dst.bytes(), merge_queues(sortList, elementCountList, validBit, isExhaustedSuspension), sortedNum,
                        static_cast<uint32_t>(repeatTime));
}

template <typename T>
__aicore__ inline void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src, const MrgSort4Info &params) {
    asim::merge_sort<T>(dst.bytes(), merge_queues(src, params.elementLengths, params.validBit, params.ifExhaustedSuspension),
                        nullptr, params.repeatTimes);
}

__aicore__ inline void GetMrgSortResult(uint16_t &first, uint16_t &second, uint16_t &third, uint16_t &fourth) {
    asim::read_register(asim::VectorRegister::MergeCounts);
    first = static_cast<uint16_t>(asim::merged_count(0));
    second = static_cast<uint16_t>(asim::merged_count(1));
    third = static_cast<uint16_t>(asim::merged_count(2));
    fourth = static_cast<uint16_t>(asim::merged_count(3));
}

// Atlas A2 sorts scores as they are: there is nothing to prepare.
template <typename T>
__aicore__ inline void Concat(LocalTensor<T> &concat, const LocalTensor<T> &src, const LocalTensor<T> &, const int32_t) {
    concat = src;
}

template <typename T, bool isFullSort>
__aicore__ inline void Sort(const LocalTensor<T> &dst, const LocalTensor<T> &concat, const LocalTensor<uint32_t> &index,
                            LocalTensor<T> &tmp, const int32_t repeatTime) {
    static_assert(asim::contains<T, asim::FloatTypes>::value, "Sort takes half or float");
    asim::sort_all<T>(dst.bytes(), concat.bytes(), index.bytes(), tmp.bytes(), static_cast<uint32_t>(repeatTime), isFullSort);
}

// Splits records into scores and indices.
template <typename T>
__aicore__ inline void Extract(const LocalTensor<T> &dstValue, const LocalTensor<uint32_t> &dstIndex,
                               const LocalTensor<T> &sorted, const int32_t repeatTime) {
    constexpr uint8_t kEven = 1, kOdd = 2, kFirstOfFour = 3;
    const uint32_t repeats = static_cast<uint32_t>(repeatTime) * asim::kSortedTogether * asim::kSortRecordBytes / asim::kRepeatBytes;
    const GatherMaskParams params(1, static_cast<uint16_t>(repeats), 8, 0);
    uint64_t kept = 0;
    GatherMask(dstIndex, sorted.template ReinterpretCast<uint32_t>(), kOdd, false, 0, params, kept);
    GatherMask(dstValue, sorted, sizeof(T) == 4 ? kEven : kFirstOfFour, false, 0, params, kept);
}

}  // namespace AscendC

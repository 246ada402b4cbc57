// WelfordFinalize: the mean and variance of all values from those that WelfordUpdate left (asc-devkit,
// adv_api/detail/normalization/welfordfinalize).
#pragma once
#include "asim/api/layer_norm.h"

namespace AscendC {

struct WelfordFinalizePara {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t headCount;
    uint32_t headCountLength;
    uint32_t tailCount;
    uint32_t tailCountLength;
    float abRec;
    float rRec;
    float rRecWithCorrection;
};
struct WelfordFinalizeConfig {
    bool isCorrection = false;
};
constexpr WelfordFinalizeConfig WFFINALIZE_DEFAULT_CFG = {false};

namespace composed_calls {

// Sums of rounds lie side by side, up to a repeat of them; two tensors hold what a round computes.
struct FinalizeScratch {
    LocalTensor<float> mean_sums, variance_sums, a, b;
    uint32_t elems;         // of a round
};

// How many updates a mean counts for, of the elements from `first` on: `counts` where they are given, else the first elements
// count `headCount` times and the others `tailCount` times.
struct FinalizeWeights {
    const WelfordFinalizePara &para;
    LocalTensor<int32_t> counts;
    bool counted;

    bool uniform() const { return !counted && (para.tailCountLength == 0 || para.tailCount == 0); }

    // dst = src times the counts.
    void scale(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &spare, uint32_t first,
               uint32_t number) const {
        const Steps<float> steps(number);
        if (counted) {
            steps.cast(spare, counts[first]);
            steps.mul(dst, src, spare);
        } else if (uniform()) {
            steps.muls(dst, src, static_cast<float>(para.rnLength));
        } else {
            steps.muls(dst, src, static_cast<float>(para.tailCount));
        }
    }
    // The first elements have been counted as if they were of the tail.
    void correct_head(const LocalTensor<float> &values, uint32_t first, uint32_t number) const {
        if (counted || uniform() || first >= para.headCountLength) return;
        const uint32_t head = para.headCountLength - first < number ? para.headCountLength - first : number;
        Steps<float>(head).muls(values, values, static_cast<float>(para.headCount) / static_cast<float>(para.tailCount));
    }
};

// The sum of what `round(sum, first element, elements)` leaves of each round, as the first of `sums`.
template <typename Round>
void sum_of_rounds(const LocalTensor<float> &sums, const FinalizeScratch &tmp, uint32_t count, Round round) {
    uint32_t held = 0;
    const auto combine = [&] {
        WholeReduceSum(sums, sums, static_cast<int32_t>(held), 1, 1, 1, static_cast<int32_t>(held / kFloatsOfBlock));
        PipeBarrier<PIPE_V>();
        held = 1;
    };
    in_rounds(count, tmp.elems, [&](uint32_t first, uint32_t number) {
        round(sums[held], first, number);
        if (++held == kFloatsOfRepeat) combine();
    });
    combine();
}

inline void sum_means(const FinalizeScratch &tmp, const LocalTensor<float> &means, const FinalizeWeights &weights) {
    sum_of_rounds(tmp.mean_sums, tmp, weights.para.abLength, [&](const LocalTensor<float> &sum, uint32_t first, uint32_t number) {
        const Steps<float> steps(number);
        if (weights.uniform()) {
            steps.muls(tmp.a, means[first], weights.para.abRec);
        } else {
            weights.scale(tmp.a, means[first], tmp.b, first, number);
            steps.muls(tmp.a, tmp.a, weights.para.rRec);
            weights.correct_head(tmp.a, first, number);
        }
        sum_rows(tmp.b, sum, tmp.a, 1, number);
    });
}

inline void sum_variances(const FinalizeScratch &tmp, const LocalTensor<float> &means, const LocalTensor<float> &variances,
                          const FinalizeWeights &weights) {
    const uint32_t values = weights.para.abLength;
    sum_of_rounds(tmp.variance_sums, tmp, values, [&](const LocalTensor<float> &sum, uint32_t first, uint32_t number) {
        const Steps<float> steps(number), one(1);
        one.adds(tmp.a, tmp.mean_sums, 0.0f);
        one.adds(tmp.b, tmp.a, 0.0f);
        spread_rows(tmp.a, tmp.b, 1, number);
        steps.sub(tmp.b, means[first], tmp.a);
        steps.mul(tmp.a, tmp.b, tmp.b);
        weights.scale(tmp.a, tmp.a, tmp.b, first, number);
        weights.correct_head(tmp.a, first, number);
        steps.add(tmp.b, tmp.a, variances[first]);
        steps.muls(tmp.b, tmp.b, weights.para.rRec);
        sum_rows(tmp.a, sum, tmp.b, 1, number);
    });
}

inline FinalizeScratch divide_for_finalize(const LocalTensor<uint8_t> &scratch) {
    // A fold of a row is one instruction, of a byte's repeats.
    constexpr uint32_t most = MAX_REPEAT_TIMES * kFloatsOfRepeat;
    asim::check_scratch(ComposedCall::WelfordFinalize, bytes_of(scratch), uint64_t{4} * asim::kRepeatBytes);
    const LocalTensor<float> base = scratch.template ReinterpretCast<float>();
    const uint32_t fitting = (base.GetSize() / kFloatsOfRepeat - 2) / 2 * kFloatsOfRepeat;
    const uint32_t elems = fitting < most ? fitting : most;
    return {base, base[kFloatsOfRepeat], base[2 * kFloatsOfRepeat], base[2 * kFloatsOfRepeat + elems], elems};
}

// The elements of a data block behind its first one.
inline void clear_rest_of_block(const LocalTensor<float> &dst) {
    uint64_t all_but_the_first[] = {0xfe, 0};
    Duplicate(dst, 0.0f, all_but_the_first, 1, 1, 8);
    PipeBarrier<PIPE_V>();
}

inline void finalize(const LocalTensor<float> &mean, const LocalTensor<float> &variance, const LocalTensor<float> &means,
                     const LocalTensor<float> &variances, const LocalTensor<uint8_t> &scratch, const FinalizeWeights &weights) {
    const WelfordFinalizePara &para = weights.para;
    constexpr ComposedCall call = ComposedCall::WelfordFinalize;
    asim::check_demand(call, Demand::AboveZero, para.abLength, 0, Quantity::AbLength);
    asim::check_demand(call, Demand::Multiple, para.abLength, kFloatsOfBlock, Quantity::AbLength);
    asim::check_demand(call, Demand::Equal, para.headCountLength + para.tailCountLength, para.abLength, Quantity::HeadAndTail);
    if (!weights.counted && para.tailCountLength > 0) asim::check_demand(call, Demand::AboveZero, para.tailCount, 0,
                                                                         Quantity::TailCount);
    for (const LocalTensor<float> &dst : {mean, variance}) {
        for (const LocalTensor<float> &src : {means, variances}) {
            asim::check_operands(asim::LibraryContract::WelfordFinalize, dst.bytes(), asim::kUbBlockBytes, src.bytes(), uint64_t{para.abLength} * sizeof(float));
        }
    }
    const FinalizeScratch tmp = divide_for_finalize(scratch);
    sum_means(tmp, means, weights);
    sum_variances(tmp, means, variances, weights);
    Adds(mean, tmp.mean_sums, 0.0f, 1);
    Adds(variance, tmp.variance_sums, 0.0f, 1);
    PipeBarrier<PIPE_V>();
    clear_rest_of_block(mean);
    clear_rest_of_block(variance);
}

}  // namespace composed_calls

#define ASIM_FINALIZE_PARAMETERS                                                                                             \
    const LocalTensor<float> &outputMean, const LocalTensor<float> &outputVariance, const LocalTensor<float> &inputMean,     \
        const LocalTensor<float> &inputVariance
template <bool isReuseSource = false, const WelfordFinalizeConfig &config = WFFINALIZE_DEFAULT_CFG>
__aicore__ inline void WelfordFinalize(ASIM_FINALIZE_PARAMETERS, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                       const WelfordFinalizePara &para) {
    static_assert(!config.isCorrection, "WelfordFinalize has no correction of the variance on Atlas A2");
    composed_calls::finalize(outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer, {para, {}, false});
}
template <bool isReuseSource = false, const WelfordFinalizeConfig &config = WFFINALIZE_DEFAULT_CFG>
__aicore__ inline void WelfordFinalize(ASIM_FINALIZE_PARAMETERS, const LocalTensor<int32_t> &counts,
                                       const LocalTensor<uint8_t> &sharedTmpBuffer, const WelfordFinalizePara &para) {
    static_assert(!config.isCorrection, "WelfordFinalize has no correction of the variance on Atlas A2");
    composed_calls::finalize(outputMean, outputVariance, inputMean, inputVariance, sharedTmpBuffer, {para, counts, true});
}
template <bool isReuseSource = false, const WelfordFinalizeConfig &config = WFFINALIZE_DEFAULT_CFG>
__aicore__ inline void WelfordFinalize(ASIM_FINALIZE_PARAMETERS, const WelfordFinalizePara &para) {
    WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, composed_calls::free_scratch(),
                                           para);
}
template <bool isReuseSource = false, const WelfordFinalizeConfig &config = WFFINALIZE_DEFAULT_CFG>
__aicore__ inline void WelfordFinalize(ASIM_FINALIZE_PARAMETERS, const LocalTensor<int32_t> &counts,
                                       const WelfordFinalizePara &para) {
    WelfordFinalize<isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, counts,
                                           composed_calls::free_scratch(), para);
}
#undef ASIM_FINALIZE_PARAMETERS

}  // namespace AscendC

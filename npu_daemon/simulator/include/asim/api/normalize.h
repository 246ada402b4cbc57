// Normalize, LayerNorm of rows [A, R] and the Welford update (asc-devkit, adv_api/detail/normalization).
#pragma once
#include "asim/api/layer_norm.h"

namespace AscendC {

struct NormalizeConfig {
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
    int32_t aLength = -1;
    bool isOutputRstd = true;
};
constexpr NormalizeConfig NLCFG_NORM = {false, false, false, -1};
constexpr NormalizeConfig NLCFG_NOBETA = {true, false, false, -1};
constexpr NormalizeConfig NLCFG_NOGAMMA = {false, true, false, -1};
constexpr NormalizeConfig NLCFG_NOOPT = {true, true, false, -1};

struct NormalizePara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};

struct WelfordUpdateParam {
    uint32_t rnLength;
    uint32_t abLength;
    uint32_t abComputeLength;
    float nRec;
};
struct WelfordUpdateConfig {
    bool isInplace = false;
};
constexpr WelfordUpdateConfig WFUPDATE_DEFAULT_CFG = {false};

namespace composed_calls {

// dst[i][..] = values[i], each read by the scalar unit.
inline void spread_values(const LocalTensor<float> &dst, const LocalTensor<float> &values, uint32_t rows,
                          const NormalizePara &para) {
    for (uint32_t row = 0; row < rows; ++row) {
        const float value = values.GetValue(row);
        await<HardEvent::S_V>();
        Duplicate(dst[row * para.rLengthWithPadding], value, static_cast<int32_t>(para.rLength));
    }
    PipeBarrier<PIPE_V>();
}

// Factors and terms of the columns, in float.
struct Columns {
    LocalTensor<float> gamma, beta;
};

// `work` holds x in float and is overwritten; `other` is as large.
template <typename T, bool no_gamma, bool no_beta>
void normalized(const LocalTensor<T> &output, const LocalTensor<float> &work, const LocalTensor<float> &other,
                const LocalTensor<float> &mean, const LocalTensor<float> &rstd, const Columns &columns, uint32_t rows,
                const NormalizePara &para) {
    const Steps<float> all(rows * para.rLengthWithPadding);
    await<HardEvent::V_S>();
    spread_values(other, mean, rows, para);
    all.sub(work, work, other);
    spread_values(other, rstd, rows, para);
    all.mul(work, work, other);
    const Steps<float> row_steps(para.rLength);
    for (uint32_t row = 0; row < rows; ++row) {
        const LocalTensor<float> at = work[row * para.rLengthWithPadding];
        if constexpr (!no_gamma) row_steps.mul(at, at, columns.gamma);
        if constexpr (!no_beta) row_steps.add(at, at, columns.beta);
    }
    if constexpr (std::is_same_v<T, float>) all.adds(output, work, 0.0f);
    else Steps<T>(all.count()).cast(output, work);
}

inline void to_float(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t count) {
    Steps<float>(count).adds(dst, src, 0.0f);
}
inline void to_float(const LocalTensor<float> &dst, const LocalTensor<half> &src, uint32_t count) {
    Steps<float>(count).cast(dst, src);
}

// Rows [A, R] of whole data blocks.
template <typename T>
void check_rows_of(ComposedCall call, uint32_t rows, uint32_t counting, uint32_t columns) {
    asim::check_matrix(call, {rows, columns});
    asim::check_demand(call, Demand::AboveZero, rows, 0, Quantity::ALength);
    asim::check_demand(call, Demand::AboveZero, counting, 0, Quantity::RLength);
    asim::check_demand(call, Demand::WholeBlocks, columns * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(call, Demand::Most, counting, columns, Quantity::RLength);
}

}  // namespace composed_calls

template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig &config = NLCFG_NORM>
__aicore__ inline void Normalize(const LocalTensor<T> &output, const LocalTensor<float> &outputRstd,
                                 const LocalTensor<float> &inputMean, const LocalTensor<float> &inputVariance,
                                 const LocalTensor<T> &inputX, const LocalTensor<U> &gamma, const LocalTensor<U> &beta,
                                 const LocalTensor<uint8_t> &sharedTmpBuffer, const float epsilon, const NormalizePara &para) {
    static_assert(std::is_same_v<T, half> ? std::is_same_v<U, half> || std::is_same_v<U, float> : std::is_same_v<U, float>,
                  "Normalize takes rows of half or float, and factors that are no narrower");
    using composed_calls::ComposedCall;
    constexpr bool wide = std::is_same_v<U, float>;
    const LocalTensor<float> base = sharedTmpBuffer.template ReinterpretCast<float>();
    const uint32_t row = para.rLengthWithPadding, factors = wide ? 0 : 2 * row;
    composed_calls::check_rows_of<T>(ComposedCall::Normalize, para.aLength, para.rLength, row);
    composed_calls::check_operands(asim::LibraryContract::Normalize, output, para.aLength * row, sharedTmpBuffer, inputX);
    // The ones that the root is divided from are as many as there are rows.
    const uint64_t floats = 2ull * row + factors;
    asim::check_scratch(ComposedCall::Normalize, composed_calls::bytes_of(sharedTmpBuffer),
                        (floats < para.aLength ? para.aLength : floats) * sizeof(float));
    const uint32_t fitting = (base.GetSize() - factors) / (2 * row), at_once = fitting < para.aLength ? fitting : para.aLength;
    const LocalTensor<float> other = base[at_once * row], spare = base[2 * at_once * row];
    const composed_calls::Steps<float> each(para.aLength);
    each.adds(outputRstd, inputVariance, epsilon);
    each.fill(base, 1.0f);
    each.sqrt(outputRstd, outputRstd);
    each.div(outputRstd, base, outputRstd);
    composed_calls::Columns columns{spare, spare[row]};
    if constexpr (wide) columns = {gamma, beta};
    if constexpr (!wide && !config.isNoGamma) composed_calls::to_float(spare, gamma, para.rLength);
    if constexpr (!wide && !config.isNoBeta) composed_calls::to_float(spare[row], beta, para.rLength);
    composed_calls::in_rounds(para.aLength, at_once, [&](uint32_t done, uint32_t rows) {
        composed_calls::to_float(base, inputX[done * row], rows * row);
        composed_calls::normalized<T, config.isNoGamma, config.isNoBeta>(output[done * row], base, other, inputMean[done],
                                                                         outputRstd[done], columns, rows, para);
    });
}
template <typename U, typename T, bool isReuseSource = false, const NormalizeConfig &config = NLCFG_NORM>
__aicore__ inline void Normalize(const LocalTensor<T> &output, const LocalTensor<float> &outputRstd,
                                 const LocalTensor<float> &inputMean, const LocalTensor<float> &inputVariance,
                                 const LocalTensor<T> &inputX, const LocalTensor<U> &gamma, const LocalTensor<U> &beta,
                                 const float epsilon, const NormalizePara &para) {
    Normalize<U, T, isReuseSource, config>(output, outputRstd, inputMean, inputVariance, inputX, gamma, beta,
                                           composed_calls::free_scratch(), epsilon, para);
}

namespace composed_calls {

// Padding of rows is set to 0, in the source itself as the published library does it.
template <typename T>
void clear_padding(const LocalTensor<T> &x, const LocalTensor<T> &ones, const LayerNormPara &para) {
    Duplicate(ones, T(0), static_cast<int32_t>(para.rLengthWithPadding));
    PipeBarrier<PIPE_V>();
    Adds(ones, ones, T(1), static_cast<int32_t>(para.rLength));
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < para.aLength; ++row) {
        const LocalTensor<T> at = x[row * para.rLengthWithPadding];
        Mul(at, at, ones, static_cast<int32_t>(para.rLengthWithPadding));
    }
    PipeBarrier<PIPE_V>();
}

template <typename T>
void load_rows(const LocalTensor<float> &dst, const LocalTensor<T> &src, uint32_t elements) {
    if constexpr (std::is_same_v<T, half>) Cast(dst, src, RoundMode::CAST_NONE, elements);
    else DataCopy(dst, src, elements);
    PipeBarrier<PIPE_V>();
}

template <typename T>
void mean_and_variance(const LocalTensor<float> &mean, const LocalTensor<float> &variance, const LocalTensor<T> &x,
                       const LocalTensor<float> &work, uint32_t rows, const LayerNormPara &para, float reciprocal) {
    const uint32_t row = para.rLengthWithPadding;
    const Steps<float> all(rows * row);
    load_rows(work, x, rows * row);
    all.muls(work, work, reciprocal);
    sum_rows(mean, mean, work, rows, row);
    await<HardEvent::V_S>();
    load_rows(work, x, rows * row);
    for (uint32_t i = 0; i < rows; ++i) {
        const float shift = -mean.GetValue(i);
        await<HardEvent::S_V>();
        Adds(work[i * row], work[i * row], shift, static_cast<int32_t>(para.rLength));
    }
    PipeBarrier<PIPE_V>();
    all.mul(work, work, work);
    all.muls(work, work, reciprocal);
    sum_rows(variance, variance, work, rows, row);
}

template <const LayerNormConfig &config>
struct NormalizeOf {
    static constexpr NormalizeConfig value = {config.isNoBeta, config.isNoGamma, config.isOnlyOutput, -1, true};
};

}  // namespace composed_calls

template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig &config = LNCFG_NORM>
__aicore__ inline void LayerNorm(const LocalTensor<T> &output, const LocalTensor<float> &outputMean,
                                 const LocalTensor<float> &outputRstd, const LocalTensor<T> &inputX, const LocalTensor<U> &gamma,
                                 const LocalTensor<U> &beta, const float epsilon, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                 const LayerNormPara &para, const LayerNormSeparateTiling &tiling) {
    static_assert(!config.isOnlyOutput && config.isOutputRstd, "LayerNorm gives mean and rstd on Atlas A2");
    using composed_calls::ComposedCall;
    const uint32_t row = para.rLengthWithPadding, rows = tiling.inputRoundSize / (row == 0 ? 1 : row);
    composed_calls::check_rows_of<T>(ComposedCall::LayerNorm, para.aLength, para.rLength, row);
    composed_calls::check_operands(asim::LibraryContract::LayerNorm, output, para.aLength * row, sharedTmpBuffer, inputX);
    asim::check_demand(ComposedCall::LayerNorm, composed_calls::Demand::Most, row, composed_calls::kMostFoldedColumns,
                       composed_calls::Quantity::RLengthWithPadding);
    asim::check_demand(ComposedCall::LayerNorm, composed_calls::Demand::Least, tiling.inputRoundSize, row,
                       composed_calls::Quantity::InputRoundSize);
    const LocalTensor<float> base = sharedTmpBuffer.template ReinterpretCast<float>();
    const uint32_t variances = AlignUp(para.aLength, composed_calls::kFloatsOfBlock);
    asim::check_scratch(ComposedCall::LayerNorm, composed_calls::bytes_of(sharedTmpBuffer),
                        (2ull * rows * row + variances) * sizeof(float));
    if (para.rLength != row) composed_calls::clear_padding(inputX, base.template ReinterpretCast<T>(), para);
    composed_calls::in_rounds(para.aLength, rows, [&](uint32_t done, uint32_t number) {
        composed_calls::mean_and_variance(outputMean[done], base[done], inputX[done * row], base[variances], number, para,
                                          tiling.rValueBack);
    });
    Normalize<U, T, false, composed_calls::NormalizeOf<config>::value>(output, outputRstd, outputMean, base, inputX, gamma, beta,
                                                                base[variances].template ReinterpretCast<uint8_t>(), epsilon,
                                                                {para.aLength, para.rLength, row});
}
template <typename U, typename T, bool isReuseSource = false, const LayerNormConfig &config = LNCFG_NORM>
__aicore__ inline void LayerNorm(const LocalTensor<T> &output, const LocalTensor<float> &outputMean,
                                 const LocalTensor<float> &outputRstd, const LocalTensor<T> &inputX, const LocalTensor<U> &gamma,
                                 const LocalTensor<U> &beta, const float epsilon, const LayerNormPara &para,
                                 const LayerNormSeparateTiling &tiling) {
    LayerNorm<U, T, isReuseSource, config>(output, outputMean, outputRstd, inputX, gamma, beta, epsilon,
                                           composed_calls::free_scratch(), para, tiling);
}

namespace composed_calls {

// What lies behind the values that are computed, and so many of these that it is whole data blocks: they are computed afterwards.
inline void keep_rest(const LocalTensor<float> &mean, const LocalTensor<float> &variance, const LocalTensor<float> &old_mean,
                      const LocalTensor<float> &old_variance, const WelfordUpdateParam &para) {
    const uint32_t rest = AlignUp(para.abLength - para.abComputeLength, kFloatsOfBlock), from = para.abLength - rest;
    if (rest == 0) return;
    DataCopy(mean[from], old_mean[from], rest);
    DataCopy(variance[from], old_variance[from], rest);
    PipeBarrier<PIPE_V>();
}

template <typename T>
void check_update(const WelfordUpdateParam &para) {
    constexpr ComposedCall call = ComposedCall::WelfordUpdate;
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    asim::check_matrix(call, {1, para.abLength});
    asim::check_demand(call, Demand::Equal, para.rnLength, 1, Quantity::RnLength);
    asim::check_demand(call, Demand::Multiple, para.abLength, block, Quantity::AbLength);
    asim::check_demand(call, Demand::AboveZero, para.abComputeLength, 0, Quantity::AbComputeLength);
    asim::check_demand(call, Demand::Most, para.abComputeLength, para.abLength, Quantity::AbComputeLength);
}

}  // namespace composed_calls

// One value more for each of `abComputeLength` means and variances; what lies behind them is copied where they are updated in
// place.
template <typename T, typename U, bool isReuseSource = false, const WelfordUpdateConfig &config = WFUPDATE_DEFAULT_CFG>
__aicore__ inline void WelfordUpdate(const LocalTensor<U> &outputMean, const LocalTensor<U> &outputVariance,
                                     const LocalTensor<U> &inputMean, const LocalTensor<U> &inputVariance,
                                     const LocalTensor<T> &inputX, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                     const WelfordUpdateParam &para) {
    require_math_type<T>();
    static_assert(std::is_same_v<U, float>, "means and variances of WelfordUpdate are float");
    using composed_calls::ComposedCall;
    constexpr uint32_t pieces = std::is_same_v<T, half> ? 3 : 2;
    composed_calls::check_update<T>(para);
    for (const LocalTensor<U> &output : {outputMean, outputVariance}) {
        composed_calls::check_operands(asim::LibraryContract::WelfordUpdate, output, para.abLength, sharedTmpBuffer, inputMean, inputVariance, inputX);
    }
    const composed_calls::Pieces<float> piece = composed_calls::divide<float>(ComposedCall::WelfordUpdate, sharedTmpBuffer,
                                                                              pieces);
    if constexpr (config.isInplace) composed_calls::keep_rest(outputMean, outputVariance, inputMean, inputVariance, para);
    composed_calls::in_rounds(para.abComputeLength, piece.elems, [&](uint32_t done, uint32_t number) {
        const composed_calls::Steps<float> steps(number);
        LocalTensor<float> x;
        if constexpr (std::is_same_v<T, half>) steps.cast(x = piece[2], inputX[done]);
        else x = inputX[done];
        steps.sub(piece[0], x, inputMean[done]);
        steps.muls(piece[1], piece[0], para.nRec);
        steps.add(outputMean[done], piece[1], inputMean[done]);
        steps.sub(piece[1], x, outputMean[done]);
        steps.mul(piece[0], piece[0], piece[1]);
        steps.add(outputVariance[done], piece[0], inputVariance[done]);
    });
}
template <typename T, typename U, bool isReuseSource = false, const WelfordUpdateConfig &config = WFUPDATE_DEFAULT_CFG>
__aicore__ inline void WelfordUpdate(const LocalTensor<U> &outputMean, const LocalTensor<U> &outputVariance,
                                     const LocalTensor<U> &inputMean, const LocalTensor<U> &inputVariance,
                                     const LocalTensor<T> &inputX, const WelfordUpdateParam &para) {
    WelfordUpdate<T, U, isReuseSource, config>(outputMean, outputVariance, inputMean, inputVariance, inputX,
                                               composed_calls::free_scratch(), para);
}

}  // namespace AscendC

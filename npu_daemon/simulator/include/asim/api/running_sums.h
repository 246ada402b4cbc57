// CumSum along rows or columns, Fmod and Arange (asc-devkit, adv_api/detail/math).
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/matrix_transposition.h"
#include "asim/api/vector_index.h"

namespace AscendC {

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };

struct CumSumConfig {
    bool isLastAxis{true};
    bool isReuseSource{false};
    bool outputLastRow{false};
    CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
constexpr CumSumConfig defaultCumSumConfig = {true, false, false, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};

struct CumSumInfo {
    uint32_t outter{0};
    uint32_t inner{0};
};

namespace composed_calls {

// row[i] += row[i - 1], in float; rows lie `columns` apart.
inline void add_rows_up(const LocalTensor<float> &rows, uint32_t number, uint32_t columns) {
    const Steps<float> steps(columns);
    for (uint32_t row = 1; row < number; ++row) steps.add(rows[row * columns], rows[(row - 1) * columns], rows[row * columns]);
}

template <typename T>
void cumulative_down(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch, uint32_t rows,
                     uint32_t columns) {
    if constexpr (std::is_same_v<T, float>) {
        const Steps<float> steps(columns);
        steps.adds(dst, src, 0.0f);
        for (uint32_t row = 1; row < rows; ++row) steps.add(dst[row * columns], dst[(row - 1) * columns], src[row * columns]);
    } else {
        asim::check_scratch(ComposedCall::CumSum, bytes_of(scratch), uint64_t{rows} * columns * sizeof(float));
        const LocalTensor<float> wide = scratch.template ReinterpretCast<float>();
        Steps<float>(rows * columns).cast(wide, src);
        add_rows_up(wide, rows, columns);
        Steps<T>(rows * columns).cast(dst, wide);
    }
}

// Columns become rows and rows columns again, as many rows at once as the scratch buffer has room for.
template <typename T>
void cumulative_across(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scratch, uint32_t rows,
                       uint32_t columns) {
    const uint32_t aligned = (rows + kTransposedRows - 1) / kTransposedRows * kTransposedRows, elements = aligned * columns;
    rows_to_columns(scratch, src, rows, columns);
    if constexpr (std::is_same_v<T, float>) {
        add_rows_up(scratch, columns, aligned);
    } else {
        const LocalTensor<float> wide = scratch[elements].template ReinterpretCast<float>();
        Steps<float>(elements).cast(wide, scratch);
        add_rows_up(wide, columns, aligned);
        Steps<T>(elements).cast(scratch, wide);
    }
    columns_to_rows(scratch[elements], scratch, aligned, columns);
    Steps<T>(rows * columns).adds(dst, scratch[elements], T(0));
}

template <typename T>
void cumulative_sums(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                     const CumSumInfo &info) {
    constexpr uint32_t copies = std::is_same_v<T, half> ? 3 : 2;    // half: transposed twice, with floats in the second
    const uint32_t group_bytes = copies * kTransposedRows * info.inner * static_cast<uint32_t>(sizeof(T));
    asim::check_scratch(ComposedCall::CumSum, bytes_of(scratch), group_bytes);
    const uint32_t rows_at_once = scratch.GetSize() / group_bytes * kTransposedRows;
    in_rounds(info.outter, rows_at_once, [&](uint32_t done, uint32_t rows) {
        cumulative_across(dst[done * info.inner], src[done * info.inner], scratch.template ReinterpretCast<T>(), rows, info.inner);
    });
}

}  // namespace composed_calls

template <typename T, const CumSumConfig &config = defaultCumSumConfig>
__aicore__ inline void CumSum(const LocalTensor<T> &dstTensor, const LocalTensor<T> &lastRowTensor, const LocalTensor<T> &srcTensor,
                              const LocalTensor<uint8_t> &sharedTmpBuffer, const CumSumInfo &cumSumInfo) {
    require_math_type<T>();
    using composed_calls::ComposedCall, composed_calls::Demand;
    asim::check_matrix(ComposedCall::CumSum, {cumSumInfo.outter, cumSumInfo.inner});
    asim::check_demand(ComposedCall::CumSum, Demand::AboveZero, cumSumInfo.outter * cumSumInfo.inner, 0);
    asim::check_demand(ComposedCall::CumSum, Demand::WholeBlocks, cumSumInfo.inner * static_cast<uint32_t>(sizeof(T)), 0);
    if constexpr (config.isLastAxis) {
        composed_calls::cumulative_sums(dstTensor, srcTensor, sharedTmpBuffer, cumSumInfo);
    } else {
        composed_calls::cumulative_down(dstTensor, srcTensor, sharedTmpBuffer, cumSumInfo.outter, cumSumInfo.inner);
    }
    if constexpr (config.outputLastRow) {
        composed_calls::Steps<T>(cumSumInfo.inner).adds(lastRowTensor, dstTensor[(cumSumInfo.outter - 1) * cumSumInfo.inner], T(0));
    }
}
template <typename T, const CumSumConfig &config = defaultCumSumConfig>
__aicore__ inline void CumSum(const LocalTensor<T> &dstTensor, const LocalTensor<T> &lastRowTensor, const LocalTensor<T> &srcTensor,
                              const CumSumInfo &cumSumInfo) {
    CumSum<T, config>(dstTensor, lastRowTensor, srcTensor, composed_calls::free_scratch(), cumSumInfo);
}

template <typename T>
__aicore__ inline void Arange(const LocalTensor<T> &dst, const T firstValue, const T diffValue, const int32_t count) {
    ArithProgression<T>(dst, firstValue, diffValue, count);
}

namespace composed_calls {

// dst += src * scalar in float, half by way of the scratch buffer.
template <typename T, typename U>
void axpy_in_float(const LocalTensor<T> &dst, const LocalTensor<U> &src, float scalar, const LocalTensor<uint8_t> &scratch, uint32_t count) {
    constexpr bool narrow = std::is_same_v<T, half>;
    const Pieces<float> piece = divide<float>(ComposedCall::Axpy, scratch, narrow ? 2 : 1);
    in_rounds(count, piece.elems, [&](uint32_t done, uint32_t number) {
        const Steps<float> steps(number);
        steps.cast(piece[0], src[done]);
        if constexpr (narrow) steps.cast(piece[1], dst[done]);
        steps.muls(piece[0], piece[0], scalar);
        if constexpr (narrow) {
            steps.add(piece[1], piece[0], piece[1]);
            Steps<T>(number).cast(dst[done], piece[1]);
        } else {
            steps.add(dst[done], piece[0], dst[done]);
        }
    });
}

}  // namespace composed_calls

template <typename T, typename U, bool isReuseSource = false>
__aicore__ inline void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U scalarValue,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {
    require_math_type<T>();
    require_math_type<U>();
    composed_calls::check_operands(asim::LibraryContract::Axpy, dst, calCount, sharedTmpBuffer, src);
    if constexpr (std::is_same_v<U, float>) Axpy(dst, src, scalarValue, static_cast<int32_t>(calCount));
    else composed_calls::axpy_in_float(dst, src, static_cast<float>(scalarValue), sharedTmpBuffer, calCount);
}

enum class FmodAlgo { NORMAL = 0, ITERATION_COMPENSATION = 1 };
constexpr uint32_t FMOD_ITERATION_NUM_MAX = 11;
struct FmodConfig {
    FmodAlgo algo = FmodAlgo::NORMAL;
    uint32_t iterationNum = FMOD_ITERATION_NUM_MAX;
};
constexpr FmodConfig DEFAULT_FMOD_CONFIG = {FmodAlgo::NORMAL, FMOD_ITERATION_NUM_MAX};

namespace composed_calls {

// x - trunc(x / y) y
inline void remainder(const LocalTensor<float> &dst, const LocalTensor<float> &x, const LocalTensor<float> &y,
                      const LocalTensor<uint8_t> &scratch, uint32_t count) {
    const Steps<float> steps(count);
    steps.div(dst, x, y);
    Trunc(dst, dst, scratch, count);
    PipeBarrier<PIPE_V>();
    steps.mul(dst, dst, y);
    steps.sub(dst, x, dst);
}

template <typename T>
void remainders(const LocalTensor<T> &dst, const LocalTensor<T> &x, const LocalTensor<T> &y, const LocalTensor<uint8_t> &scratch,
                uint32_t count) {
    require_math_type<T>();
    check_operands(LibraryContract::Fmod, dst, count, scratch, x, y);
    if constexpr (std::is_same_v<T, float>) {
        remainder(dst, x, y, scratch, count);
    } else {
        const Pieces<float> piece = divide<float>(ComposedCall::Fmod, scratch, 4);
        in_rounds(count, piece.elems, [&](uint32_t done, uint32_t elems) {
            const Steps<float> steps(elems);
            steps.cast(piece[1], x[done]);
            steps.cast(piece[2], y[done]);
            remainder(piece[0], piece[1], piece[2], piece[3].template ReinterpretCast<uint8_t>(), elems);
            Steps<T>(elems).cast(dst[done], piece[0]);
        });
    }
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false, const FmodConfig &config = DEFAULT_FMOD_CONFIG>
__aicore__ inline void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {
    static_assert(config.algo == FmodAlgo::NORMAL, "Fmod has no iteration on Atlas A2");
    composed_calls::remainders(dst, src0, src1, sharedTmpBuffer, calCount);
}
template <typename T, bool isReuseSource = false, const FmodConfig &config = DEFAULT_FMOD_CONFIG>
__aicore__ inline void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                            const LocalTensor<uint8_t> &sharedTmpBuffer) {
    Fmod<T, isReuseSource, config>(dst, src0, src1, sharedTmpBuffer, src0.GetSize());
}
template <typename T, bool isReuseSource = false, const FmodConfig &config = DEFAULT_FMOD_CONFIG>
__aicore__ inline void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                            const uint32_t calCount) {
    Fmod<T, isReuseSource, config>(dst, src0, src1, composed_calls::free_scratch(), calCount);
}
template <typename T, bool isReuseSource = false, const FmodConfig &config = DEFAULT_FMOD_CONFIG>
__aicore__ inline void Fmod(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1) {
    Fmod<T, isReuseSource, config>(dst, src0, src1, composed_calls::free_scratch(), src0.GetSize());
}

}  // namespace AscendC

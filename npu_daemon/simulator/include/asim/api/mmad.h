// Mmad and the registers it takes from.
#pragma once
#include "asim/api/tensor.h"
#include "asim/machine/registers.h"
#include "asim/semantics/mmad.h"

namespace AscendC {

struct MmadParams {
    MmadParams() = default;
    MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, bool accumulate, int32_t offset, bool sparse, bool winograd_a,
               bool winograd_b)
        : m(rows), n(columns), k(depth), isBias(accumulate), fmOffset(offset), enSsparse(sparse), enWinogradA(winograd_a),
          enWinogradB(winograd_b) {}
    MmadParams(uint16_t rows, uint16_t columns, uint16_t depth, uint8_t unit_flag, bool from_bias_table, bool from_zero)
        : m(rows), n(columns), k(depth), unitFlag(unit_flag), cmatrixSource(from_bias_table), cmatrixInitVal(from_zero) {}

    uint16_t m = 0;
    uint16_t n = 0;
    uint16_t k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false;
    bool enWinogradA = false;
    bool enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false;
    bool cmatrixSource = false;
    bool cmatrixInitVal = true;
};

enum class HF32Mode : uint8_t { DISABLE = 0, ENABLE = 1 };
enum class HF32TransMode : uint8_t { NEAREST_EVEN = 0, NEAREST_ZERO = 1 };

__aicore__ inline void SetHF32Mode(bool hf32Mode) { asim::set_hf32(hf32Mode); }
__aicore__ inline void SetHF32Mode(HF32Mode mode) { SetHF32Mode(mode == HF32Mode::ENABLE); }
__aicore__ inline void SetHF32TransMode(bool hf32TransMode) { asim::set_hf32_ties_to_zero(hf32TransMode); }
__aicore__ inline void SetHF32TransMode(HF32TransMode mode) { SetHF32TransMode(mode == HF32TransMode::NEAREST_ZERO); }
// In which order tiles are computed: no result depends on it.
__aicore__ inline void SetMMLayoutTransform(bool) {}
__aicore__ inline void SetMMRowMajor() {}
__aicore__ inline void SetMMColumnMajor() {}

template <typename T>
constexpr asim::MatrixType matrix_type() {
    using asim::MatrixType;
    static_assert(asim::contains<T, asim::TypeList<half, bfloat16_t, float, int8_t, uint8_t, int4b_t>>::value,
                  "Mmad multiplies half, bfloat16_t, float and integers of 8 and 4 bits");
    if constexpr (std::is_same_v<T, bfloat16_t>) return MatrixType::Bf16;
    if constexpr (std::is_same_v<T, float>) return MatrixType::F32;
    if constexpr (std::is_same_v<T, int8_t>) return MatrixType::I8;
    if constexpr (std::is_same_v<T, uint8_t>) return MatrixType::U8;
    if constexpr (std::is_same_v<T, int4b_t>) return MatrixType::I4;
    return MatrixType::F16;
}

template <typename C, typename A, typename B>
asim::MmadShape mmad_shape(const MmadParams &params, asim::MatrixStart start) {
    static_assert(sizeof(A) == sizeof(B), "both matrices of Mmad have elements of one width");
    static_assert(std::is_same_v<C, float> || (std::is_same_v<C, int32_t> && sizeof(A) == 1),
                  "Mmad gives float, and int32_t of 8-bit integers");
    return {params.m, params.n, params.k, matrix_type<A>(), matrix_type<B>(), start, params.kDirectionAlign, (params.unitFlag & 2) != 0};
}

template <typename T, typename U, typename S>
__aicore__ inline void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter, const MmadParams &params) {
    using asim::MatrixStart;
    const bool accumulates = params.isBias || (!params.cmatrixInitVal && !params.cmatrixSource);
    const auto start = accumulates ? MatrixStart::Accumulate : params.cmatrixInitVal ? MatrixStart::Zero : MatrixStart::Bias;
    asim::mmad(dst.bytes(), fm.bytes(), filter.bytes(), nullptr, mmad_shape<T, U, S>(params, start));
}

// The result starts from a row in the bias table, or from a matrix in L0C.
template <typename T, typename U, typename S, typename V>
__aicore__ inline void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
                            const LocalTensor<V> &bias, const MmadParams &params) {
    using asim::MatrixStart;
    const bool from_table = bias.GetPosition() == TPosition::C2;
    const auto start = params.cmatrixInitVal ? MatrixStart::Zero : from_table ? MatrixStart::Bias : MatrixStart::Accumulate;
    asim::mmad(dst.bytes(), fm.bytes(), filter.bytes(), bias.bytes(), mmad_shape<T, U, S>(params, start));
}

template <typename T, typename U, typename S>
__aicore__ inline void MmadImpl(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter, const MmadParams &params) {
    Mmad(dst, fm, filter, params);
}

}  // namespace AscendC

// DataCopy forms of the cube core: rows and matrices into L1, tables from there, and values that fill a buffer.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/semantics/cube_copy.h"

namespace AscendC {

struct Nd2NzParams {
    Nd2NzParams() = default;
    Nd2NzParams(uint16_t matrices, uint16_t rows, uint16_t columns, uint16_t source_matrix_stride, uint16_t source_row,
                uint16_t column_stride, uint16_t row_stride, uint16_t matrix_stride)
        : ndNum(matrices), nValue(rows), dValue(columns), srcNdMatrixStride(source_matrix_stride), srcDValue(source_row),
          dstNzC0Stride(column_stride), dstNzNStride(row_stride), dstNzMatrixStride(matrix_stride) {}

    uint16_t ndNum = 0;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint16_t srcNdMatrixStride = 0;     // elements
    uint16_t srcDValue = 0;             // elements
    uint16_t dstNzC0Stride = 0;         // 32 B
    uint16_t dstNzNStride = 0;          // 32 B
    uint16_t dstNzMatrixStride = 0;     // elements
};

struct Nz2NdParamsFull {
    Nz2NdParamsFull() = default;
    Nz2NdParamsFull(uint16_t matrices, uint16_t rows, uint16_t columns, uint16_t source_matrix_stride, uint16_t source_stride,
                    uint16_t target_row, uint16_t target_matrix_stride)
        : ndNum(matrices), nValue(rows), dValue(columns), srcNdMatrixStride(source_matrix_stride), srcNStride(source_stride),
          dstDStride(target_row), dstNdMatrixStride(target_matrix_stride) {}

    uint16_t ndNum = 0;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint16_t srcNdMatrixStride = 0;     // 256 elements
    uint16_t srcNStride = 0;            // 16 elements
    uint16_t dstDStride = 0;            // elements
    uint16_t dstNdMatrixStride = 0;     // elements
};

template <typename T>
struct InitConstValueParams {
    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value) {}
    InitConstValueParams(uint16_t repeats, T value) : repeatTimes(repeats), initValue(value) {}

    uint16_t repeatTimes = 0;
    uint16_t blockNum = 0;
    uint16_t dstGap = 0;
    T initValue = T(0);
};

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const Nd2NzParams &params) {
    asim::Nd2NzShape shape;
    shape.matrices = params.ndNum;
    shape.rows = params.nValue;
    shape.columns = params.dValue;
    shape.matrix_stride_bytes = uint64_t{params.srcNdMatrixStride} * sizeof(T);
    shape.row_stride_bytes = uint64_t{params.srcDValue} * sizeof(T);
    shape.nz_column_stride_bytes = uint64_t{params.dstNzC0Stride} * asim::kUbBlockBytes;
    shape.nz_row_stride_bytes = uint64_t{params.dstNzNStride} * asim::kUbBlockBytes;
    shape.nz_matrix_stride_bytes = uint64_t{params.dstNzMatrixStride} * sizeof(T);
    shape.element_bytes = sizeof(T);
    shape.bypass_l2 = src.reads_bypass_l2();
    asim::copy_nd_to_nz(dst.bytes(), src.bytes(), shape);
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const Nz2NdParamsFull &params) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "DataCopy with Nz2NdParamsFull takes elements of 16 or 32 bits");
    asim::Nz2NdShape shape;
    shape.matrices = params.ndNum;
    shape.rows = params.nValue;
    shape.columns = params.dValue;
    shape.matrix_stride_fractals = params.srcNdMatrixStride;
    shape.column_stride_rows = params.srcNStride;
    shape.row_stride_elems = params.dstDStride;
    shape.target_stride_elems = params.dstNdMatrixStride;
    shape.element_bytes = sizeof(T);
    shape.bypass_l2 = dst.writes_bypass_l2();
    asim::copy_nz_to_nd(dst.bytes(), src.bytes(), shape, atomic_type<T>());
}

// From L1 to the bias table, whose elements may be wider than those of the source.
template <typename T, typename U, typename = std::enable_if_t<!std::is_same_v<T, U>>>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyParams &params) {
    static_assert(std::is_same_v<T, float> && std::is_same_v<U, half>, "the bias table takes floats from float or half, int32 from int32");
    asim::copy_l1_to_table(space_of(dst.GetPosition()), dst.bytes(), src.bytes(),
                           table_copy(space_of(dst.GetPosition()), params, true), true);
}

template <typename T, typename U = T>
__aicore__ inline void InitConstValue(const LocalTensor<T> &dst, const InitConstValueParams<U> &params) {
    asim::FillShape shape;
    shape.repeats = params.repeatTimes;
    shape.blocks = params.blockNum;
    shape.gap_blocks = params.dstGap;
    shape.element_bytes = sizeof(T);
    static_assert(sizeof(T) <= sizeof shape.value, "a buffer is filled with elements of up to 4 bytes");
    const T value = static_cast<T>(params.initValue);
    std::memcpy(shape.value, &value, sizeof value);
    asim::fill_local(space_of(dst.GetPosition()), dst.bytes(), shape);
}

template <typename T, typename U = T>
__aicore__ inline void Fill(const LocalTensor<T> &dst, const InitConstValueParams<U> &params) {
    InitConstValue(dst, params);
}

}  // namespace AscendC

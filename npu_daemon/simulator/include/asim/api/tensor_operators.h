// dst = a + b and the like on tensors: the operator names the instruction, the assignment runs it over dst's elements.
#pragma once
#include "asim/api/vector_compare.h"
#include "asim/api/vector_elementwise.h"

namespace AscendC {

#define ASIM_TENSOR_OPERATOR(Symbol, Name)                                                                \
    template <typename T>                                                                                 \
    struct Name##Expression {                                                                             \
        using TensorExpression = void;                                                                    \
        const LocalTensor<T> &left, &right;                                                               \
        void store(const LocalTensor<T> &dst) const {                                                     \
            Name(dst, left, right, static_cast<int32_t>(dst.GetSize()));                                  \
        }                                                                                                 \
    };                                                                                                    \
    template <typename T>                                                                                 \
    __aicore__ inline Name##Expression<T> operator Symbol(const LocalTensor<T> &left, const LocalTensor<T> &right) { \
        return {left, right};                                                                             \
    }

ASIM_TENSOR_OPERATOR(+, Add)
ASIM_TENSOR_OPERATOR(-, Sub)
ASIM_TENSOR_OPERATOR(*, Mul)
ASIM_TENSOR_OPERATOR(/, Div)
ASIM_TENSOR_OPERATOR(|, Or)
ASIM_TENSOR_OPERATOR(&, And)
#undef ASIM_TENSOR_OPERATOR

// Comparisons run over the elements of the left operand.
template <typename T>
struct CompareExpression {
    using TensorExpression = void;
    const LocalTensor<T> &left, &right;
    CMPMODE mode;
    template <typename U>
    void store(const LocalTensor<U> &dst) const {
        Compare(dst, left, right, mode, left.GetSize());
    }
};

#define ASIM_TENSOR_COMPARISON(Symbol, Mode)                                                              \
    template <typename T>                                                                                 \
    __aicore__ inline CompareExpression<T> operator Symbol(const LocalTensor<T> &left, const LocalTensor<T> &right) { \
        return {left, right, CMPMODE::Mode};                                                              \
    }
ASIM_TENSOR_COMPARISON(<, LT)
ASIM_TENSOR_COMPARISON(>, GT)
ASIM_TENSOR_COMPARISON(<=, LE)
ASIM_TENSOR_COMPARISON(>=, GE)
ASIM_TENSOR_COMPARISON(==, EQ)
ASIM_TENSOR_COMPARISON(!=, NE)
#undef ASIM_TENSOR_COMPARISON

}  // namespace AscendC

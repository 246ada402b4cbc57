// Vector instructions on runs of contiguous elements: the words that composite library calls are written in.
#pragma once
#include <initializer_list>

#include "asim/numeric/rounding.h"
#include "asim/semantics/cast.h"
#include "asim/semantics/compare.h"
#include "asim/semantics/math.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"

namespace asim {

// Issues instructions over the first `count` elements of their operands.
template <typename T>
class Steps {
public:
    explicit Steps(uint32_t count) : shape_(Shape::first(count)) {}

    uint32_t count() const { return shape_.count; }

    template <Op O>
    void one(T *dst, const T *src) const {
        unary<O, T>(at(dst), at(src), shape_);
    }
    template <Op O>
    void two(T *dst, const T *src0, const T *src1) const {
        binary<O, T>(at(dst), at(src0), at(src1), shape_);
    }
    template <Op O>
    void by(T *dst, const T *src, float scalar) const {
        with_scalar<O, T>(at(dst), at(src), static_cast<T>(scalar), shape_);
    }
    void fill(T *dst, float value) const { duplicate<T>(at(dst), static_cast<T>(value), shape_); }
    void round(float *dst, const float *src, RoundMode mode) const { cast<float, float>(at(dst), at(src), mode, shape_); }

    // Packed bits of the comparison; whole repeats are compared, so `src` needs room up to the next repeat.
    void where(uint8_t *bits, const T *src, CompareMode mode, float scalar) const {
        constexpr uint32_t lanes = kRepeatBytes / sizeof(T);
        compare_scalar<T>(bits, at(src), static_cast<T>(scalar), mode, (shape_.count + lanes - 1) / lanes);
    }
    void where(uint8_t *bits, const T *src0, CompareMode mode, const T *src1) const {
        constexpr uint32_t lanes = kRepeatBytes / sizeof(T);
        compare<T>(bits, at(src0), at(src1), mode, (shape_.count + lanes - 1) / lanes);
    }
    // dst = bit ? src : scalar
    void choose(T *dst, const uint8_t *bits, const T *src, float scalar) const {
        select_scalar<T>(at(dst), {bits, true}, at(src), static_cast<T>(scalar), shape_);
    }
    void choose(T *dst, const uint8_t *bits, const T *src0, const T *src1) const {
        select<T>(at(dst), {bits, true}, at(src0), at(src1), shape_);
    }

    // dst = c0 x^n + c1 x^(n-1) + ... + cn, by Horner's rule; dst must not be x.
    void polynomial(T *dst, const T *x, std::initializer_list<float> coefficients) const {
        const float *next = coefficients.begin();
        by<Op::Muls>(dst, x, *next++);
        for (; next + 1 != coefficients.end(); ++next) {
            by<Op::Adds>(dst, dst, *next);
            two<Op::Mul>(dst, dst, x);
        }
        by<Op::Adds>(dst, dst, *next);
    }

private:
    template <typename U>
    static Lanes at(const U *address) {
        return {reinterpret_cast<uint8_t *>(const_cast<U *>(address)), 1, 8};
    }

    Shape shape_;
    LibraryCall call_;
};

// Equal pieces of the scratch buffer.
template <typename T>
struct Pieces {
    T *base;
    uint32_t elems;
    T *operator[](uint32_t index) const { return base + static_cast<uint64_t>(index) * elems; }
    uint8_t *bits(uint32_t index) const { return reinterpret_cast<uint8_t *>((*this)[index]); }
};

// Bytes of a piece are a multiple of two data blocks, so that chunks of half operands start at data blocks too.
constexpr uint32_t kPieceBytes = 2 * kUbBlockBytes;

// Elements in each of `pieces` pieces: whole repeats if they fit.
template <typename T>
Pieces<T> divide(const char *call, Scratch scratch, uint32_t pieces, uint32_t count) {
    constexpr uint32_t block = kPieceBytes / sizeof(T), repeat = kRepeatBytes / sizeof(T);
    const uint32_t fitting = scratch.bytes / (pieces * sizeof(T));
    const uint32_t whole = fitting >= repeat ? fitting / repeat * repeat : fitting / block * block;
    if (whole == 0 && count != 0) {
        fault(FaultKind::RuntimeFault, call,
              "the temporary buffer has %u bytes, but the call needs at least %u: make sharedTmpBuffer larger, or leave "
              "room in the unified buffer", scratch.bytes, pieces * kPieceBytes);
    }
    const uint32_t needed = (count + repeat - 1) / repeat * repeat;
    return {reinterpret_cast<T *>(scratch.base), whole < needed ? whole : needed};
}

}  // namespace asim

// Power: e^(y ln |x|) with the sign and the special cases of pow; repeated squaring for integers.
#include <limits>

#include "asim/check/check.h"
#include "asim/machine/call_sync.h"
#include "math_formulas.h"

namespace asim {

namespace {

enum Piece : uint32_t { kBase, kExponent, kResult, kSign, kSpare, kPieces };

template <typename T>
void load_operand(const Steps<float> &steps, float *to, const PowerOperand<T> &operand, uint32_t done) {
    if (operand.tensor == nullptr) return steps.fill(to, static_cast<float>(operand.scalar));
    const Lanes from{const_cast<uint8_t *>(operand.tensor) + uint64_t{done} * sizeof(T)};
    const Lanes target{reinterpret_cast<uint8_t *>(to)};
    if constexpr (std::is_same_v<T, half>) {
        cast<float, half>(target, from, RoundMode::CAST_NONE, Shape::first(steps.count()));
    } else {
        with_scalar<Op::Adds, float>(target, from, 0.0f, Shape::first(steps.count()));
    }
}

template <typename T>
void store_result(const Steps<float> &steps, uint8_t *dst, float *result, uint32_t done) {
    const Lanes target{dst + uint64_t{done} * sizeof(T)}, from{reinterpret_cast<uint8_t *>(result)};
    if constexpr (std::is_same_v<T, half>) {
        cast<half, float>(target, from, RoundMode::CAST_RINT, Shape::first(steps.count()));
    } else {
        with_scalar<Op::Adds, float>(target, from, 0.0f, Shape::first(steps.count()));
    }
}

// piece[kSign] = x < 0 ? (y integral ? (-1)^y : NaN) : 1
void sign_of_power(const Steps<float> &steps, const Pieces<float> &piece) {
    float *sign = piece[kSign], *spare = piece[kSpare];
    steps.by<Op::Muls>(spare, piece[kExponent], 0.5f);
    steps.round(spare, spare, RoundMode::CAST_FLOOR);
    steps.by<Op::Muls>(spare, spare, 4.0f);
    steps.by<Op::Muls>(sign, piece[kExponent], -2.0f);
    steps.two<Op::Add>(sign, sign, spare);
    steps.by<Op::Adds>(sign, sign, 1.0f);
    steps.round(spare, piece[kExponent], RoundMode::CAST_RINT);
    uint8_t *bits = piece.bits(kSpare);
    steps.where(bits, spare, CompareMode::EQ, piece[kExponent]);
    steps.choose(sign, bits, sign, std::numeric_limits<float>::quiet_NaN());
    steps.where(bits, piece[kBase], CompareMode::LT, 0.0f);
    steps.choose(sign, bits, sign, 1.0f);
}

void power_of_floats(const Steps<float> &steps, const Pieces<float> &piece) {
    float *result = piece[kResult];
    steps.one<Op::Abs>(result, piece[kBase]);
    steps.one<Op::Ln>(result, result);
    steps.two<Op::Mul>(result, result, piece[kExponent]);
    steps.one<Op::Exp>(result, result);
    sign_of_power(steps, piece);
    steps.two<Op::Mul>(result, result, piece[kSign]);
    uint8_t *bits = piece.bits(kSpare);
    steps.where(bits, piece[kExponent], CompareMode::NE, 0.0f);
    steps.choose(result, bits, result, 1.0f);
    steps.where(bits, piece[kBase], CompareMode::NE, 1.0f);
    steps.choose(result, bits, result, 1.0f);
}

// Highest bit of any exponent, which the library reads to know how often to square.
uint32_t exponent_bits(const PowerOperand<int32_t> &exponent, uint32_t count) {
    const auto *values = reinterpret_cast<const int32_t *>(exponent.tensor);
    int32_t lowest = exponent.scalar, highest = exponent.scalar;
    if (values != nullptr && count > 0) {
        checked_ub("Power", values, uint64_t{count} * sizeof *values);
        synchronise(Pipe::V, Pipe::S);
        lowest = *std::min_element(values, values + count);
        highest = *std::max_element(values, values + count);
    }
    if (lowest < 0) {
        fault(FaultKind::Unsupported, "Power", "negative exponents of int32_t tensors are not simulated, got %d", lowest);
    }
    return highest == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(static_cast<uint32_t>(highest)));
}

void load_integers(Lanes to, const PowerOperand<int32_t> &operand, uint32_t done, const Shape &shape) {
    if (operand.tensor == nullptr) return duplicate<int32_t>(to, operand.scalar, shape);
    with_scalar<Op::Adds, int32_t>(to, {const_cast<uint8_t *>(operand.tensor) + uint64_t{done} * sizeof(int32_t)}, 0, shape);
}

// result *= bit of exponent ? base : 1
void multiply_where_bit(Lanes result, Lanes base, Lanes exponent, Lanes factor, Lanes flag, uint32_t bit, const Shape &shape) {
    with_scalar<Op::ShiftLeft, uint32_t>(flag, exponent, 31 - bit, shape);
    with_scalar<Op::ShiftRight, uint32_t>(flag, flag, 31, shape);
    with_scalar<Op::Adds, int32_t>(factor, base, -1, shape);
    binary<Op::Mul, int32_t>(factor, factor, flag, shape);
    with_scalar<Op::Adds, int32_t>(factor, factor, 1, shape);
    binary<Op::Mul, int32_t>(result, result, factor, shape);
}

void power_of_integers(uint8_t *dst, const PowerOperand<int32_t> &base, const PowerOperand<int32_t> &exponent,
                       Scratch scratch, uint32_t count) {
    const Pieces<int32_t> piece = divide<int32_t>("Power", scratch, kPieces, count);
    const uint32_t bits = exponent_bits(exponent, count);
    for (uint32_t done = 0; done < count; done += piece.elems) {
        const Shape shape = Shape::first(std::min(piece.elems, count - done));
        const Lanes x{piece.bits(kBase)}, y{piece.bits(kExponent)}, result{piece.bits(kResult)};
        load_integers(x, base, done, shape);
        load_integers(y, exponent, done, shape);
        duplicate<int32_t>(result, 1, shape);
        for (uint32_t bit = 0; bit < bits; ++bit) {
            if (bit > 0) binary<Op::Mul, int32_t>(x, x, x, shape);
            multiply_where_bit(result, x, y, {piece.bits(kSign)}, {piece.bits(kSpare)}, bit, shape);
        }
        with_scalar<Op::Adds, int32_t>({dst + uint64_t{done} * sizeof(int32_t)}, result, 0, shape);
    }
}

template <typename T>
void power_by_formula(uint8_t *dst, PowerOperand<T> base, PowerOperand<T> exponent, Scratch scratch, uint32_t count) {
    const Pieces<float> piece = divide<float>("Power", scratch, kPieces, count);
    for (uint32_t done = 0; done < count; done += piece.elems) {
        const Steps<float> steps(std::min(piece.elems, count - done));
        load_operand(steps, piece[kBase], base, done);
        load_operand(steps, piece[kExponent], exponent, done);
        power_of_floats(steps, piece);
        store_result<T>(steps, dst, piece[kResult], done);
    }
}

}  // namespace

template <typename T>
void power(uint8_t *dst, PowerOperand<T> base, PowerOperand<T> exponent, Scratch scratch, uint32_t count) {
    const LibraryCall call;
    const uint64_t bytes = uint64_t{count} * sizeof(T);
    check_contract(LibraryContract::Power, {dst, bytes},
                   {{base.tensor, base.tensor == nullptr ? 0 : bytes}, {exponent.tensor, exponent.tensor == nullptr ? 0 : bytes}});
    if constexpr (std::is_same_v<T, int32_t>) {
        power_of_integers(dst, base, exponent, scratch, count);
    } else {
        const bool tensors = base.tensor != nullptr && exponent.tensor != nullptr;
        if (elements_of_power(sizeof(T), tensors, scratch) == 0) return power_by_formula<T>(dst, base, exponent, scratch, count);
        const ScratchUse use = power_scratch_use(sizeof(T), tensors, count, scratch);
        for (const uint8_t *operand : {base.tensor, exponent.tensor, static_cast<const uint8_t *>(dst)}) {
            use.must_not_hold(operand, uint64_t{count} * sizeof(T));
        }
        {
            const ValuesOnly values;
            power_by_formula<T>(dst, base, exponent, scratch, count);
        }
        issue_power(sizeof(T), dst, base.tensor, exponent.tensor, scratch, count);
        use.lose();
    }
}

template void power<half>(uint8_t *, PowerOperand<half>, PowerOperand<half>, Scratch, uint32_t);
template void power<float>(uint8_t *, PowerOperand<float>, PowerOperand<float>, Scratch, uint32_t);
template void power<int32_t>(uint8_t *, PowerOperand<int32_t>, PowerOperand<int32_t>, Scratch, uint32_t);

}  // namespace asim

// Type conversion of tensors.
#include "asim/semantics/cast.h"

#include <cmath>

#include "asim/numeric/half_run.h"
#include "asim/semantics/lanes.h"

namespace asim {

namespace {

constexpr const char *kModeNames[] = {"CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL",
                                      "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};

template <RoundMode M, typename D, typename S>
void convert_lanes(Lanes dst, Lanes src, const Shape &shape) {
    for_each_lane<D>(shape, [](D &d, const S &x) { d = convert<M, D>(x); }, dst, source<S>(src));
}

// To the nearest representable value: the common case, by host vectors between half and float.
template <typename D, typename S>
void convert_nearest(Lanes dst, Lanes src, const Shape &shape) {
    if constexpr (std::is_same_v<CastPair<D, S>, CastPair<half, float>> ||
                  std::is_same_v<CastPair<D, S>, CastPair<float, half>>) {
        if (contiguous(shape)) {
            return convert_run(reinterpret_cast<D *>(dst.base), reinterpret_cast<const S *>(src.base), shape.count);
        }
    }
    convert_lanes<RoundMode::CAST_RINT, D, S>(dst, src, shape);
}

template <typename D, typename S>
void convert_by_mode(Lanes dst, Lanes src, RoundMode mode, const Shape &shape) {
    if constexpr (contains<CastPair<D, S>, ExactCasts>::value) {
        return convert_nearest<D, S>(dst, src, shape);
    }
    switch (mode) {
        case RoundMode::CAST_FLOOR: return convert_lanes<RoundMode::CAST_FLOOR, D, S>(dst, src, shape);
        case RoundMode::CAST_CEIL: return convert_lanes<RoundMode::CAST_CEIL, D, S>(dst, src, shape);
        case RoundMode::CAST_ROUND: return convert_lanes<RoundMode::CAST_ROUND, D, S>(dst, src, shape);
        case RoundMode::CAST_TRUNC: return convert_lanes<RoundMode::CAST_TRUNC, D, S>(dst, src, shape);
        case RoundMode::CAST_ODD:
            if constexpr (takes_mode<D, S>(RoundMode::CAST_ODD)) {
                return convert_lanes<RoundMode::CAST_ODD, D, S>(dst, src, shape);
            }
            return;
        default: return convert_nearest<D, S>(dst, src, shape);
    }
}

void convert_scaled(Lanes dst, Lanes src, const Shape &shape) {
    const VectorRegisters &registers = vector_registers();
    if (!registers.deq_scale_set) {
        fault(FaultKind::RuntimeFault, "Cast", "int32_t to half multiplies by the scale of SetDeqScale, which was not called");
    }
    const double scale = static_cast<double>(from_float_bits<half>(static_cast<uint16_t>(registers.deq_scale)));
    for_each_lane<half>(shape, [scale](half &d, const int32_t &x) { d = static_cast<half>(x * scale); }, dst,
                        source<int32_t>(src));
}

// A word of SetDeqScale: scale in bits 0 to 31, offset of 9 bits from bit 37 on, the sign of results in bit 46.
int8_t dequantised(uint64_t word, int16_t value, bool is_signed) {
    constexpr int kOffsetBits = 9;
    const auto scale = from_float_bits<float>(static_cast<uint32_t>(word));
    int offset = static_cast<int>(word >> 37 & ((1 << kOffsetBits) - 1));
    if (offset >= 1 << (kOffsetBits - 1)) offset -= 1 << kOffsetBits;
    const double rounded = std::nearbyint(static_cast<double>(value) * scale) + offset;
    const double low = is_signed ? -128.0 : 0.0, high = is_signed ? 127.0 : 255.0;
    return static_cast<int8_t>(static_cast<int>(std::isnan(rounded) ? 0.0 : std::clamp(rounded, low, high)));
}

void check_mode(RoundMode mode) {
    if (mode > RoundMode::CAST_ODD) fault(FaultKind::RuntimeFault, "Cast", "there is no rounding mode of number %u", static_cast<unsigned>(mode));
}

constexpr int kInt4Min = -8, kInt4Max = 7;

int8_t round_to_int8(RoundMode mode, half x) {
    switch (mode) {
        case RoundMode::CAST_FLOOR: return convert<RoundMode::CAST_FLOOR, int8_t>(x);
        case RoundMode::CAST_CEIL: return convert<RoundMode::CAST_CEIL, int8_t>(x);
        case RoundMode::CAST_ROUND: return convert<RoundMode::CAST_ROUND, int8_t>(x);
        case RoundMode::CAST_TRUNC: return convert<RoundMode::CAST_TRUNC, int8_t>(x);
        default: return convert<RoundMode::CAST_RINT, int8_t>(x);
    }
}

// Two numbers share a byte: both take part, or neither.
void check_pairs(const Shape &shape) {
    constexpr uint64_t kFirst = 0x5555555555555555ull;
    const bool odd = shape.counted ? shape.count % 2 != 0 : (((shape.mask[0] ^ shape.mask[0] >> 1) | (shape.mask[1] ^ shape.mask[1] >> 1)) & kFirst) != 0;
    if (!odd) return;
    fault(FaultKind::RuntimeFault, "Cast", "the count or mask of int4b_t takes one of two numbers that share a byte: expected an even count, and equal bits for both");
}

// Traces a conversion between `count` halves and packed four-bit numbers; `packed` says which side is packed.
void emit_int4(uint8_t *dst, bool dst_packed, uint8_t *src, bool src_packed, uint32_t count) {
    const auto operand = [count](const char *role, const uint8_t *base, bool packed) {
        const uint64_t bytes = packed ? (uint64_t{count} + 1) / 2 : uint64_t{count} * sizeof(half);
        const uint64_t offset = checked_ub("Cast", base, bytes);
        check_ub_alignment("Cast", role, offset, kUbBlockBytes);
        return Operand{offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(bytes), 1u | 8u << 16};
    };
    const Operand out = operand("dst", dst, dst_packed), in = operand("src", src, src_packed);
    emit_vector(Op::Cast, sizeof(half), repeats_of(Shape::first(count), sizeof(half)), {out, in});
}

}  // namespace

void cast_dequant(Lanes dst, Lanes src, DequantShape how, Shape shape) {
    constexpr uint32_t kLanes = lanes_per_repeat(sizeof(int16_t)), kBlockLanes = kUbBlockBytes / sizeof(int16_t);
    constexpr uint32_t kTableBytes = kBlockLanes * sizeof(uint64_t);
    const VectorRegisters &registers = vector_registers();
    if (!registers.deq_scale_set) {
        fault(FaultKind::RuntimeFault, "CastDequant", "scales come from SetDeqScale, which was not called");
    }
    const Operand out = vector_operand<int16_t>(Op::Cast, "dst", dst, shape, sizeof(int16_t));
    const Operand in = vector_operand<int16_t>(Op::Cast, "src", src, shape, sizeof(int16_t));
    uint64_t words[kBlockLanes];
    std::fill_n(words, kBlockLanes, registers.deq_scale);
    Operand table = kNoOperand;
    if (how.by_lane) {
        const uint8_t *const base = block().ub + registers.deq_scale * kUbBlockBytes;
        const uint64_t offset = checked_ub("CastDequant", base, kTableBytes);
        std::memcpy(words, base, sizeof words);
        table = {offset, static_cast<uint64_t>(Space::Ub), kTableBytes, 1u};
    }
    for (const uint64_t word : words) {
        if ((word >> 46 & 1) == (how.is_signed ? 1u : 0u)) continue;
        fault(FaultKind::RuntimeFault, "CastDequant", "signMode of SetDeqScale is %s, but results are %s: int8_t takes true, uint8_t false",
              word >> 46 & 1 ? "true" : "false", how.is_signed ? "int8_t" : "uint8_t");
    }
    int8_t results[kLanes];
    for (uint32_t repeat = 0; repeat < repeats_of(shape, sizeof(int16_t)); ++repeat) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            if (lane_active(shape, repeat, lane, kLanes)) {
                results[lane] = dequantised(words[lane % kBlockLanes], *lane_pointer<int16_t>(src, repeat, lane), how.is_signed);
            }
        }
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            if (!lane_active(shape, repeat, lane, kLanes)) continue;
            auto *block_start = reinterpret_cast<int8_t *>(lane_pointer<int16_t>(dst, repeat, lane / kBlockLanes * kBlockLanes));
            block_start[(how.second_half ? kBlockLanes : 0) + lane % kBlockLanes] = results[lane];
        }
    }
    if (how.by_lane) return emit_vector(Op::Cast, sizeof(int16_t), repeats_of(shape, sizeof(int16_t)), {out, in, table});
    emit_vector(Op::Cast, sizeof(int16_t), repeats_of(shape, sizeof(int16_t)), {out, in});
}

void cast_to_int4(uint8_t *dst, uint8_t *src, RoundMode mode, uint32_t count) {
    check_mode(mode);
    if (mode == RoundMode::CAST_ODD) {
        fault(FaultKind::RuntimeFault, "Cast", "CAST_ODD is not a rounding mode of half to int4b_t");
    }
    check_pairs(Shape::first(count));
    emit_int4(dst, true, src, false, count);
    const half *from = reinterpret_cast<const half *>(src);
    for (uint32_t i = 0; i < count; ++i) {
        const int value = std::clamp<int>(round_to_int8(mode, from[i]), kInt4Min, kInt4Max) & 15;
        dst[i / 2] = static_cast<uint8_t>(i % 2 ? (dst[i / 2] & 15) | value << 4 : (dst[i / 2] & 240) | value);
    }
}

void cast_from_int4(uint8_t *dst, uint8_t *src, RoundMode mode, uint32_t count) {
    if (mode != RoundMode::CAST_NONE) {
        fault(FaultKind::RuntimeFault, "Cast", "int4b_t to half is exact: use CAST_NONE");
    }
    check_pairs(Shape::first(count));
    emit_int4(dst, false, src, true, count);
    half *to = reinterpret_cast<half *>(dst);
    for (uint32_t i = 0; i < count; ++i) {
        const int bits = i % 2 ? src[i / 2] >> 4 : src[i / 2] & 15;
        to[i] = static_cast<half>(bits > kInt4Max ? bits - 16 : bits);
    }
}

void cast_int4_lanes(Lanes dst, Lanes src, RoundMode mode, Shape shape, bool packs) {
    constexpr uint32_t kLanes = lanes_per_repeat(sizeof(half)), kPacked = kUbBlockBytes * 2;
    check_mode(mode);
    if (packs ? mode == RoundMode::CAST_ODD : mode != RoundMode::CAST_NONE) {
        fault(FaultKind::RuntimeFault, "Cast", packs ? "CAST_ODD is not a rounding mode of half to int4b_t" : "int4b_t to half is exact: use CAST_NONE");
    }
    check_pairs(shape);
    const uint32_t repeats = repeats_of(shape, sizeof(half));
    const uint32_t span = shape.counted ? std::min(shape.count, kLanes) : active_span(shape, sizeof(half));
    const Lanes &packed = packs ? dst : src, &halves = packs ? src : dst;
    check_units("Cast", "the block stride of an operand", packed.block_stride);
    check_units("Cast", "the repeat stride of an operand", packed.repeat_stride);
    const auto byte_of = [&](uint32_t repeat, uint32_t lane) {
        return uint64_t{repeat} * packed.repeat_stride * kUbBlockBytes + uint64_t{lane / kPacked} * packed.block_stride * kUbBlockBytes + lane % kPacked / 2;
    };
    const Operand plain = vector_operand<half>(Op::Cast, packs ? "src" : "dst", halves, shape, sizeof(half));
    const uint64_t bytes = repeats == 0 || span == 0 ? 0 : byte_of(repeats - 1, span - 1) + 1;
    const uint64_t offset = checked_ub("Cast", packed.base, bytes);
    check_ub_alignment("Cast", packs ? "dst" : "src", offset, kUbBlockBytes);
    const Operand other{offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(bytes), packed.block_stride | packed.repeat_stride << 16};
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            if (!lane_active(shape, repeat, lane, kLanes)) continue;
            uint8_t &pair = packed.base[byte_of(repeat, lane)];
            half &number = *lane_pointer<half>(halves, repeat, lane);
            if (packs) {
                const int value = std::clamp<int>(round_to_int8(mode, number), kInt4Min, kInt4Max) & 15;
                pair = static_cast<uint8_t>(lane % 2 ? (pair & 15) | value << 4 : (pair & 240) | value);
            } else {
                const int bits = lane % 2 ? pair >> 4 : pair & 15;
                number = static_cast<half>(bits > kInt4Max ? bits - 16 : bits);
            }
        }
    }
    emit_vector(Op::Cast, sizeof(half), repeats, {packs ? other : plain, packs ? plain : other});
}

template <typename D, typename S>
void cast(Lanes dst, Lanes src, RoundMode mode, Shape shape) {
    check_mode(mode);
    if (!takes_mode<D, S>(mode)) {
        fault(FaultKind::RuntimeFault, "Cast", "%s is not a rounding mode of this pair of element types on Atlas A2: use %s",
              kModeNames[static_cast<int>(mode)],
              takes_mode<D, S>(RoundMode::CAST_NONE) ? "CAST_NONE" : "CAST_RINT, _FLOOR, _CEIL, _ROUND or _TRUNC");
    }
    constexpr uint32_t widest = sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S);
    constexpr Op op = widest == sizeof(int64_t) ? Op::Cast64 : Op::Cast;
    const Operand out = vector_operand<D>(op, "dst", dst, shape, widest);
    const Operand in = vector_operand<S>(op, "src", src, shape, widest);
    if constexpr (contains<CastPair<D, S>, ScaledCasts>::value) convert_scaled(dst, src, shape);
    else convert_by_mode<D, S>(dst, src, mode, shape);
    emit_vector(op, widest, repeats_of(shape, widest), {out, in});
}

template <typename... D, typename... S>
void instantiate_casts(TypeList<CastPair<D, S>...>) {
    static void (*const kept[])(Lanes, Lanes, RoundMode, Shape) __attribute__((used)) = {&cast<D, S>...};
    (void)kept;
}

// Never called: taking the addresses is what makes the compiler emit the functions.
void instantiate_all_casts() {
    instantiate_casts(ExactCasts{});
    instantiate_casts(RoundingCasts{});
    instantiate_casts(RoundingOrNoneCasts{});
    instantiate_casts(ScaledCasts{});
}

}  // namespace asim

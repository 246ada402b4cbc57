// How lanes of an operand map to bytes, and how an instruction walks over them.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "asim/check/check.h"
#include "asim/check/operand_overlap.h"
#include "asim/machine/call_sync.h"
#include "asim/numeric/half_run.h"
#include "asim/semantics/vector.h"
#include "asim/trace/writer.h"

namespace asim {

// Lanes of one repeat when the widest element has `widest_bytes` bytes.
constexpr uint32_t lanes_per_repeat(uint32_t widest_bytes) { return kRepeatBytes / widest_bytes; }

inline uint32_t repeats_of(const Shape &shape, uint32_t widest_bytes) {
    const uint32_t lanes = lanes_per_repeat(widest_bytes);
    return shape.counted ? (shape.count + lanes - 1) / lanes : shape.repeats;
}

inline bool contiguous(const Shape &shape) { return shape.counted && !shape.strided; }

inline bool lane_active(const Shape &shape, uint32_t lane) { return (shape.mask[lane >> 6] >> (lane & 63)) & 1u; }

// Likewise for lane `lane` of repeat `repeat`, whatever the mode; a repeat has `lanes` lanes.
inline bool lane_active(const Shape &shape, uint32_t repeat, uint32_t lane, uint32_t lanes) {
    return shape.counted ? uint64_t{repeat} * lanes + lane < shape.count : lane_active(shape, lane);
}

// One past the highest active lane of a repeat.
inline uint32_t active_span(const Shape &shape, uint32_t widest_bytes) {
    const uint32_t lanes = lanes_per_repeat(widest_bytes);
    const uint64_t high = lanes > 64 ? shape.mask[1] : 0;
    const uint64_t low = lanes < 64 ? shape.mask[0] & ((1ull << lanes) - 1) : shape.mask[0];
    return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

template <typename T>
T *lane_pointer(const Lanes &operand, uint32_t repeat, uint32_t lane) {
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(T);
    const uint64_t offset = static_cast<uint64_t>(repeat) * operand.repeat_stride * kUbBlockBytes +
                            static_cast<uint64_t>(lane / per_block) * operand.block_stride * kUbBlockBytes +
                            (lane % per_block) * sizeof(T);
    return reinterpret_cast<T *>(operand.base + offset);
}

// Likewise in counter mode: the last element of the last repeat, or of the full one before it.
template <typename T>
uint64_t counter_extent(const Lanes &operand, uint32_t count, uint32_t lanes) {
    if (count == 0) return 0;
    const uint32_t last = (count - 1) / lanes;
    const T *end = lane_pointer<T>(operand, last, (count - 1) % lanes) + 1;
    if (last > 0) end = std::max<const T *>(end, lane_pointer<T>(operand, last - 1, lanes - 1) + 1);
    return reinterpret_cast<const uint8_t *>(end) - operand.base;
}

// Bytes from the operand's base to one past its last active lane.
template <typename T>
uint64_t operand_extent(const Lanes &operand, const Shape &shape, uint32_t widest_bytes) {
    if (contiguous(shape)) {
        return static_cast<uint64_t>(shape.count) * sizeof(T);
    }
    if (shape.counted) {
        return counter_extent<T>(operand, shape.count, lanes_per_repeat(widest_bytes));
    }
    const uint32_t span = active_span(shape, widest_bytes);
    if (span == 0 || shape.repeats == 0) {
        return 0;
    }
    const T *last = lane_pointer<T>(operand, shape.repeats - 1, span - 1) + 1;
    return reinterpret_cast<const uint8_t *>(last) - operand.base;
}

// Distances and repeats of an instruction have 16 bits: with more, extents would wrap around.
constexpr uint32_t kMostUnits = 0xffff;

inline void check_units(const char *call, const char *what, uint64_t value) {
    if (__builtin_expect(value > kMostUnits, 0)) {
        fault(FaultKind::RuntimeFault, call, "%s is %llu: expected at most %u", what, static_cast<unsigned long long>(value), kMostUnits);
    }
}

// A result with a block stride of 0, which is undefined where more than one data block of a repeat takes part.
template <typename T>
void check_result_blocks(const char *call, const Shape &shape, uint32_t widest_bytes) {
    const uint32_t span = shape.counted ? std::min(shape.count, lanes_per_repeat(widest_bytes)) : active_span(shape, widest_bytes);
    if (span * sizeof(T) <= kUbBlockBytes) return;
    fault(FaultKind::RuntimeFault, call, "dstBlkStride is 0, expected at least 1: all data blocks of a repeat would lie in one place");
}

// Checks an operand and describes it for the trace.
template <typename T>
Operand vector_operand(Op op, const char *role, const Lanes &operand, const Shape &shape, uint32_t widest_bytes) {
    const char *call = info(op).name;
    if (!contiguous(shape)) {
        check_units(call, "the block stride of an operand", operand.block_stride);
        check_units(call, "the repeat stride of an operand", operand.repeat_stride);
        check_units(call, "the number of repeats", shape.counted ? 0 : shape.repeats);
    }
    if (__builtin_expect(operand.block_stride == 0, 0) && role[0] == 'd' && !contiguous(shape)) check_result_blocks<T>(call, shape, widest_bytes);
    const uint64_t extent = operand_extent<T>(operand, shape, widest_bytes);
    const uint64_t offset = checked_ub(call, operand.base, extent);
    check_ub_alignment(call, role, offset, kUbBlockBytes);
    const uint32_t stride = contiguous(shape) ? 1u | 8u << 16 : operand.block_stride | operand.repeat_stride << 16;
    return {offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(extent), stride};
}

// What an instruction has in place of an operand that the trace does not describe.
constexpr Operand kNoOperand{0, static_cast<uint64_t>(Space::Ub), 0, 1u};

inline void emit_vector(Op op, uint32_t widest_bytes, uint32_t repeats, std::initializer_list<Operand> operands, uint16_t left_in = 0) {
    if (block().values_only > 0) return;
    if (block().library_calls == 0) check_overlap(op, repeats, operands);
    Record record{};
    record.op = op;
    record.dtype_bytes = static_cast<uint8_t>(widest_bytes);
    record.flag_id = left_in;
    record.repeats = repeats;
    record.source_pipe = place_in_call();
    emit(record, operands);
}

// A source operand with its element type.
template <typename S>
struct Source {
    const Lanes &lanes;
    const S *linear() const { return reinterpret_cast<const S *>(lanes.base); }
};

template <typename S>
Source<S> source(const Lanes &operand) {
    return {operand};
}

// A function of elements whose result in half is its result in float, rounded once.
template <typename F>
struct RoundedOnce {
    F f;
    template <typename... T>
    void operator()(T &...elements) const {
        f(elements...);
    }
};

// Whether writing one of `count` elements could change another one that is read later.
template <typename D, typename S>
bool overlap_shifted(const D *out, const S *in, uint32_t count) {
    const auto first = reinterpret_cast<uintptr_t>(out), second = reinterpret_cast<uintptr_t>(in);
    return first != second && first < second + count * sizeof(S) && second < first + count * sizeof(D);
}

template <typename F, typename D, typename... S>
void walk_all(const F &f, uint32_t count, D *out, const S *...in) {
    for (uint32_t i = 0; i < count; ++i) {
        f(out[i], in[i]...);
    }
}

// Likewise where the first source is `out` itself: by one pointer, as compilers take two for an overlap of vectors.
template <typename F, typename D, typename... S>
void walk_in_place(const F &f, uint32_t count, D *out, const S *...in) {
    for (uint32_t i = 0; i < count; ++i) {
        const D value = out[i];
        f(out[i], value, in[i]...);
    }
}

template <typename F, typename D>
void walk_vectors(const F &f, uint32_t count, D *out) {
    walk_all(f, count, out);
}

template <typename F, typename D, typename S>
void walk_vectors(const F &f, uint32_t count, D *out, const S *in) {
    if constexpr (std::is_same_v<D, S>) {
        if (out == in) return walk_in_place(f, count, out);
    }
    walk_all(f, count, out, in);
}

template <typename F, typename D, typename S>
void walk_vectors(const F &f, uint32_t count, D *out, const S *first, const S *second) {
    if constexpr (std::is_same_v<D, S>) {
        const auto swapped = [&f](D &d, const S &b, const S &a) { f(d, a, b); };
        if (out == first && out != second) return walk_in_place(f, count, out, second);
        if (out == second && out != first) return walk_in_place(swapped, count, out, first);
    }
    walk_all(f, count, out, first, second);
}

// Not inlined where it is called, so that its loops are compiled once.
template <typename F, typename D, typename... S>
[[gnu::noinline]] void walk_run(F f, uint32_t count, D *out, const S *...in) {
    walk_vectors(f, count, out, in...);
}

// Runs of half are computed in float, converted many elements at a time.
template <typename F, size_t... Index, typename... S>
void walk_in_float(const F &f, std::index_sequence<Index...>, uint32_t count, half *out, const S *...in) {
    constexpr uint32_t kElems = 256;
    float result[kElems], operands[sizeof...(S)][kElems];
    for (uint32_t start = 0; start < count; start += kElems) {
        const uint32_t elems = std::min(kElems, count - start);
        (convert_run(operands[Index], in + start, elems), ...);
        for (uint32_t i = 0; i < elems; ++i) {
            f(result[i], operands[Index][i]...);
        }
        convert_run(out + start, result, elems);
    }
}

template <typename F, typename D, typename... S>
[[gnu::noinline]] void walk_run(RoundedOnce<F> function, uint32_t count, D *out, const S *...in) {
    if constexpr (std::is_same_v<D, half> && (std::is_same_v<S, half> && ...)) {
        if (!(overlap_shifted(out, in, count) || ...)) {
            return walk_in_float(function.f, std::index_sequence_for<S...>{}, count, out, in...);
        }
    }
    walk_run(function.f, count, out, in...);
}

// Number of active lanes of a repeat if they are its first ones, else kScattered.
constexpr uint32_t kScattered = ~0u;
inline uint32_t leading_lanes(const Shape &shape, uint32_t repeat, uint32_t lanes) {
    if (shape.counted) return std::min(shape.count - repeat * lanes, lanes);
    const uint32_t span = active_span(shape, kRepeatBytes / lanes);
    const Shape leading = Shape::leading(span, shape.repeats);
    const bool same_low = ((shape.mask[0] ^ leading.mask[0]) << (lanes < 64 ? 64 - lanes : 0)) == 0;
    return same_low && (lanes <= 64 || shape.mask[1] == leading.mask[1]) ? span : kScattered;
}

// Calls f(element of dst, elements of the sources) for each active lane, in order.
template <typename D, typename F, typename... S>
void for_each_lane(const Shape &shape, F f, const Lanes &dst, const Source<S> &...sources) {
    constexpr uint32_t lanes = lanes_per_repeat(static_cast<uint32_t>(std::max({sizeof(D), sizeof(S)...})));
    if (contiguous(shape)) {
        return walk_run(f, shape.count, reinterpret_cast<D *>(dst.base), sources.linear()...);
    }
    const bool dense = dst.block_stride == 1 && ((sources.lanes.block_stride == 1) && ...);
    const uint32_t repeats = repeats_of(shape, kRepeatBytes / lanes);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t leading = dense ? leading_lanes(shape, repeat, lanes) : kScattered;
        if (leading != kScattered) {
            walk_run(f, leading, lane_pointer<D>(dst, repeat, 0), lane_pointer<S>(sources.lanes, repeat, 0)...);
            continue;
        }
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            if (lane_active(shape, repeat, lane, lanes)) {
                f(*lane_pointer<D>(dst, repeat, lane), *lane_pointer<S>(sources.lanes, repeat, lane)...);
            }
        }
    }
}

}  // namespace asim

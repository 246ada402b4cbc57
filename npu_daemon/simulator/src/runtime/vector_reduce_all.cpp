// Reductions of any number of elements to one: calls that issue several instructions and finish on the scalar unit.
#include <vector>

#include "asim/check/check.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/scalar_access.h"
#include "asim/machine/sync.h"
#include "asim/numeric/rounding.h"
#include "asim/semantics/lanes.h"
#include "asim/semantics/reduce.h"

namespace asim {

namespace {

constexpr uint32_t kMaxRepeats = 255;                   // of one instruction
constexpr uint64_t kPairValues = 0x5555555555555555;    // the values among value-index pairs

void vector_to_scalar() { synchronise(Pipe::V, Pipe::S); }

// The scalar unit has stored to the unified buffer; later vector instructions and copies out may read it.
void publish_scalar() {
    synchronise(Pipe::S, Pipe::V);
    synchronise(Pipe::S, Pipe::MTE3);
}

template <typename T>
T read_scalar(const uint8_t *from) {
    return *static_cast<const T *>(scalar_ub("Reduce", const_cast<uint8_t *>(from), sizeof(T), false));
}

template <typename T>
void write_scalar(uint8_t *to, T value) {
    *static_cast<T *>(scalar_ub("Reduce", to, sizeof(T), true)) = value;
}

Lanes advance(const Lanes &lanes, uint32_t repeats) {
    Lanes moved = lanes;
    moved.base += uint64_t{repeats} * lanes.repeat_stride * kUbBlockBytes;
    return moved;
}

// Whole reductions of any number of repeats, as instructions of at most 255.
template <typename T>
void whole_reduce_chunks(Reduction kind, uint8_t *dst, const Lanes &src, const Shape &shape) {
    const uint32_t bytes = kind == Reduction::Sum ? sizeof(T) : 2 * sizeof(T);
    for (uint32_t done = 0; done < shape.repeats; done += kMaxRepeats) {
        const uint32_t repeats = std::min(kMaxRepeats, shape.repeats - done);
        whole_reduce<T>(kind, {dst + uint64_t{done} * bytes, 1}, advance(src, done),
                        Shape::masked(shape.mask[0], shape.mask[1], repeats));
    }
}

template <typename T>
uint32_t align_elems(uint32_t elems) {
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(T);
    return (elems + per_block - 1) / per_block * per_block;
}

// One pass over `pairs` value-index pairs; returns how many pairs it leaves at `to`.
template <typename T>
uint32_t reduce_pairs(Reduction kind, uint8_t *to, uint8_t *from, uint32_t pairs) {
    constexpr uint32_t pairs_per_repeat = lanes_per_repeat(sizeof(T)) / 2;
    const uint32_t full = pairs / pairs_per_repeat;
    const uint32_t rest = pairs % pairs_per_repeat;
    const Lanes src{from, 1, 8};
    if (full > 0) {
        whole_reduce_chunks<T>(kind, to, src, Shape::masked(kPairValues, kPairValues, full));
    }
    if (rest > 0) {
        const Shape some = Shape::leading(2 * rest, 1);
        whole_reduce<T>(kind, {to + uint64_t{full} * 2 * sizeof(T), 1}, advance(src, full),
                        Shape::masked(some.mask[0] & kPairValues, some.mask[1] & kPairValues, 1));
    }
    return full + (rest > 0 ? 1 : 0);
}

// Index, in elements from the start of src, of the winner that the last pass found.
template <typename T>
uint32_t trace_index(const std::vector<uint8_t *> &passes, uint32_t elems_per_repeat) {
    using Bits = typename FloatBits<T>::Type;
    constexpr uint32_t pairs_per_repeat = lanes_per_repeat(sizeof(T)) / 2;
    uint32_t pair = 0;
    for (size_t pass = passes.size(); pass-- > 1;) {
        const Bits lane = read_scalar<Bits>(passes[pass] + (2 * pair + 1) * sizeof(T));
        pair = pair * pairs_per_repeat + static_cast<uint32_t>(lane) / 2;
    }
    return pair * elems_per_repeat + static_cast<uint32_t>(read_scalar<Bits>(passes[0] + (2 * pair + 1) * sizeof(T)));
}

template <typename T>
void store_result(uint8_t *dst, T value, bool with_index, uint32_t index) {
    write_scalar<T>(dst, value);
    if (with_index) {
        using Bits = typename FloatBits<T>::Type;
        write_scalar<Bits>(dst + sizeof(T), static_cast<Bits>(index));
    }
}

template <typename T>
void reduce_extreme_repeats(Reduction kind, uint8_t *dst, const Lanes &src, uint8_t *work, const Shape &shape,
                            bool with_index) {
    if (shape.repeats == 1 && with_index) {
        return whole_reduce<T>(kind, {dst, 1}, src, shape);
    }
    whole_reduce_chunks<T>(kind, work, src, shape);
    std::vector<uint8_t *> passes{work};
    for (uint32_t pairs = shape.repeats; pairs > 1;) {
        pipe_barrier(Pipe::V);
        // Indices of earlier passes are needed to find the element; without an index they are overwritten.
        uint8_t *next = with_index ? passes.back() + align_elems<T>(2 * pairs) * sizeof(T) : work;
        pairs = reduce_pairs<T>(kind, next, passes.back(), pairs);
        passes.push_back(next);
    }
    vector_to_scalar();
    const T value = read_scalar<T>(passes.back());
    const uint32_t elems_per_repeat = src.repeat_stride * (kUbBlockBytes / sizeof(T));
    store_result<T>(dst, value, with_index, with_index ? trace_index<T>(passes, elems_per_repeat) : 0);
    publish_scalar();
}

// Reduces the elements after the last full repeat and lets the result so far compete with them.
template <typename T>
void reduce_tail(Reduction kind, uint8_t *dst, const Lanes &src, uint8_t *work, const Shape &shape, bool with_index) {
    using Bits = typename FloatBits<T>::Type;
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const uint32_t full = shape.count / lanes;
    uint8_t *index = dst + sizeof(T);
    vector_to_scalar();
    const T body_value = read_scalar<T>(dst);
    const Bits body_index = with_index ? read_scalar<Bits>(index) : Bits(0);
    reduce_extreme_repeats<T>(kind, dst, advance(src, full), work, Shape::leading(shape.count % lanes, 1), with_index);
    vector_to_scalar();
    const T tail_value = read_scalar<T>(dst);
    const uint32_t tail_index = with_index ? full * lanes + static_cast<uint32_t>(read_scalar<Bits>(index)) : 0;
    write_scalar<T>(work, body_value);
    write_scalar<T>(work + sizeof(T), tail_value);
    synchronise(Pipe::S, Pipe::V);
    reduce_extreme_repeats<T>(kind, dst, {work, 1, 8}, work, Shape::leading(2, 1), with_index);
    if (with_index) {
        vector_to_scalar();
        const bool tail_wins = read_scalar<Bits>(index) == 1;
        write_scalar<Bits>(index, tail_wins ? static_cast<Bits>(tail_index) : body_index);
        publish_scalar();
    }
}

}  // namespace

template <typename T>
void reduce_sum(uint8_t *dst, Lanes src, Shape shape) {
    const LibraryCall call;
    if (repeats_of(shape, sizeof(T)) == 0) {
        return;
    }
    const T total = accumulate_sum<T>(dst, src, shape);
    vector_to_scalar();
    write_scalar<T>(dst, total);
    publish_scalar();
}

template <typename T>
void reduce_sum_repeats(uint8_t *dst, Lanes src, uint8_t *work, Shape shape) {
    const LibraryCall call;
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    if (shape.repeats == 0) {
        return;
    }
    whole_reduce_chunks<T>(Reduction::Sum, work, src, shape);
    uint32_t partials = shape.repeats;
    if (partials > 1) {
        pipe_barrier(Pipe::V);
        whole_reduce<T>(Reduction::Sum, {work, 1}, {work, 1, 8}, Shape::first(partials));
        pipe_barrier(Pipe::V);
        partials = (partials + lanes - 1) / lanes;
    }
    if (partials > 1) {
        return whole_reduce<T>(Reduction::Sum, {dst, 1}, {work, 1, 8}, Shape::first(partials));
    }
    vector_to_scalar();
    write_scalar<T>(dst, read_scalar<T>(work));
    publish_scalar();
}

template <typename T>
void reduce_extreme(Reduction kind, uint8_t *dst, Lanes src, uint8_t *work, Shape shape, bool with_index) {
    const LibraryCall call;
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    if (!shape.counted) {
        if (shape.repeats > 0) reduce_extreme_repeats<T>(kind, dst, src, work, shape, with_index);
        return;
    }
    if (shape.count == 0) {
        return;
    }
    const uint32_t full = shape.count / lanes;
    const Shape body = full == 0 ? Shape::leading(shape.count, 1) : Shape::leading(lanes, full);
    reduce_extreme_repeats<T>(kind, dst, src, work, body, with_index);
    if (full > 0 && shape.count % lanes != 0) {
        reduce_tail<T>(kind, dst, src, work, shape, with_index);
    }
}

template void reduce_sum<half>(uint8_t *, Lanes, Shape);
template void reduce_sum<float>(uint8_t *, Lanes, Shape);
template void reduce_sum_repeats<half>(uint8_t *, Lanes, uint8_t *, Shape);
template void reduce_sum_repeats<float>(uint8_t *, Lanes, uint8_t *, Shape);
template void reduce_extreme<half>(Reduction, uint8_t *, Lanes, uint8_t *, Shape, bool);
template void reduce_extreme<float>(Reduction, uint8_t *, Lanes, uint8_t *, Shape, bool);

}  // namespace asim

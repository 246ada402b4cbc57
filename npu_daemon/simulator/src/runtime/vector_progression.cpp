// Arithmetic progressions: one block stored by the scalar unit, the rest added up by the vector unit.
#include "asim/check/check.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/scalar_access.h"
#include "asim/machine/sync.h"
#include "asim/semantics/gather.h"
#include "asim/semantics/indexed_lanes.h"

namespace asim {

namespace {

template <typename T>
T times(T step, uint32_t count) {
    if constexpr (is_floating<T>) return static_cast<T>(static_cast<float>(step) * static_cast<float>(count));
    else return static_cast<T>(static_cast<int64_t>(step) * count);
}

template <typename T>
T element(T first, T step, uint32_t index) {
    if constexpr (is_floating<T>) {
        return static_cast<T>(static_cast<float>(first) + static_cast<float>(step) * static_cast<float>(index));
    } else {
        return static_cast<T>(static_cast<int64_t>(first) + static_cast<int64_t>(step) * index);
    }
}

template <typename T>
void add(const Lanes &dst, uint32_t to_block, uint32_t from_block, T value, uint32_t lanes) {
    const Lanes to{dst.base + uint64_t{to_block} * kUbBlockBytes, dst.block_stride, dst.repeat_stride};
    const Lanes from{dst.base + uint64_t{from_block} * kUbBlockBytes, dst.block_stride, dst.repeat_stride};
    with_scalar<Op::Adds, T>(to, from, value, Shape::leading(lanes, 1));
    pipe_barrier(Pipe::V);
}

}  // namespace

template <typename T>
void progression(Lanes dst, T first, T step, ProgressionShape shape) {
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(T);
    constexpr uint32_t per_repeat = lanes_per_repeat(sizeof(T));
    if (shape.repeats == 0) {
        return;
    }
    const uint32_t lanes = shape.repeats == 1 ? shape.last_lanes : shape.lanes;
    for (uint32_t i = 0; i < std::min(lanes, per_block); ++i) {
        T *to = lane_pointer<T>(dst, 0, i);
        *static_cast<T *>(scalar_ub("CreateVecIndex", to, sizeof(T), true)) = element(first, step, i);
    }
    synchronise(Pipe::S, Pipe::V);
    for (uint32_t done = per_block; done < lanes; done += per_block) {
        const uint32_t to = done / per_block * dst.block_stride;
        add<T>(dst, to, to - dst.block_stride, times(step, per_block), std::min(per_block, lanes - done));
    }
    for (uint32_t repeat = 1; repeat < shape.repeats; ++repeat) {
        const uint32_t to = repeat * dst.repeat_stride;
        add<T>(dst, to, to - dst.repeat_stride, times(step, per_repeat),
               repeat + 1 == shape.repeats ? shape.last_lanes : shape.lanes);
    }
}

template void progression<half>(Lanes, half, half, ProgressionShape);
template void progression<float>(Lanes, float, float, ProgressionShape);
template void progression<int16_t>(Lanes, int16_t, int16_t, ProgressionShape);
template void progression<int32_t>(Lanes, int32_t, int32_t, ProgressionShape);

}  // namespace asim

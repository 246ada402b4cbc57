// Walks over lanes for instructions that need to know which lane they are at.
#pragma once
#include "asim/semantics/lanes.h"

namespace asim {

// Calls f(repeat, lane) for each active lane, in order; a repeat has `lanes` lanes.
template <typename F>
void for_each_index(const Shape &shape, uint32_t lanes, F f) {
    if (shape.counted) {
        for (uint32_t i = 0; i < shape.count; ++i) f(i / lanes, i % lanes);
        return;
    }
    for (uint32_t repeat = 0; repeat < shape.repeats; ++repeat) {
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            if (lane_active(shape, lane)) f(repeat, lane);
        }
    }
}

// Calls whole(repeat, lane) where eight active lanes begin at a multiple of eight: those lie in one data block and
// share a byte of bits. Calls single(repeat, lane) for every other active lane. Elements have at most four bytes.
template <typename Whole, typename Single>
void for_each_eight(const Shape &shape, uint32_t lanes, Whole whole, Single single) {
    const uint32_t repeats = repeats_of(shape, kRepeatBytes / lanes);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint32_t lane = 0; lane < lanes; lane += 8) {
            uint32_t active = 0;
            for (uint32_t i = 0; i < 8; ++i) active |= uint32_t{lane_active(shape, repeat, lane + i, lanes)} << i;
            if (active == 0xff) {
                whole(repeat, lane);
                continue;
            }
            for (uint32_t i = 0; i < 8; ++i) {
                if (active >> i & 1u) single(repeat, lane + i);
            }
        }
    }
}

// A range of bytes in the unified buffer that an instruction touches in one piece.
inline Operand range_operand(Op op, const char *role, const uint8_t *base, uint64_t bytes,
                             uint32_t alignment_bytes = kUbBlockBytes) {
    const char *call = info(op).name;
    const uint64_t offset = checked_ub(call, base, bytes);
    check_ub_alignment(call, role, offset, alignment_bytes);
    return {offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(bytes), 1u | 8u << 16};
}

}  // namespace asim

// Reductions: the instructions over pairs, data blocks and repeats, and the calls composed of them.
#pragma once
#include "asim/semantics/vector.h"

namespace asim {

enum class Reduction : uint8_t { Sum, Max, Min };

// What a maximum or minimum over a repeat leaves behind; an index is stored as bits of the element type's width.
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };

// Where results go. The distance between repeats counts results of one repeat.
struct Results {
    uint8_t *base = nullptr;
    uint32_t repeat_stride = 1;
};

// One result per repeat; sums add neighbours in a binary tree and round to T at each node.
template <typename T>
ASIM_API void whole_reduce(Reduction kind, Results dst, Lanes src, Shape shape,
                  ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX);

// One result per 32 B data block; blocks without an active lane keep what was there.
template <typename T>
ASIM_API void block_reduce(Reduction kind, Results dst, Lanes src, Shape shape);

// One sum per pair of neighbours; pairs without an active lane keep what was there.
template <typename T>
ASIM_API void pair_reduce_sum(Results dst, Lanes src, Shape shape);

// Adds the sums of the repeats in order and returns the total, which the accumulator register holds too.
template <typename T>
ASIM_API T accumulate_sum(uint8_t *dst, Lanes src, Shape shape);

// Sum of the first elements: one accumulating reduction over all repeats, then a scalar store of the accumulator.
template <typename T>
ASIM_API void reduce_sum(uint8_t *dst, Lanes src, Shape shape);

// Sum over repeats of any number: partial sums in `work`, reduced again until one is left.
template <typename T>
ASIM_API void reduce_sum_repeats(uint8_t *dst, Lanes src, uint8_t *work, Shape shape);

// Maximum or minimum, and on demand the index of its first occurrence, through value-index pairs in `work`.
template <typename T>
ASIM_API void reduce_extreme(Reduction kind, uint8_t *dst, Lanes src, uint8_t *work, Shape shape, bool with_index);

}  // namespace asim

// Reductions of one instruction: over pairs, data blocks and repeats.
#include "asim/numeric/half_run.h"
#include "asim/numeric/rounding.h"
#include "asim/semantics/lanes.h"
#include "asim/semantics/reduce.h"

namespace asim {

namespace {

constexpr uint32_t kMaxLanes = kRepeatBytes / sizeof(half);

constexpr Op kWholeOps[] = {Op::WholeReduceSum, Op::WholeReduceMax, Op::WholeReduceMin};
constexpr Op kBlockOps[] = {Op::BlockReduceSum, Op::BlockReduceMax, Op::BlockReduceMin};

// The active lanes of one repeat, as floats; inactive ones are zero.
struct Repeat {
    float values[kMaxLanes];
    uint64_t mask[2];

    bool active(uint32_t lane) const { return (mask[lane >> 6] >> (lane & 63)) & 1u; }
    bool any(uint32_t first, uint32_t lanes) const {
        const uint64_t window = lanes >= 64 ? ~0ull : ((1ull << lanes) - 1) << (first & 63);
        return (mask[first >> 6] & window) != 0;
    }
};

template <typename T>
void set_mask(Repeat &repeat, const Shape &shape, uint32_t index) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const Shape all = Shape::leading(lanes, 1);
    const Shape part = shape.counted ? Shape::leading(shape.count - uint64_t{index} * lanes, 1) : shape;
    repeat.mask[0] = part.mask[0] & all.mask[0];
    repeat.mask[1] = part.mask[1] & all.mask[1];
}

template <typename T>
Repeat load_repeat(const Lanes &src, const Shape &shape, uint32_t index) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(T);
    Repeat repeat;
    set_mask<T>(repeat, shape, index);
    for (uint32_t first = 0; first < lanes; first += per_block) {
        float *values = repeat.values + first;
        if (!repeat.any(first, per_block)) {
            std::fill_n(values, per_block, 0.0f);
            continue;
        }
        const T *from = lane_pointer<T>(src, index, first);
        if constexpr (std::is_same_v<T, half>) convert_run(values, from, per_block);
        else std::copy_n(from, per_block, values);
        for (uint32_t i = 0; i < per_block; ++i) {
            if (!repeat.active(first + i)) values[i] = 0.0f;
        }
    }
    return repeat;
}

template <typename T>
void round_run(float *values, uint32_t count) {
    if constexpr (std::is_same_v<T, half>) {
        half rounded[kMaxLanes / 2];
        convert_run(rounded, values, count);
        convert_run(values, rounded, count);
    }
}

// Adds neighbours until one value is left. A float holds the sum of two halves well enough to round once more.
template <typename T>
T tree_sum(float *values, uint32_t count) {
    for (; count > 1; count /= 2) {
        for (uint32_t i = 0; i < count / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
        round_run<T>(values, count / 2);
    }
    return static_cast<T>(values[0]);
}

struct Extreme {
    float value = 0.0f;
    uint32_t lane = 0;
};

bool better(Reduction kind, float candidate, float best) {
    if (candidate != candidate) return best == best;
    return kind == Reduction::Max ? candidate > best : candidate < best;
}

// The first extreme among active lanes [first, first + lanes), of which there is at least one; NaN wins.
Extreme find_extreme(Reduction kind, const Repeat &repeat, uint32_t first, uint32_t lanes) {
    Extreme found;
    bool any = false;
    for (uint32_t lane = first; lane < first + lanes; ++lane) {
        if (repeat.active(lane) && (!any || better(kind, repeat.values[lane], found.value))) {
            found = {repeat.values[lane], lane};
            any = true;
        }
    }
    return found;
}

// Checks a result operand, whose start need only be aligned to one result.
Operand result_operand(Op op, const Results &dst, uint32_t repeats, uint32_t bytes_per_repeat) {
    const char *call = info(op).name;
    check_units(call, "the repeat stride of dst", dst.repeat_stride);
    const uint64_t extent =
        repeats == 0 ? 0 : (uint64_t{repeats - 1} * dst.repeat_stride + 1) * bytes_per_repeat;
    const uint64_t offset = checked_ub(call, dst.base, extent);
    check_ub_alignment(call, "dst", offset, std::min(bytes_per_repeat, kUbBlockBytes));
    return {offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(extent), 1u};
}

template <typename T>
void store_extreme(uint8_t *to, ReduceOrder order, const Extreme &extreme) {
    using Bits = typename FloatBits<T>::Type;
    const T value = static_cast<T>(extreme.value);
    const Bits index = static_cast<Bits>(extreme.lane);
    const uint32_t wide_index = extreme.lane;
    switch (order) {
        case ReduceOrder::ORDER_VALUE_INDEX:
            std::memcpy(to, &value, sizeof value);
            std::memcpy(to + sizeof value, &index, sizeof index);
            return;
        case ReduceOrder::ORDER_INDEX_VALUE:
            std::memcpy(to, &index, sizeof index);
            std::memcpy(to + sizeof index, &value, sizeof value);
            return;
        case ReduceOrder::ORDER_ONLY_VALUE: std::memcpy(to, &value, sizeof value); return;
        case ReduceOrder::ORDER_ONLY_INDEX: std::memcpy(to, &wide_index, sizeof wide_index); return;
    }
}

template <typename T>
uint32_t result_bytes(Reduction kind, ReduceOrder order) {
    if (kind == Reduction::Sum || order == ReduceOrder::ORDER_ONLY_VALUE) return sizeof(T);
    return order == ReduceOrder::ORDER_ONLY_INDEX ? sizeof(uint32_t) : 2 * sizeof(T);
}

// Where the library issues other instructions for the same values, it is these that would set registers.
bool sets_registers() { return block().values_only == 0; }

template <typename T>
void remember(const Extreme &best) {
    vector_registers().reduce_value = static_cast<uint32_t>(float_bits(static_cast<T>(best.value)));
    vector_registers().reduce_index = best.lane;
}

template <typename T>
void whole_extremes(Reduction kind, const Results &dst, const Lanes &src, const Shape &shape, ReduceOrder order) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const uint32_t bytes = result_bytes<T>(kind, order);
    Extreme best;
    for (uint32_t index = 0; index < repeats_of(shape, sizeof(T)); ++index) {
        const Extreme found = find_extreme(kind, load_repeat<T>(src, shape, index), 0, lanes);
        store_extreme<T>(dst.base + uint64_t{index} * dst.repeat_stride * bytes, order, found);
        if (index == 0 || better(kind, found.value, best.value)) best = {found.value, index * lanes + found.lane};
    }
    // Counter mode leaves it too: the vendor's icamax reads it there, though the page of GetReduceRepeatMaxMinSpr does not promise it.
    if (sets_registers()) remember<T>(best);
}

template <typename T>
void whole_sums(const Results &dst, const Lanes &src, const Shape &shape) {
    T *out = reinterpret_cast<T *>(dst.base);
    for (uint32_t index = 0; index < repeats_of(shape, sizeof(T)); ++index) {
        Repeat repeat = load_repeat<T>(src, shape, index);
        out[uint64_t{index} * dst.repeat_stride] = tree_sum<T>(repeat.values, lanes_per_repeat(sizeof(T)));
    }
}

void check_kind(Reduction kind) {
    if (kind > Reduction::Min) fault(FaultKind::RuntimeFault, "Reduce", "there is no reduction of number %u", static_cast<unsigned>(kind));
}

// Nothing to do: the instruction still issues.
bool idle(const Shape &shape, uint32_t element_bytes) {
    return repeats_of(shape, element_bytes) == 0 || (!shape.counted && active_span(shape, element_bytes) == 0);
}

}  // namespace

template <typename T>
void whole_reduce(Reduction kind, Results dst, Lanes src, Shape shape, ReduceOrder order) {
    check_kind(kind);
    const Op op = kWholeOps[static_cast<int>(kind)];
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const bool nothing = idle(shape, sizeof(T));
    const Operand out = result_operand(op, dst, nothing ? 0 : repeats, result_bytes<T>(kind, order));
    const Operand in = vector_operand<T>(op, "src", src, shape, sizeof(T));
    if (!nothing) {
        if (kind == Reduction::Sum) whole_sums<T>(dst, src, shape);
        else whole_extremes<T>(kind, dst, src, shape, order);
    }
    const bool extreme = kind != Reduction::Sum && !nothing;
    emit_vector(op, sizeof(T), repeats, {out, in}, extreme ? leaves_in(VectorRegister::Extreme) : uint16_t{0});
}

template <typename T>
void block_reduce(Reduction kind, Results dst, Lanes src, Shape shape) {
    constexpr uint32_t blocks = kRepeatBytes / kUbBlockBytes;
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(T);
    check_kind(kind);
    const Op op = kBlockOps[static_cast<int>(kind)];
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const Operand out = result_operand(op, dst, idle(shape, sizeof(T)) ? 0 : repeats, blocks * sizeof(T));
    const Operand in = vector_operand<T>(op, "src", src, shape, sizeof(T));
    for (uint32_t index = 0; index < repeats; ++index) {
        Repeat repeat = load_repeat<T>(src, shape, index);
        T *results = reinterpret_cast<T *>(dst.base) + uint64_t{index} * dst.repeat_stride * blocks;
        for (uint32_t block_index = 0; block_index < blocks; ++block_index) {
            const uint32_t first = block_index * per_block;
            if (!repeat.any(first, per_block)) continue;
            results[block_index] = kind == Reduction::Sum
                                       ? tree_sum<T>(repeat.values + first, per_block)
                                       : static_cast<T>(find_extreme(kind, repeat, first, per_block).value);
        }
    }
    emit_vector(op, sizeof(T), repeats, {out, in});
}

template <typename T>
void pair_reduce_sum(Results dst, Lanes src, Shape shape) {
    constexpr uint32_t pairs = lanes_per_repeat(sizeof(T)) / 2;
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const Operand out = result_operand(Op::PairReduceSum, dst, idle(shape, sizeof(T)) ? 0 : repeats, kRepeatBytes / 2);
    const Operand in = vector_operand<T>(Op::PairReduceSum, "src", src, shape, sizeof(T));
    for (uint32_t index = 0; index < repeats; ++index) {
        const Repeat repeat = load_repeat<T>(src, shape, index);
        T *results = reinterpret_cast<T *>(dst.base) + uint64_t{index} * dst.repeat_stride * pairs;
        for (uint32_t pair = 0; pair < pairs; ++pair) {
            if (!repeat.any(2 * pair, 2)) continue;
            results[pair] = static_cast<T>(repeat.values[2 * pair] + repeat.values[2 * pair + 1]);
        }
    }
    emit_vector(Op::PairReduceSum, sizeof(T), repeats, {out, in});
}

template <typename T>
T accumulate_sum(uint8_t *dst, Lanes src, Shape shape) {
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const Operand out = result_operand(Op::WholeReduceSum, {dst, 1}, 1, sizeof(T));
    const Operand in = vector_operand<T>(Op::WholeReduceSum, "src", src, shape, sizeof(T));
    T total = T(0);
    for (uint32_t index = 0; index < repeats; ++index) {
        Repeat repeat = load_repeat<T>(src, shape, index);
        total = static_cast<T>(total + tree_sum<T>(repeat.values, lanes_per_repeat(sizeof(T))));
    }
    if (sets_registers()) vector_registers().accumulated = static_cast<uint32_t>(float_bits(total));
    emit_vector(Op::WholeReduceSum, sizeof(T), repeats, {out, in}, leaves_in(VectorRegister::Sum));
    return total;
}

template half accumulate_sum<half>(uint8_t *, Lanes, Shape);
template float accumulate_sum<float>(uint8_t *, Lanes, Shape);
template void whole_reduce<half>(Reduction, Results, Lanes, Shape, ReduceOrder);
template void whole_reduce<float>(Reduction, Results, Lanes, Shape, ReduceOrder);
template void block_reduce<half>(Reduction, Results, Lanes, Shape);
template void block_reduce<float>(Reduction, Results, Lanes, Shape);
template void pair_reduce_sum<half>(Results, Lanes, Shape);
template void pair_reduce_sum<float>(Results, Lanes, Shape);

}  // namespace asim

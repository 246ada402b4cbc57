// Softmax: maximum, difference, exponential, sum and quotient, up to eight rows at a time, in float.
#include "asim/semantics/softmax.h"

#include <algorithm>

#include "asim/machine/call_sync.h"
#include "asim/semantics/gather.h"
#include "asim/semantics/reduce.h"
#include "asim/semantics/steps.h"
#include "row_bounds.h"
#include "softmax_sequence.h"

namespace asim {

namespace {

constexpr uint32_t kRows = kRepeatBytes / kUbBlockBytes;    // rows whose values fill one repeat as blocks
constexpr uint32_t kLanes = kRepeatBytes / sizeof(float);

// Scratch of one group of rows.
struct Group {
    uint8_t *values;        // one number a row
    uint8_t *blocks;        // the same as one data block a row
    uint8_t *partial;       // numbers on the way to one of a row
    uint8_t *wide;          // the rows in float, when the tensor is not
    uint32_t rows;
};

uint32_t wide_row_bytes(uint32_t columns) {
    return (columns * static_cast<uint32_t>(sizeof(float)) + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes;
}

// For rows of which `columns` elements count, with `wide_bytes` bytes of floats beside each row of the operands.
Group split(const char *call, Scratch scratch, uint32_t columns, uint32_t wide_bytes) {
    const uint32_t partial_bytes = std::max(kRepeatBytes, wide_row_bytes((columns + kLanes - 1) / kLanes));
    const uint64_t numbers = kUbBlockBytes + kRepeatBytes + uint64_t{partial_bytes}, needed = numbers + wide_bytes;
    if (needed > scratch.bytes) {
        fault(FaultKind::RuntimeFault, call, "the temporary buffer has %u bytes, but the call needs at least %llu",
              scratch.bytes, static_cast<unsigned long long>(needed));
    }
    uint8_t *blocks = scratch.base + kUbBlockBytes;
    const uint64_t rows = wide_bytes == 0 ? kRows : (scratch.bytes - numbers) / wide_bytes;
    return {scratch.base, blocks, blocks + kRepeatBytes, blocks + kRepeatBytes + partial_bytes,
            static_cast<uint32_t>(std::min<uint64_t>(rows, kRows))};
}

// One number of a row, at `to`.
void reduce_row(Reduction kind, uint8_t *to, uint8_t *row, uint32_t columns, uint8_t *partial) {
    while (columns > kLanes) {
        const uint32_t full = columns / kLanes, rest = columns % kLanes;
        whole_reduce<float>(kind, {partial, 1}, {row}, Shape::leading(kLanes, full), ReduceOrder::ORDER_ONLY_VALUE);
        if (rest > 0) {
            whole_reduce<float>(kind, {partial + full * sizeof(float), 1}, {row + uint64_t{full} * kRepeatBytes},
                                Shape::leading(rest, 1), ReduceOrder::ORDER_ONLY_VALUE);
        }
        row = partial;
        columns = full + (rest > 0 ? 1 : 0);
    }
    whole_reduce<float>(kind, {to, 1}, {row}, Shape::leading(columns, 1), ReduceOrder::ORDER_ONLY_VALUE);
}

// dst = row op block, for every block of the row.
template <Op O>
void with_block(uint8_t *dst, uint8_t *row, uint8_t *block, uint32_t columns) {
    const uint32_t full = columns / kLanes, rest = columns % kLanes;
    const uint64_t tail = uint64_t{full} * kRepeatBytes;
    if (full > 0) binary<O, float>({dst}, {row}, {block, 0, 0}, Shape::leading(kLanes, full));
    if (rest > 0) binary<O, float>({dst + tail}, {row + tail}, {block, 0, 0}, Shape::leading(rest, 1));
}

// The numbers of `rows` rows as blocks, and in the tensor that the caller wants them in.
template <typename T>
void publish(const Group &group, uint8_t *target, uint32_t rows) {
    broadcast_blocks<uint32_t>({group.blocks}, group.values, 1);
    if (target == nullptr) return;
    if constexpr (std::is_same_v<T, half>) {
        cast<half, float>({group.values}, {group.values}, RoundMode::CAST_ROUND, Shape::first(kRows));
        broadcast_blocks<uint16_t>({group.partial}, group.values, 1);
        copy_lanes<uint16_t>({target}, {group.partial}, Shape::first(rows * kUbBlockBytes / 2));
    } else {
        copy_lanes<uint32_t>({target}, {group.blocks}, Shape::first(rows * kUbBlockBytes / 4));
    }
}

// Rows of floats where they are and where they go, `row_bytes` apart. The first `width` elements of each are computed, those that count and
// what follows them.
struct FloatRows {
    uint8_t *to;
    uint8_t *from;
    uint32_t row_bytes;
    Matrix shape;
    uint32_t width;
    bool logarithm;
};

template <typename T>
void softmax_group(const FloatRows &rows, const Group &group, uint8_t *sums, uint8_t *maxima) {
    const Matrix shape = rows.shape;
    const Shape all = Shape::first(rows.width);
    const auto each_row = [&](auto f) {
        for (uint32_t row = 0; row < shape.rows; ++row) {
            const uint64_t offset = uint64_t{row} * rows.row_bytes;
            f(rows.to + offset, rows.from + offset, group.values + row * sizeof(float), group.blocks + row * kUbBlockBytes);
        }
    };
    each_row([&](uint8_t *, uint8_t *in, uint8_t *value, uint8_t *) {
        reduce_row(Reduction::Max, value, in, shape.columns, group.partial);
    });
    publish<T>(group, maxima, shape.rows);
    each_row([&](uint8_t *out, uint8_t *in, uint8_t *, uint8_t *block) { with_block<Op::Sub>(out, in, block, rows.width); });
    each_row([&](uint8_t *out, uint8_t *, uint8_t *, uint8_t *) { unary<Op::Exp, float>({out}, {out}, all); });
    each_row([&](uint8_t *out, uint8_t *, uint8_t *value, uint8_t *) {
        reduce_row(Reduction::Sum, value, out, shape.columns, group.partial);
    });
    publish<T>(group, sums, shape.rows);
    each_row([&](uint8_t *out, uint8_t *, uint8_t *, uint8_t *block) { with_block<Op::Div>(out, out, block, rows.width); });
    if (!rows.logarithm) return;
    each_row([&](uint8_t *out, uint8_t *, uint8_t *, uint8_t *) {
        unary<Op::Ln, float>({out}, {out}, all);
        with_scalar<Op::Muls, float>({out}, {out}, kLog10OfE, all);
    });
}

// The same operation on data blocks of rows, all at once.
template <Op O>
void on_blocks(uint8_t *dst, const uint8_t *left, const uint8_t *right, uint32_t rows) {
    binary<O, float>({dst}, {const_cast<uint8_t *>(left)}, {const_cast<uint8_t *>(right)}, Shape::first(rows * kUbBlockBytes / 4));
}

// Calls `work(rows of the group, bytes to its first element, bytes to its first data block)`.
template <typename Work>
void for_each_group(Matrix shape, uint32_t stride, Work work) {
    for (uint32_t done = 0; done < shape.rows; done += kRows) {
        work(std::min(kRows, shape.rows - done), uint64_t{done} * stride * sizeof(float), uint64_t{done} * kUbBlockBytes);
    }
}

}  // namespace

void softmax_piece(uint8_t *dst, const uint8_t *src, SoftmaxPieces pieces, Matrix shape, uint32_t stride, Scratch scratch) {
    const LibraryCall call;
    check_rows("SoftmaxFlashV2", shape.rows, std::max(shape.columns, stride));
    const Group group = split("SoftmaxFlashV2", scratch, shape.columns, 0);
    for_each_group(shape, stride, [&](uint32_t rows, uint64_t offset, uint64_t reduced) {
        uint8_t *const from = const_cast<uint8_t *>(src) + offset, *const to = dst + offset;
        const uint32_t row_bytes = stride * sizeof(float);
        const auto reduce = [&](Reduction kind, uint8_t *base) {
            for (uint32_t row = 0; row < rows; ++row) {
                reduce_row(kind, group.values + row * sizeof(float), base + row * row_bytes, shape.columns, group.partial);
            }
            broadcast_blocks<uint32_t>({group.blocks}, group.values, 1);
        };
        reduce(Reduction::Max, from);
        if (pieces.update) {
            on_blocks<Op::Max>(group.blocks, group.blocks, pieces.maxima_before + reduced, rows);
            on_blocks<Op::Sub>(pieces.factors + reduced, pieces.maxima_before + reduced, group.blocks, rows);
            unary<Op::Exp, float>({pieces.factors + reduced}, {pieces.factors + reduced}, Shape::first(rows * kUbBlockBytes / 4));
        }
        copy_lanes<uint32_t>({pieces.maxima + reduced}, {group.blocks}, Shape::first(rows * kUbBlockBytes / 4));
        for (uint32_t row = 0; row < rows; ++row) {
            with_block<Op::Sub>(to + row * row_bytes, from + row * row_bytes, group.blocks + row * kUbBlockBytes, shape.columns);
            unary<Op::Exp, float>({to + row * row_bytes}, {to + row * row_bytes}, Shape::first(shape.columns));
        }
        reduce(Reduction::Sum, to);
        if (pieces.update) {
            on_blocks<Op::Mul>(pieces.sums + reduced, pieces.factors + reduced, pieces.sums_before + reduced, rows);
            on_blocks<Op::Add>(pieces.sums + reduced, pieces.sums + reduced, group.blocks, rows);
        } else {
            copy_lanes<uint32_t>({pieces.sums + reduced}, {group.blocks}, Shape::first(rows * kUbBlockBytes / 4));
        }
    });
}

namespace {

void gradient_of_floats(uint8_t *dst, const uint8_t *grad, const uint8_t *src, bool only_sums, Matrix shape, uint32_t stride,
                        Scratch scratch) {
    const Group group = split("SoftmaxGrad", scratch, shape.columns, wide_row_bytes(shape.columns));
    for_each_group(shape, stride, [&](uint32_t rows, uint64_t offset, uint64_t reduced) {
        uint8_t *const slope = const_cast<uint8_t *>(grad) + offset, *const value = const_cast<uint8_t *>(src) + offset;
        const Shape row_shape = Shape::first(shape.columns);
        const uint32_t row_bytes = stride * sizeof(float);
        for (uint32_t row = 0; row < rows; ++row) {
            binary<Op::Mul, float>({group.wide}, {slope + row * row_bytes}, {value + row * row_bytes}, row_shape);
            reduce_row(Reduction::Sum, group.values + row * sizeof(float), group.wide, shape.columns, group.partial);
        }
        broadcast_blocks<uint32_t>({group.blocks}, group.values, 1);
        if (only_sums) {
            copy_lanes<uint32_t>({dst + reduced}, {group.blocks}, Shape::first(rows * kUbBlockBytes / 4));
            return;
        }
        for (uint32_t row = 0; row < rows; ++row) {
            uint8_t *const to = dst + offset + row * row_bytes;
            with_block<Op::Sub>(to, slope + row * row_bytes, group.blocks + row * kUbBlockBytes, shape.columns);
            binary<Op::Mul, float>({to}, {to}, {value + row * row_bytes}, row_shape);
        }
    });
}

// Half rows and slopes in float, and a third row for what is computed of the two.
void gradient_of_halves(uint8_t *dst, const uint8_t *grad, const uint8_t *src, bool only_sums, Matrix shape, uint32_t stride,
                        Scratch scratch) {
    const Group group = split("SoftmaxGrad", scratch, shape.columns, 3 * wide_row_bytes(shape.columns));
    const Shape row_shape = Shape::first(shape.columns);
    const uint64_t wide = wide_row_bytes(shape.columns), row_bytes = uint64_t{stride} * sizeof(half);
    uint8_t *const value = group.wide, *const slope = value + group.rows * wide, *const work = slope + group.rows * wide;
    for (uint32_t done = 0; done < shape.rows; done += group.rows) {
        const uint32_t rows = std::min(group.rows, shape.rows - done);
        for (uint32_t row = 0; row < rows; ++row) {
            const uint64_t from = (done + row) * row_bytes, at = row * wide;
            cast<float, half>({value + at}, {const_cast<uint8_t *>(src) + from}, RoundMode::CAST_NONE, row_shape);
            cast<float, half>({slope + at}, {const_cast<uint8_t *>(grad) + from}, RoundMode::CAST_NONE, row_shape);
            binary<Op::Mul, float>({work + at}, {value + at}, {slope + at}, row_shape);
            reduce_row(Reduction::Sum, group.values + row * sizeof(float), work + at, shape.columns, group.partial);
        }
        publish<half>(group, only_sums ? dst + uint64_t{done} * kUbBlockBytes : nullptr, rows);
        for (uint32_t row = 0; row < rows && !only_sums; ++row) {
            const uint64_t at = row * wide;
            with_block<Op::Sub>(work + at, slope + at, group.blocks + row * kUbBlockBytes, shape.columns);
            binary<Op::Mul, float>({work + at}, {work + at}, {value + at}, row_shape);
            cast<half, float>({dst + (done + row) * row_bytes}, {work + at}, RoundMode::CAST_ROUND, row_shape);
        }
    }
}

}  // namespace

template <typename T>
void softmax_gradient(uint8_t *dst, const uint8_t *grad, const uint8_t *src, bool only_sums, Matrix shape, uint32_t stride,
                      Scratch scratch) {
    const LibraryCall call;
    check_rows("SoftmaxGrad", shape.rows, std::max(shape.columns, stride));
    if constexpr (std::is_same_v<T, half>) gradient_of_halves(dst, grad, src, only_sums, shape, stride, scratch);
    else gradient_of_floats(dst, grad, src, only_sums, shape, stride, scratch);
}

template void softmax_gradient<half>(uint8_t *, const uint8_t *, const uint8_t *, bool, Matrix, uint32_t, Scratch);
template void softmax_gradient<float>(uint8_t *, const uint8_t *, const uint8_t *, bool, Matrix, uint32_t, Scratch);

namespace {

// The first `width` elements of each row.
template <typename T>
void softmax_values(const char *call, const SoftmaxRows &rows, uint32_t width, Scratch scratch) {
    constexpr bool converts = std::is_same_v<T, half>;
    const uint32_t wide_bytes = wide_row_bytes(width), row_bytes = rows.stride * sizeof(T);
    const Group group = split(call, scratch, rows.shape.columns, converts ? wide_bytes : 0);
    const Shape all = Shape::first(width);
    for (uint32_t done = 0; done < rows.shape.rows; done += group.rows) {
        const Matrix part{std::min(group.rows, rows.shape.rows - done), rows.shape.columns};
        const uint64_t offset = uint64_t{done} * row_bytes, reduced = uint64_t{done} * kUbBlockBytes;
        uint8_t *from = const_cast<uint8_t *>(rows.src) + offset, *to = rows.dst + offset;
        uint8_t *sums = rows.sums ? rows.sums + reduced : nullptr, *maxima = rows.maxima ? rows.maxima + reduced : nullptr;
        if constexpr (converts) {
            for (uint32_t row = 0; row < part.rows; ++row) {
                cast<float, half>({group.wide + row * wide_bytes}, {from + uint64_t{row} * row_bytes}, RoundMode::CAST_NONE, all);
            }
            softmax_group<T>({group.wide, group.wide, wide_bytes, part, width, rows.logarithm}, group, sums, maxima);
            for (uint32_t row = 0; row < part.rows; ++row) {
                cast<half, float>({to + uint64_t{row} * row_bytes}, {group.wide + row * wide_bytes}, RoundMode::CAST_ROUND, all);
            }
        } else {
            softmax_group<T>({to, from, row_bytes, part, width, rows.logarithm}, group, sums, maxima);
        }
    }
}

// The published library works on whole rows, padding and all. Rows that are no whole data blocks are none of its.
template <typename T>
void softmax_of_rows(const char *call, const SoftmaxRows &rows, Scratch scratch) {
    const LibraryCall under_way;
    check_rows(call, rows.shape.rows, std::max(rows.shape.columns, rows.stride));
    const uint32_t at_once = rows_at_once(rows, scratch);
    if (at_once == 0 || rows.stride % (kUbBlockBytes / sizeof(T)) != 0) return softmax_values<T>(call, rows, rows.shape.columns, scratch);
    const ScratchUse use = scratch_use(call, rows, at_once, scratch);
    {
        const ValuesOnly values;
        softmax_values<T>(call, rows, rows.stride, scratch);
    }
    issue_softmax(rows, at_once, scratch);
    use.lose();
}

}  // namespace

template <typename T>
void softmax(uint8_t *dst, uint8_t *sums, uint8_t *maxima, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    softmax_of_rows<T>("SoftMax", {dst, src, maxima, sums, shape, stride, std::is_same_v<T, half>, false}, scratch);
}

template <typename T>
void log_softmax(uint8_t *dst, uint8_t *sums, uint8_t *maxima, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    softmax_of_rows<T>("LogSoftMax", {dst, src, maxima, sums, shape, stride, std::is_same_v<T, half>, true}, scratch);
}

template void softmax<half>(uint8_t *, uint8_t *, uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void softmax<float>(uint8_t *, uint8_t *, uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void log_softmax<half>(uint8_t *, uint8_t *, uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void log_softmax<float>(uint8_t *, uint8_t *, uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);

}  // namespace asim

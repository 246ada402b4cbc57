#include "softmax_sequence.h"

#include <algorithm>

#include "asim/machine/call_sync.h"
#include "asim/semantics/lanes.h"

namespace asim {

namespace {

constexpr uint32_t kLanes = kRepeatBytes / sizeof(float);
constexpr uint32_t kBlockElems = kUbBlockBytes / sizeof(float);
constexpr uint32_t kRowsOfRepeat = kRepeatBytes / kUbBlockBytes;    // whose values are one repeat of data blocks
constexpr uint32_t kBlocksOfColumns = 8;        // repeats of a row that one instruction reduces to one
constexpr uint32_t kWholeRows = 192;            // elements from which on a row is an instruction, not a column of data blocks
constexpr uint32_t kMostRepeats = 255;

// Rows on their way: `rows` of `stride` floats.
struct Part {
    uint32_t rows;
    uint32_t columns;
    uint32_t stride;
    uint32_t number_blocks;     // of the number of a row

    uint32_t row_bytes() const { return stride * static_cast<uint32_t>(sizeof(float)); }
    uint32_t blocks() const { return stride / kBlockElems; }
};

struct Reducing {
    Op block, whole, join;
};
constexpr Reducing kMaximum{Op::BlockReduceMax, Op::WholeReduceMax, Op::Max};
constexpr Reducing kTotal{Op::BlockReduceSum, Op::WholeReduceSum, Op::Add};

Lanes lanes_at(const uint8_t *address, uint32_t repeat_stride = 8, uint32_t block_stride = 1) {
    return {const_cast<uint8_t *>(address), block_stride, repeat_stride};
}

template <typename T = float>
Operand described(Op op, const Lanes &lanes, const Shape &shape) {
    return vector_operand<T>(op, "tensor", lanes, shape, sizeof(float));
}

void one(Op op, const Lanes &dst, const Lanes &src, const Shape &shape) {
    emit_vector(op, sizeof(float), repeats_of(shape, sizeof(float)), {described(op, dst, shape), described(op, src, shape)});
}

void two(Op op, const Lanes &dst, const Lanes &left, const Lanes &right, const Shape &shape) {
    emit_vector(op, sizeof(float), repeats_of(shape, sizeof(float)),
                {described(op, dst, shape), described(op, left, shape), described(op, right, shape)});
}

// `results` numbers of a reduction.
void reduce(Op op, const uint8_t *dst, uint32_t results, const Lanes &src, const Shape &shape) {
    emit_vector(op, sizeof(float), repeats_of(shape, sizeof(float)),
                {described(op, lanes_at(dst), Shape::first(results)), described(op, src, shape)});
}

// Calls `work(first, count)` for as many of `repeats` as an instruction can have.
template <typename Work>
void for_repeats(uint32_t repeats, Work work) {
    for (uint32_t done = 0; done < repeats; done += kMostRepeats) work(done, std::min(kMostRepeats, repeats - done));
}

// One repeat of a row is left, at `work`.
void fold_columns(const Reducing &how, const uint8_t *from, const Part &part, uint8_t *work) {
    const uint32_t whole = part.columns / kLanes, rest = part.columns % kLanes;
    const auto joined = [&](uint32_t repeat, uint32_t lanes, const uint8_t *other, uint32_t other_stride) {
        for_repeats(part.rows, [&](uint32_t done, uint32_t rows) {
            uint8_t *to = work + done * kRepeatBytes;
            const uint8_t *left = from + uint64_t{done} * part.row_bytes() + repeat * kRepeatBytes;
            const uint8_t *right = other + done * (other_stride * kUbBlockBytes);
            two(how.join, lanes_at(to), lanes_at(left, part.blocks()), lanes_at(right, other_stride), Shape::leading(lanes, rows));
        });
    };
    if (whole >= kBlocksOfColumns) {
        for (uint32_t row = 0; row < part.rows; ++row) {
            reduce(how.block, work + row * kRepeatBytes, kLanes, lanes_at(from + uint64_t{row} * part.row_bytes()),
                   Shape::leading(kLanes, kBlocksOfColumns));
        }
        for (uint32_t row = 0; row < part.rows && whole > kBlocksOfColumns; ++row) {
            const Lanes to = lanes_at(work + row * kRepeatBytes, 0);
            const uint8_t *others = from + uint64_t{row} * part.row_bytes() + kBlocksOfColumns * kRepeatBytes;
            for_repeats(whole - kBlocksOfColumns, [&](uint32_t done, uint32_t repeats) {
                two(how.join, to, lanes_at(others + done * kRepeatBytes), to, Shape::leading(kLanes, repeats));
            });
        }
    } else if (whole > 1) {
        joined(1, kLanes, from, part.blocks());
        for (uint32_t repeat = 2; repeat < whole; ++repeat) joined(repeat, kLanes, work, kRowsOfRepeat);
    } else {
        for_repeats(part.rows, [&](uint32_t done, uint32_t rows) {
            one(Op::CopyUbToUb, lanes_at(work + done * kRepeatBytes),
                lanes_at(from + uint64_t{done} * part.row_bytes(), part.blocks()), Shape::leading(kLanes, rows));
        });
    }
    if (rest > 0) joined(whole, rest, work, kRowsOfRepeat);
}

// The numbers at `blocks`, one behind the other, become data blocks of their rows, by way of `work`.
void spread_numbers(const Part &part, uint8_t *blocks, uint8_t *work) {
    const uint32_t groups = (part.rows + kRowsOfRepeat - 1) / kRowsOfRepeat, apart = part.rows == 1 ? 1 : part.number_blocks;
    for (uint32_t copy = 0; copy < apart; ++copy) {
        emit_vector(Op::Brcb, sizeof(float), groups,
                    {described(Op::Brcb, lanes_at(work + copy * kUbBlockBytes, apart * kRowsOfRepeat, apart), Shape::counter(groups * kLanes)),
                     described(Op::Brcb, lanes_at(blocks), Shape::first(part.rows))});
    }
    if (apart < part.number_blocks) one(Op::CopyUbToUb, lanes_at(work + kUbBlockBytes), lanes_at(work), Shape::first(kBlockElems));
    one(Op::CopyUbToUb, lanes_at(blocks), lanes_at(work), Shape::first(part.rows * part.number_blocks * kBlockElems));
}

// A number a row, then its data blocks at `blocks`.
void reduce_rows(const Reducing &how, const uint8_t *from, const Part &part, uint8_t *blocks, uint8_t *work) {
    if (part.columns < kLanes) {
        for_repeats(part.rows, [&](uint32_t done, uint32_t rows) {
            reduce(how.whole, blocks + done / kBlockElems * kUbBlockBytes, rows,
                   lanes_at(from + uint64_t{done} * part.row_bytes(), part.blocks()), Shape::leading(part.columns, rows));
        });
    } else {
        fold_columns(how, from, part, work);
        if (part.rows == 1) {
            reduce(how.whole, blocks, kRowsOfRepeat, lanes_at(work, 0), Shape::leading(kLanes, kRowsOfRepeat));
            if (part.number_blocks > 1) one(Op::CopyUbToUb, lanes_at(blocks + kUbBlockBytes), lanes_at(blocks), Shape::first(kBlockElems));
        } else {
            reduce(how.block, work, part.rows * kBlockElems, lanes_at(work), Shape::first(part.rows * kLanes));
            reduce(how.block, blocks, part.rows, lanes_at(work), Shape::first(part.rows * kBlockElems));
        }
    }
    if (part.rows > 1 || part.columns <= kLanes) spread_numbers(part, blocks, work);
}

// Every data block of a row with that of its number.
void with_blocks(Op op, const uint8_t *dst, const uint8_t *from, const uint8_t *blocks, const Part &part) {
    if (part.stride < kWholeRows) {
        for (uint32_t column = 0; column < part.blocks(); ++column) {
            const uint32_t offset = column * kUbBlockBytes;
            two(op, lanes_at(dst + offset, part.stride, part.blocks()), lanes_at(from + offset, part.stride, part.blocks()),
                lanes_at(blocks, part.number_blocks * kRowsOfRepeat, part.number_blocks), Shape::counter(part.rows * kBlockElems));
        }
        return;
    }
    for (uint32_t row = 0; row < part.rows; ++row) {
        const uint64_t offset = uint64_t{row} * part.row_bytes();
        two(op, lanes_at(dst + offset), lanes_at(from + offset), lanes_at(blocks + row * part.number_blocks * kUbBlockBytes, 0, 0),
            Shape::counter(part.stride));
    }
}

// The logarithm to the base 10, in place: the natural one, scaled.
void take_logarithm(const uint8_t *values, const Part &part) {
    const bool whole = part.stride >= kWholeRows;
    const uint32_t runs = whole ? part.rows : part.blocks(), distance = whole ? part.row_bytes() : kUbBlockBytes;
    for (uint32_t run = 0; run < runs; ++run) {
        const uint8_t *at = values + uint64_t{run} * distance;
        const Lanes lanes = whole ? lanes_at(at) : lanes_at(at, part.stride, part.blocks());
        for (const Op op : {Op::Ln, Op::Muls}) one(op, lanes, lanes, Shape::counter(whole ? part.stride : part.rows * kBlockElems));
    }
}

void widen(const uint8_t *dst, const uint8_t *src, uint32_t count) {
    const Shape all = Shape::first(count);
    emit_vector(Op::Cast, sizeof(float), repeats_of(all, sizeof(float)),
                {described(Op::Cast, lanes_at(dst), all), described<half>(Op::Cast, lanes_at(src), all)});
}

void narrow(const uint8_t *dst, const uint8_t *src, uint32_t count) {
    const Shape all = Shape::first(count);
    emit_vector(Op::Cast, sizeof(float), repeats_of(all, sizeof(float)),
                {described<half>(Op::Cast, lanes_at(dst), all), described(Op::Cast, lanes_at(src), all)});
}

// Where one round of rows works.
struct Places {
    const uint8_t *src;
    uint8_t *dst;
    uint8_t *maxima;
    uint8_t *sums;
    uint8_t *work;
};

// What follows the conversion of half rows. Numbers that are to be half are converted into `half_maxima` and `half_sums`.
void issue_rows(const Part &part, const Places &at, const uint8_t *half_maxima, const uint8_t *half_sums) {
    const uint32_t numbers = part.rows * part.number_blocks * kBlockElems;
    reduce_rows(kMaximum, at.src, part, at.maxima, at.work);
    if (part.number_blocks > 1) narrow(half_maxima, at.maxima, numbers);
    with_blocks(Op::Sub, at.dst, at.src, at.maxima, part);
    one(Op::Exp, lanes_at(at.dst), lanes_at(at.dst), Shape::first(part.rows * part.stride));
    reduce_rows(kTotal, at.dst, part, at.sums, at.work);
    if (part.number_blocks > 1) narrow(half_sums, at.sums, numbers);
    with_blocks(Op::Div, at.dst, at.dst, at.sums, part);
}

}  // namespace

namespace {

// Of the scratch buffer, for each row that is worked on at once.
uint64_t floats_of_row(const SoftmaxRows &rows) {
    return rows.number_blocks() * kBlockElems + kLanes + (rows.wide ? uint64_t{rows.stride} : 0);
}

}  // namespace

ScratchUse scratch_use(const char *call, const SoftmaxRows &rows, uint32_t at_once, Scratch scratch) {
    const uint64_t type_bytes = rows.wide ? sizeof(half) : sizeof(float), operand_bytes = uint64_t{rows.shape.rows} * rows.stride * type_bytes;
    ScratchUse use(call, scratch);
    use.add(0, at_once * floats_of_row(rows) * sizeof(float));
    for (const uint8_t *operand : {rows.src, static_cast<const uint8_t *>(rows.dst)}) use.must_not_hold(operand, operand_bytes);
    for (const uint8_t *numbers : {rows.maxima, rows.sums}) use.must_not_hold(numbers, uint64_t{rows.shape.rows} * kUbBlockBytes);
    return use;
}

uint32_t rows_at_once(const SoftmaxRows &rows, Scratch scratch) {
    const auto fitting = static_cast<uint32_t>(scratch.bytes / sizeof(float) / floats_of_row(rows));
    if (fitting >= rows.shape.rows) return rows.shape.rows;
    return fitting > kRowsOfRepeat ? fitting / kRowsOfRepeat * kRowsOfRepeat : fitting;
}

void issue_softmax(const SoftmaxRows &rows, uint32_t at_once, Scratch scratch) {
    const LibraryCall call;
    const uint32_t type_bytes = rows.wide ? sizeof(half) : sizeof(float);
    uint8_t *wide = scratch.base;
    uint8_t *blocks = wide + (rows.wide ? uint64_t{at_once} * rows.stride * sizeof(float) : 0);
    uint8_t *work = blocks + at_once * rows.number_blocks() * kUbBlockBytes;
    const auto numbers_at = [](uint8_t *tensor, uint32_t row) { return tensor ? tensor + row * kUbBlockBytes : nullptr; };
    for (uint32_t done = 0; done < rows.shape.rows; done += at_once) {
        const Part part{std::min(at_once, rows.shape.rows - done), rows.shape.columns, rows.stride, rows.number_blocks()};
        const uint64_t offset = uint64_t{done} * rows.stride * type_bytes;
        const uint32_t elements = part.rows * part.stride;
        uint8_t *maxima = numbers_at(rows.maxima, done), *sums = numbers_at(rows.sums, done);
        Places at{rows.src + offset, rows.dst + offset, maxima ? maxima : blocks, sums ? sums : blocks, work};
        if (rows.wide) {
            at = {wide, wide, blocks, blocks, work};
            widen(wide, rows.src + offset, elements);
        }
        issue_rows(part, at, maxima, sums);
        if (rows.logarithm) take_logarithm(at.dst, part);
        if (rows.wide) narrow(rows.dst + offset, wide, elements);
    }
}

}  // namespace asim

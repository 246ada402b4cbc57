#include "matmul_trace.h"

#include <algorithm>
#include <iterator>

#include "asim/machine/call_sync.h"
#include "asim/semantics/atomic.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kL0Bytes = 64 * 1024;
constexpr uint32_t kL0cBytes = 128 * 1024;
// Basic blocks that the library's own code runs on the scalar unit for each base block multiplied. Derived from
// matmul_high_performance: 449 and 248 scalar cycles for each of cases 1 and 5, less 12 for the instructions themselves.
constexpr uint32_t kNormScalarBlocks = 312;
constexpr uint32_t kMultiLoadScalarBlocks = 168;
// Flags of the library's buffers: parts in L1 of either operand, then the halves of L0.
constexpr uint32_t kL1Flag = 2 * kCallFlag;
constexpr uint32_t kL0Flag = kL1Flag + 2 * L1Cache::kMostParts;

uint32_t ceil_div(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }
uint32_t align_up(uint32_t value, uint32_t unit) { return ceil_div(value, unit) * unit; }

uint32_t bytes_of(NumberType type, uint64_t elements) { return static_cast<uint32_t>(elements * type_bits(type) / 8); }

// Elements along k that the cube takes as one, and bytes of `k` of them.
uint32_t padded_k_bytes(NumberType type, uint32_t k) { return align_up(bytes_of(type, align_up(k, 2)), kBlockBytes); }

// Bytes of a part in L1 or L0: fractals of 16 rows by 32 bytes.
uint32_t fractal_bytes(NumberType type, uint32_t rows, uint32_t k) { return align_up(rows, kFractalRows) * padded_k_bytes(type, k); }

Operand local(Space space, uint32_t address, uint32_t bytes) { return {address, static_cast<uint64_t>(space), bytes, 0}; }

// Bursts of a part in global memory: its rows, or its columns of fractals. Rows that follow each other are one burst, except
// on their way to L1: there each is turned into fractals by itself.
struct Bursts {
    uint32_t count;
    uint32_t bytes;
    uint32_t stride;
};

Bursts bursts_of(const StoredMatrix &matrix, const MatrixPart &part, bool apart = false) {
    if (matrix.layout == MatrixLayout::Fractals) {
        const uint32_t columns = matrix.fractal_columns;
        const uint64_t stride = offset_of(matrix, 0, columns);
        return {ceil_div(part.columns, columns), bytes_of(matrix.type, uint64_t{part.rows} * columns), static_cast<uint32_t>(stride)};
    }
    const uint32_t stride = static_cast<uint32_t>(offset_of(matrix, 1, 0));
    const uint32_t bytes = bytes_of(matrix.type, part.columns);
    if (bytes == stride && !apart) return {1, bytes * part.rows, bytes * part.rows};
    return {part.rows, bytes, stride};
}

Record copy_record(Op op, const StoredMatrix &matrix, const Bursts &bursts) {
    Record record{};
    record.op = op;
    record.source_pipe = on_cube_core() ? kInsideCall : 0;
    record.dtype_bytes = 1;
    record.repeats = bursts.count;
    record.burst_bytes = bursts.bytes;
    record.flag_id = matrix.bypass_l2 ? kBypassesL2 : 0;
    return record;
}

// Where vector and cube core of the running group meet.
Operand mailbox_operand(uint32_t bytes) {
    return {kMailboxBase + block().group * kMailboxBytes, static_cast<uint64_t>(Space::Gm), bytes, bytes};
}

Operand gm_operand(const char *call, const StoredMatrix &matrix, const MatrixPart &part, const Bursts &bursts, bool write) {
    const uint64_t address = checked_part(call, matrix, part, write);
    return {address, static_cast<uint64_t>(Space::Gm), static_cast<uint32_t>(span_of(matrix, part)), bursts.stride};
}

void count_scalar(uint32_t blocks) { block().scalar_blocks += blocks; }

// A buffer that one pipe fills and another empties: the next filling waits for the latest emptying.
void begin_filling(bool &emptied, Pipe filler, Pipe reader, uint32_t flag) {
    if (emptied) wait_buffer_flag(reader, filler, flag);
    emptied = false;
}

void end_filling(Pipe filler, Pipe reader, uint32_t flag) {
    set_buffer_flag(filler, reader, flag);
    wait_buffer_flag(filler, reader, flag);
}

void end_emptying(bool &emptied, Pipe filler, Pipe reader, uint32_t flag) {
    if (!emptied) set_buffer_flag(reader, filler, flag);
    emptied = true;
}

// One of the two operands on its way to the cube.
class OperandPath {
public:
    OperandPath(MatmulState &state, bool left)
        : state_(state),
          matrix_(left ? state.a : state.b),
          cache_(left ? state.cache_a : state.cache_b),
          turn_(left ? state.turn_a : state.turn_b),
          left_(left) {
        const MatmulBlocks &blocks = state.blocks;
        base_rows_ = left ? blocks.base.m : blocks.base.n;
        step_ = std::max(1u, left ? blocks.step_ka : blocks.step_kb);
        l0_buffers_ = std::max(1u, left ? blocks.l0a_buffers : blocks.l0b_buffers);
        block_bytes_ = fractal_bytes(matrix_.type, base_rows_, blocks.base.k);
        const uint32_t depth = left ? blocks.depth_a1 : blocks.depth_b1;
        const uint32_t whole = ceil_div(state.single.m, blocks.base.m) * ceil_div(ceil_div(state.single.k, blocks.base.k), step_);
        cache_.capacity = std::clamp(left && state.keeps_left ? whole : depth / step_, 1u, L1Cache::kMostParts);
    }

    uint32_t l1_bytes() const { return cache_.capacity * step_ * block_bytes_; }

    // Traces the copy of the part that holds base block `k` of the rows from `first` on, if it is not in L1.
    void bring(uint32_t first, uint32_t rows, uint32_t k_block, uint32_t l1_base) {
        place_ = in_l1(first, rows, k_block / step_, l1_base);
    }

    // Traces the copies from there to L0; returns where the base block lies then.
    Operand load(uint32_t rows, uint32_t k_block, uint32_t l1_base) {
        const uint32_t k = k_extent(k_block, 1);
        const uint32_t bytes = fractal_bytes(matrix_.type, rows, k);
        const uint32_t inside = k_block % step_ * fractal_bytes(matrix_.type, rows, state_.blocks.base.k);
        const Operand target = local(left_ ? Space::L0A : Space::L0B, turn_ % l0_buffers_ * (kL0Bytes / l0_buffers_), bytes);
        ++turn_;
        const uint32_t loads = load_count(k), from = l1_base + place_ * step_ * block_bytes_ + inside;
        Record record{};
        record.op = left_ ? Op::LoadL0A : Op::LoadL0B;
        record.source_pipe = kInsideCall;
        record.dtype_bytes = 2;
        record.repeats = ceil_div(rows, kFractalRows);
        record.burst_bytes = bytes / loads / record.repeats;
        for (uint32_t i = 0; i < loads; ++i) {
            const uint32_t offset = i * (bytes / loads);
            emit(record, {part_of(target, offset, bytes / loads), local(Space::L1, from + offset, bytes / loads)});
        }
        return target;
    }

    // After the last base block of a part, or of k, its place in L1 is free.
    void release(uint32_t k_block) {
        const bool last = (k_block + 1) % step_ == 0 || (k_block + 1) * state_.blocks.base.k >= state_.single.k;
        if (last && matrix_.space != Space::L1) end_emptying(cache_.emptied[place_], Pipe::MTE2, Pipe::MTE1, l1_flag(place_));
    }

private:
    uint32_t l1_flag(uint32_t place) const { return kL1Flag + (left_ ? 0 : L1Cache::kMostParts) + place; }

    static Operand part_of(Operand whole, uint32_t offset, uint32_t bytes) {
        whole.address += offset;
        whole.extent_bytes = bytes;
        return whole;
    }

    // One instruction loads all, except where 8 bit rows of the right operand have to be turned: one for every 32 of them.
    uint32_t load_count(uint32_t k) const {
        const bool turned = !left_ && !matrix_.transposed && type_bits(matrix_.type) == 8 && k % kBlockBytes == 0;
        return turned ? k / kBlockBytes : 1;
    }

    uint32_t k_extent(uint32_t k_block, uint32_t blocks) const {
        const uint32_t first = k_block * state_.blocks.base.k;
        return std::min(state_.single.k - first, blocks * state_.blocks.base.k);
    }

    // Place in L1 of a step of the operand, after the copy from where it lies if it is not there.
    uint32_t in_l1(uint32_t first, uint32_t rows, uint32_t step, uint32_t l1_base) {
        const uint64_t name = (uint64_t{first} << 32 | step) + 1;
        for (uint32_t i = 0; i < cache_.capacity; ++i) {
            if (cache_.parts[i] == name) return i;
        }
        const uint32_t place = cache_.next;
        cache_.next = (place + 1) % cache_.capacity;
        cache_.parts[place] = name;
        if (matrix_.space == Space::L1) return place;
        begin_filling(cache_.emptied[place], Pipe::MTE2, Pipe::MTE1, l1_flag(place));
        copy_to_l1(first, rows, step, l1_base + place * step_ * block_bytes_);
        end_filling(Pipe::MTE2, Pipe::MTE1, l1_flag(place));
        return place;
    }

    void copy_to_l1(uint32_t first, uint32_t rows, uint32_t step, uint32_t address) {
        const uint32_t k0 = step * step_ * state_.blocks.base.k, k = k_extent(step * step_, step_);
        const MatrixPart part = left_ ? stored_part(matrix_, first, rows, k0, k) : stored_part(matrix_, k0, k, first, rows);
        const bool in_gm = matrix_.space == Space::Gm;
        const Bursts bursts = bursts_of(matrix_, part, in_gm);
        const Operand origin = in_gm ? gm_operand("Matmul", matrix_, part, bursts, false) : mailbox_operand(bursts.count * bursts.bytes);
        emit(copy_record(Op::CopyGmToL1, matrix_, bursts), {local(Space::L1, address, fractal_bytes(matrix_.type, rows, k)), origin});
    }

    MatmulState &state_;
    const StoredMatrix &matrix_;
    L1Cache &cache_;
    uint32_t &turn_;
    bool left_;
    uint32_t base_rows_, step_, l0_buffers_, block_bytes_;
    uint32_t place_ = 0;
};

// Both operands take turns together.
uint32_t l0_halves(const MatmulState &state) { return std::clamp(std::min(state.blocks.l0a_buffers, state.blocks.l0b_buffers), 1u, 2u); }

Operand l0c_operand(const MatmulState &state, const ResultBlock &block) {
    const uint32_t buffers = std::max(1u, state.blocks.l0c_buffers);
    const uint32_t bytes = align_up(block.rows, kFractalRows) * align_up(block.columns, kFractalRows) * 4;
    return local(Space::L0C, state.turn_c % buffers * (kL0cBytes / buffers), bytes);
}

void trace_mmad(const MatmulState &state, const ResultBlock &block, uint32_t k, bool last, const Operand &a, const Operand &b) {
    count_scalar(state.multi_data_load || state.constant_plan ? kMultiLoadScalarBlocks : kNormScalarBlocks);
    Record record{};
    record.op = Op::Mmad;
    record.source_pipe = kInsideCall;
    record.dtype_bytes = static_cast<uint8_t>(std::max(1u, type_bits(state.a.type) / 8));
    record.repeats = ceil_div(block.rows, kFractalRows) * ceil_div(block.columns, kFractalRows);
    record.burst_bytes = padded_k_bytes(state.a.type, k);
    record.flag_id = (state.hf32 ? kMmadHf32 : 0) | (state.unit_flag && last ? kUnitFlag : 0);
    emit(record, {l0c_operand(state, block), a, b});
}

// The base block along k that a core begins with: cores that share rows then ask for different parts of them at a time.
uint32_t first_round(const MatmulState &state, uint32_t rounds) {
    if (!state.staggers_k) return 0;
    const uint32_t step = std::max({1u, state.blocks.step_ka, state.blocks.step_kb});
    return block().index % ceil_div(rounds, step) * step;
}

// Bias of the columns of a block: to L1, and on to the bias table.
void trace_bias(const MatmulState &state, const ResultBlock &block, uint32_t l1_address) {
    if (!state.has_bias || state.bias.space != Space::Gm) return;
    const MatrixPart part{0, block.n, 1, block.columns};
    const Bursts bursts = bursts_of(state.bias, part);
    const uint32_t bytes = align_up(bursts.bytes, 64);
    const Operand in_l1 = local(Space::L1, l1_address, bytes);
    emit(copy_record(Op::CopyGmToL1, state.bias, bursts), {in_l1, gm_operand("Matmul bias", state.bias, part, bursts, false)});
    emit(copy_record(Op::CopyL1ToBias, state.bias, {1, bytes, bytes}), {local(Space::BiasTable, 0, bytes), in_l1});
}

}  // namespace

uint32_t block_count(const MatmulState &state) {
    const GemmExtents &base = state.blocks.base;
    return ceil_div(state.single.m, base.m) * ceil_div(state.single.n, base.n);
}

ResultBlock block_at(const MatmulState &state, uint32_t index) {
    const GemmExtents &base = state.blocks.base, &single = state.single;
    const uint32_t rows = ceil_div(single.m, base.m), columns = ceil_div(single.n, base.n);
    const uint32_t row = state.blocks.n_first ? index / columns : index % rows;
    const uint32_t column = state.blocks.n_first ? index % columns : index / rows;
    ResultBlock block;
    block.m = row * base.m;
    block.n = column * base.n;
    block.rows = std::min(base.m, single.m - block.m);
    block.columns = std::min(base.n, single.n - block.n);
    return block;
}

MatrixPart stored_part(const StoredMatrix &matrix, uint32_t row, uint32_t rows, uint32_t column, uint32_t columns) {
    return matrix.transposed ? MatrixPart{column, row, columns, rows} : MatrixPart{row, column, rows, columns};
}

BlockPlace place_of(const MatmulState &state, const ResultBlock &block, const MatmulTarget &target) {
    BlockPlace place{state.result, {block.m, block.n, block.rows, block.columns}};
    place.matrix.base = target.base;
    place.matrix.space = target.space;
    place.matrix.bypass_l2 = target.bypass_l2;
    if (target.sequential) {
        place.part = {0, 0, block.rows, block.columns};
        place.matrix.rows = block.rows;
        place.matrix.columns = block.columns;
    } else if (target.space != Space::Gm) {
        place.matrix.rows = state.single.m;
        place.matrix.columns = state.single.n;
    }
    return place;
}

void forget_l1(MatmulState &state) {
    for (L1Cache *cache : {&state.cache_a, &state.cache_b}) {
        std::fill(std::begin(cache->parts), std::end(cache->parts), 0);
        cache->next = 0;
    }
}

void trace_multiplication(MatmulState &state, const ResultBlock &block, bool accumulate) {
    OperandPath left(state, true), right(state, false);
    const uint32_t a_in_l1 = state.l1_offset, b_in_l1 = a_in_l1 + left.l1_bytes();
    if (!accumulate) {
        ++state.turn_c;
        trace_bias(state, block, b_in_l1 + right.l1_bytes());
    }
    const uint32_t rounds = ceil_div(state.single.k, state.blocks.base.k), first = first_round(state, rounds);
    for (uint32_t done = 0; done < rounds; ++done) {
        const uint32_t round = (first + done) % rounds;
        left.bring(block.m, block.rows, round, a_in_l1);
        right.bring(block.n, block.columns, round, b_in_l1);
        const uint32_t half = state.turn_a % l0_halves(state);
        begin_filling(state.l0_emptied[half], Pipe::MTE1, Pipe::M, kL0Flag + half);
        const Operand a = left.load(block.rows, round, a_in_l1);
        const Operand b = right.load(block.columns, round, b_in_l1);
        end_filling(Pipe::MTE1, Pipe::M, kL0Flag + half);
        left.release(round);
        right.release(round);
        const uint32_t k = std::min(state.blocks.base.k, state.single.k - round * state.blocks.base.k);
        trace_mmad(state, block, k, done + 1 == rounds, a, b);
        end_emptying(state.l0_emptied[half], Pipe::MTE1, Pipe::M, kL0Flag + half);
    }
}

void trace_result(MatmulState &state, const BlockPlace &place, AtomicMode atomic) {
    const ResultBlock block{0, 0, place.part.rows, place.part.columns};
    const Bursts bursts = bursts_of(place.matrix, place.part);
    Record record = copy_record(Op::CopyL0cToGm, place.matrix, bursts);
    if (state.unit_flag) record.flag_id |= kUnitFlag;
    record.flag_id = static_cast<uint16_t>(record.flag_id | atomic_flags(atomic));
    const bool to_gm = place.matrix.space == Space::Gm;
    const Operand target = to_gm ? gm_operand("Matmul result", place.matrix, place.part, bursts, true)
                                 : mailbox_operand(bursts.count * bursts.bytes);
    emit(record, {target, l0c_operand(state, block)});
}

void trace_mailbox(Op op, const StoredMatrix &matrix, const MatrixPart &part) {
    const auto bytes = static_cast<uint32_t>(span_of(matrix, part));
    const Operand mailbox = mailbox_operand(bytes);
    const Operand in_ub = local(Space::Ub, static_cast<uint32_t>(checked_part("Matmul", matrix, part, op == Op::CopyGmToUb)), bytes);
    const Record record = copy_record(op, matrix, {1, bytes, bytes});
    op == Op::CopyGmToUb ? emit(record, {in_ub, mailbox}) : emit(record, {mailbox, in_ub});
}

}  // namespace asim

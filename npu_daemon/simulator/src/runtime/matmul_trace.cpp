#include "matmul_trace.h"

#include <algorithm>
#include <iterator>

#include "asim/machine/call_sync.h"
#include "asim/machine/gm.h"
#include "asim/semantics/atomic.h"
#include "asim/machine/fault.h"
#include "asim/machine/scheduler.h"
#include "asim/trace/writer.h"
#include "matrix_copies.h"
#include "operand_path.h"

namespace asim {

namespace {

constexpr uint32_t kL0cBytes = 128 * 1024;
// Basic blocks that the library's own code runs on the scalar unit for each base block multiplied. With those for each copy
// (operand_path.cpp) they are derived from matmul_high_performance: 449 scalar cycles a base block in case 1, whose copies are
// two, and 248 in case 5, of 3 copies for 8 base blocks, less 12 for the instructions themselves.
constexpr uint32_t kBlockScalarBlocks = 135;

// Both operands take turns together.
uint32_t l0_halves(const MatmulState &state) { return std::clamp(std::min(state.blocks.l0a_buffers, state.blocks.l0b_buffers), 1u, 2u); }

Operand l0c_operand(const MatmulState &state, const ResultBlock &block) {
    const uint32_t buffers = std::max(1u, state.blocks.l0c_buffers);
    const uint32_t bytes = align_up(block.rows, kFractalRows) * align_up(block.columns, kFractalRows) * 4;
    return local(Space::L0C, state.turn_c % buffers * (kL0cBytes / buffers), bytes);
}

void trace_mmad(const MatmulState &state, const ResultBlock &block, uint32_t k, bool last, const Operand &a, const Operand &b) {
    count_scalar(ScalarClass::Block, kBlockScalarBlocks);
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

// Preloading: the operand of the next rows or columns is asked for before the pipes behind are given this block's work
// (scheduler_mdl_base.h, DoPreloadLoad).
void preload(const MatmulState &state, const ResultBlock &block, OperandPath &left, OperandPath &right) {
    const GemmExtents &base = state.blocks.base, &single = state.single;
    const uint32_t m = block.m + base.m, n = block.n + base.n;
    if (state.preload == MatmulPreload::Rows && m < single.m) left.bring_ahead({m, std::min(base.m, single.m - m)});
    if (state.preload == MatmulPreload::Columns && n < single.n) right.bring_ahead({n, std::min(base.n, single.n - n)});
}

// Bias of the columns of a block: to L1 unless it lies there, and on to the bias table, by a buffer of its own in each, as in the published
// source (c1_buffer.h, c2_buffer.h).
void trace_bias(MatmulState &state, const ResultBlock &block, uint32_t l1_address) {
    const MatrixPart part{0, block.n, 1, block.columns};
    const Bursts bursts = bursts_of(state.bias, part);
    const uint32_t bytes = align_up(bursts.bytes, 64);
    Record on = copy_record(Op::CopyL1ToBias, state.bias, {1, bytes, bytes});
    const Operand table = local(Space::BiasTable, 0, bytes), in_l1 = local(Space::L1, l1_address, bytes);
    const bool kernels_own = state.bias.space == Space::L1;
    if (kernels_own) {
        on.flag_id |= kKernelsL1;
    } else {
        const bool in_gm = state.bias.space == Space::Gm;
        const Operand origin = in_gm ? gm_operand("Matmul bias", state.bias, part, bursts, false) : mailbox_operand(bursts.bytes);
        begin_filling(state.bias_emptied, Pipe::MTE2, Pipe::MTE1, kBiasFlag);
        emit(copy_record(Op::CopyGmToL1, state.bias, bursts), {in_l1, origin});
        end_filling(Pipe::MTE2, Pipe::MTE1, kBiasFlag);
    }
    begin_filling(state.bias_table_emptied, Pipe::MTE1, Pipe::M, kBiasTableFlag);
    emit(on, {table, kernels_own ? kernels_l1_operand(state.bias, part) : in_l1});
    end_filling(Pipe::MTE1, Pipe::M, kBiasTableFlag);
    if (!kernels_own) end_emptying(state.bias_emptied, Pipe::MTE2, Pipe::MTE1, kBiasFlag);
}

// Parameters of the columns of a block (SetQuantVector): to L1, and on to the fixpipe buffer, one after the other as in the
// published source (quant_processor_fixpipe.h).
void trace_parameters(const MatmulState &state, const ResultBlock &block) {
    const uint64_t *const vector = state.store.quantisation.vector;
    if (vector == nullptr) return;
    const uint32_t bytes = block.columns * static_cast<uint32_t>(sizeof *vector);
    const Operand origin{checked_gm("SetQuantVector", vector + block.n, bytes, false), static_cast<uint64_t>(Space::Gm), bytes, bytes};
    const Operand in_l1 = local(Space::L1, 0, bytes);
    synchronise(Pipe::FIX, Pipe::MTE2);
    emit(copy_record(Op::CopyGmToL1, {}, {1, bytes, bytes}), {in_l1, origin});
    synchronise(Pipe::MTE2, Pipe::FIX);
    emit(copy_record(Op::CopyL1ToFixpipe, {}, {1, bytes, bytes}), {local(Space::FixpipeBuffer, 0, bytes), in_l1});
}

// Where a block of the result goes: global memory, where the core that asked for it fetches it, or L1.
Operand result_operand(const BlockPlace &place, const Bursts &bursts) {
    switch (place.matrix.space) {
        case Space::Gm: return gm_operand("Matmul result", place.matrix, place.part, bursts, true);
        case Space::L1: {
            Operand target = kernels_l1_operand(place.matrix, place.part);
            target.stride = bursts.stride;
            return target;
        }
        default: return mailbox_operand(bursts.count * bursts.bytes);
    }
}

// A copy between the unified buffer of the running vector core and where it meets its cube core in global memory.
void trace_mailbox(Op op, const StoredMatrix &matrix, const MatrixPart &part) {
    const auto bytes = static_cast<uint32_t>(span_of(matrix, part));
    const Operand mailbox = mailbox_operand(bytes);
    const Operand in_ub = local(Space::Ub, static_cast<uint32_t>(checked_part("Matmul", matrix, part, op == Op::CopyGmToUb)), bytes);
    const Record record = copy_record(op, matrix, {1, bytes, bytes});
    op == Op::CopyGmToUb ? emit(record, {in_ub, mailbox}) : emit(record, {mailbox, in_ub});
}

// An operand in the unified buffer of a vector core reaches the cube core through global memory.
void send_operand(const StoredMatrix &matrix) {
    if (on_cube_core() || matrix.space != Space::Ub) return;
    trace_mailbox(Op::CopyUbToGm, matrix, {0, 0, static_cast<uint32_t>(matrix.rows), static_cast<uint32_t>(matrix.columns)});
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

// Both operands and the bias lie side by side.
uint64_t l1_bytes_of(MatmulState &state) {
    const OperandPath left(state, true, 0), right(state, false, left.l1_end());
    return right.l1_end() + (state.has_bias ? uint64_t{align_up(state.blocks.base.n, kFractalRows)} * sizeof(float) : 0);
}

void trace_multiplication(MatmulState &state, const ResultBlock &block, bool accumulate) {
    OperandPath left(state, true, 0), right(state, false, left.l1_end());
    const OperandRows rows{block.m, block.rows}, columns{block.n, block.columns};
    const bool biased = state.has_bias && !accumulate;
    if (!accumulate) ++state.turn_c;
    left.begin_block(rows);
    right.begin_block(columns);
    const uint32_t rounds = ceil_div(state.single.k, state.blocks.base.k), first = first_round(state, rounds);
    for (uint32_t done = 0; done < rounds; ++done) {
        const uint32_t round = (first + done) % rounds;
        left.bring(rows, round);
        right.bring(columns, round);
        if (done == 0 && biased) trace_bias(state, block, static_cast<uint32_t>(right.l1_end()));
        if (done == 0) preload(state, block, left, right);
        const uint32_t half = state.turn_a % l0_halves(state);
        begin_filling(state.l0_emptied[half], Pipe::MTE1, Pipe::M, kL0Flag + half);
        const Operand a = left.load(rows, round);
        const Operand b = right.load(columns, round);
        end_filling(Pipe::MTE1, Pipe::M, kL0Flag + half);
        left.release(round);
        right.release(round);
        const uint32_t k = std::min(state.blocks.base.k, state.single.k - round * state.blocks.base.k);
        trace_mmad(state, block, k, done + 1 == rounds, a, b);
        if (done == 0 && biased) end_emptying(state.bias_table_emptied, Pipe::MTE1, Pipe::M, kBiasTableFlag);
        end_emptying(state.l0_emptied[half], Pipe::MTE1, Pipe::M, kL0Flag + half);
    }
}

void trace_result(MatmulState &state, const ResultBlock &block, const BlockPlace &place, AtomicMode atomic) {
    const Bursts bursts = bursts_of(place.matrix, place.part);
    const bool to_l1 = place.matrix.space == Space::L1;
    trace_parameters(state, block);
    Record record = copy_record(to_l1 ? Op::CopyL0cToL1 : Op::CopyL0cToGm, place.matrix, bursts);
    if (state.unit_flag) record.flag_id |= kUnitFlag;
    record.flag_id = static_cast<uint16_t>(record.flag_id | (to_l1 ? kKernelsL1 : atomic_flags(atomic)));
    emit(record, {result_operand(place, bursts), l0c_operand(state, block)});
}

void send_operands(const MatmulState &state) {
    send_operand(state.a);
    send_operand(state.b);
    if (state.has_bias) send_operand(state.bias);
}

// A result on its way to the unified buffer goes through global memory as well: after what the vector pipe was given or waits for, before what it is given next.
void receive_result(const BlockPlace &place) {
    if (on_cube_core() || place.matrix.space != Space::Ub) return;
    synchronise(Pipe::V, Pipe::MTE2);
    trace_mailbox(Op::CopyGmToUb, place.matrix, place.part);
    synchronise(Pipe::MTE2, Pipe::V);
}

}  // namespace asim

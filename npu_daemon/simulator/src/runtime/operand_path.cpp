#include "operand_path.h"

#include <algorithm>
#include <iterator>

#include "asim/machine/fault.h"
#include "asim/trace/writer.h"
#include "matmul_trace.h"
#include "matrix_copies.h"

namespace asim {

namespace {

constexpr uint32_t kL0Bytes = 64 * 1024;
constexpr uint32_t kCopyScalarBlocks = 89;  // of the library's own code for each copy to L1, see kBlockScalarBlocks

Operand part_of(Operand whole, uint64_t offset, uint64_t bytes) {
    whole.address += offset;
    whole.extent_bytes = static_cast<uint32_t>(bytes);
    return whole;
}

}  // namespace

OperandPath::OperandPath(MatmulState &state, bool left, uint64_t l1_base)
    : state_(state),
      matrix_(left ? state.a : state.b),
      cache_(left ? state.cache_a : state.cache_b),
      turn_(left ? state.turn_a : state.turn_b),
      left_(left),
      l1_base_(l1_base) {
    const MatmulBlocks &blocks = state.blocks;
    step_ = one_by_one() ? 1 : std::max(1u, left ? blocks.step_ka : blocks.step_kb);
    across_ = one_by_one() || (left && state.keeps_left) ? 1 : std::max(1u, left ? blocks.step_m : blocks.step_n);
    l0_buffers_ = std::max(1u, left ? blocks.l0a_buffers : blocks.l0b_buffers);
    block_bytes_ = fractal_bytes(matrix_.type, left ? blocks.base.m : blocks.base.n, blocks.base.k);
    set_places(left ? blocks.depth_a1 : blocks.depth_b1);
}

// The rows of the copy that brings these.
OperandRows OperandPath::copied_with(const OperandRows &rows) const {
    const uint32_t most = across_ * (left_ ? state_.blocks.base.m : state_.blocks.base.n), first = rows.first / most * most;
    return {first, std::min(most, (left_ ? state_.single.m : state_.single.n) - first)};
}

uint32_t OperandPath::rounds() const { return ceil_div(state_.single.k, state_.blocks.base.k); }

// Norm keeps the first base blocks along k, all but two of the buffers or all if they hold all of k, and takes turns with the rest.
void OperandPath::set_places(uint32_t depth) {
    if (!one_by_one()) {
        const uint32_t whole = ceil_div(state_.single.m, state_.blocks.base.m) * ceil_div(rounds(), step_);
        cache_.capacity = std::clamp(left_ && state_.keeps_left ? whole : depth / (step_ * across_), 1u, L1Cache::kMostParts);
        return;
    }
    cache_.capacity = std::clamp(depth, 1u, L1Cache::kMostParts);
    const bool all = rounds() <= cache_.capacity && !(rounds() == 1 && depth == 2);
    cache_.resident = all ? cache_.capacity : cache_.capacity - std::min(cache_.capacity, 2u);
}

// The operand that the order of the blocks changes each time is given up each time, also where its rows come again.
void OperandPath::begin_block(const OperandRows &rows) {
    const bool changes = left_ != state_.blocks.n_first;
    if (!one_by_one() || (!changes && cache_.resident_rows == rows.first + 1)) return;
    if (cache_.resident_filled) end_emptying(cache_.emptied[0], Pipe::MTE2, Pipe::MTE1, l1_flag(0));
    cache_.resident_filled = false;
    cache_.resident_rows = rows.first + 1;
    std::fill_n(cache_.parts, cache_.resident, 0);
}

void OperandPath::bring(const OperandRows &rows, uint32_t k_block) {
    place_ = in_l1(rows, k_block / step_);
    await_copy(place_);
}

void OperandPath::bring_ahead(const OperandRows &rows) {
    if (step_ >= rounds() && cache_.capacity == 2) in_l1(rows, 0);
}

void OperandPath::await_copy(uint32_t place) {
    if (cache_.copying[place]) wait_buffer_flag(Pipe::MTE2, Pipe::MTE1, l1_flag(place));
    cache_.copying[place] = false;
}

Operand OperandPath::load(const OperandRows &rows, uint32_t k_block) {
    const uint32_t k = k_extent(k_block, 1);
    const uint64_t bytes = fractal_bytes(matrix_.type, rows.count, k);
    const Operand target = local(left_ ? Space::L0A : Space::L0B, turn_ % l0_buffers_ * (kL0Bytes / l0_buffers_), bytes);
    ++turn_;
    const uint32_t loads = load_count(k);
    const uint64_t loaded = bytes / loads;
    Record record{};
    record.op = left_ ? Op::LoadL0A : Op::LoadL0B;
    record.source_pipe = kInsideCall;
    record.dtype_bytes = 2;
    record.repeats = ceil_div(rows.count, kFractalRows);
    record.burst_bytes = static_cast<uint32_t>(loaded / record.repeats);
    if (lies_in_l1()) record.flag_id = kKernelsL1;
    for (uint32_t i = 0; i < loads; ++i) {
        emit(record, {part_of(target, i * loaded, loaded), origin_of_load(rows, k_block, i * loaded, loaded)});
    }
    return target;
}

// The bytes from `offset` on of a base block in L1. All of it counts for each load where the kernel's own tensor is loaded.
Operand OperandPath::origin_of_load(const OperandRows &rows, uint32_t k_block, uint64_t offset, uint64_t bytes) const {
    const uint32_t k = k_extent(k_block, 1), base_k = state_.blocks.base.k;
    if (lies_in_l1()) return kernels_l1_operand(matrix_, stored(rows, k_block * base_k, k));
    const OperandRows copied = copied_with(rows);
    const uint64_t before = fractal_bytes(matrix_.type, rows.first - copied.first, k);
    const uint64_t inside = k_block % step_ * fractal_bytes(matrix_.type, copied.count, base_k) + before;
    return local(Space::L1, l1_address(place_) + inside + offset, bytes);
}

MatrixPart OperandPath::stored(const OperandRows &rows, uint32_t first_k, uint32_t k) const {
    return left_ ? stored_part(matrix_, rows.first, rows.count, first_k, k) : stored_part(matrix_, first_k, k, rows.first, rows.count);
}

void OperandPath::release(uint32_t k_block) {
    const bool last = (k_block + 1) % step_ == 0 || k_block + 1 == rounds();
    if (!last || place_ < cache_.resident || lies_in_l1()) return;
    end_emptying(cache_.emptied[place_], Pipe::MTE2, Pipe::MTE1, l1_flag(place_));
}

// One instruction loads all, except where 8 bit rows of the right operand have to be turned: one for every 32 of them.
uint32_t OperandPath::load_count(uint32_t k) const {
    const bool turned = !left_ && !matrix_.transposed && type_bits(matrix_.type) == 8 && k % kFractalRowBytes == 0;
    return turned ? k / kFractalRowBytes : 1;
}

uint32_t OperandPath::k_extent(uint32_t k_block, uint32_t blocks) const {
    const uint32_t first = k_block * state_.blocks.base.k;
    return std::min(state_.single.k - first, blocks * state_.blocks.base.k);
}

// The place of a part that need not be copied; of those that take turns Norm remembers none.
uint32_t OperandPath::find(uint64_t name) const {
    const uint32_t known = one_by_one() ? cache_.resident : cache_.capacity;
    const uint64_t *const found = std::find(cache_.parts, cache_.parts + known, name);
    return found == cache_.parts + known ? kNone : static_cast<uint32_t>(found - cache_.parts);
}

uint32_t OperandPath::next_place(uint32_t part) {
    if (part < cache_.resident) return part;
    const uint32_t turns = cache_.capacity - cache_.resident, place = cache_.resident + cache_.next % turns;
    cache_.next = (cache_.next + 1) % turns;
    return place;
}

// Place in L1 of a part of the operand, after the copy from where it lies if it is not there. Those that stay are one buffer:
// the first of them waits until all have been emptied.
uint32_t OperandPath::in_l1(const OperandRows &rows, uint32_t part) {
    const OperandRows copied = copied_with(rows);
    const uint64_t name = (uint64_t{copied.first} << 32 | part) + 1;
    const uint32_t known = find(name);
    if (known != kNone) {
        check_unchanged(copied, part, known);
        return known;
    }
    const uint32_t place = next_place(part), buffer = place < cache_.resident ? 0 : place;
    cache_.parts[place] = name;
    if (lies_in_l1()) return place;
    await_copy(place);
    count_scalar(ScalarClass::Block, kCopyScalarBlocks);
    begin_filling(cache_.emptied[buffer], Pipe::MTE2, Pipe::MTE1, l1_flag(buffer));
    copy_to_l1(copied, part, l1_address(place));
    if (remembers()) cache_.held[place] = bytes_of(matrix_, copied_part(copied, part));
    set_buffer_flag(Pipe::MTE2, Pipe::MTE1, l1_flag(place));
    cache_.copying[place] = true;
    cache_.resident_filled |= place < cache_.resident;
    return place;
}

// Values are those of global memory when a block is multiplied: of a part that is in L1 they have to be those that were copied.
void OperandPath::check_unchanged(const OperandRows &copied, uint32_t part, uint32_t place) const {
    if (!remembers() || bytes_of(matrix_, copied_part(copied, part)) == cache_.held[place]) return;
    fault(FaultKind::RuntimeFault, "Iterate",
          "the %s operand has changed in global memory since the library copied it to L1, from where it is multiplied again: change it after "
          "the last block, or begin anew with SetTensor%s",
          left_ ? "left" : "right", left_ ? "A" : "B");
}

MatrixPart OperandPath::copied_part(const OperandRows &rows, uint32_t part) const {
    return stored(rows, part * step_ * state_.blocks.base.k, k_extent(part * step_, step_));
}

void OperandPath::copy_to_l1(const OperandRows &rows, uint32_t part, uint64_t address) {
    const uint32_t k = k_extent(part * step_, step_);
    const MatrixPart copied = copied_part(rows, part);
    const bool in_gm = matrix_.space == Space::Gm;
    const Bursts bursts = bursts_of(matrix_, copied, in_gm);
    const Operand origin = in_gm ? gm_operand("Matmul", matrix_, copied, bursts, false) : mailbox_operand(bursts.count * bursts.bytes);
    emit(copy_record(Op::CopyGmToL1, matrix_, bursts), {local(Space::L1, address, fractal_bytes(matrix_.type, rows.count, k)), origin});
}

}  // namespace asim

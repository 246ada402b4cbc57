#include "asim/semantics/gemm.h"
#include "asim/semantics/matmul_state.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "asim/check/check.h"
#include "asim/machine/core.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/cross_core.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/kernel_objects.h"
#include "asim/machine/scheduler.h"
#include "asim/trace/writer.h"
#include "matmul_trace.h"

namespace asim {

namespace {

constexpr uint32_t kDepth = 512;            // of the slabs of both operands that are multiplied at once
constexpr uint32_t kExtent = 768;           // rows and columns of the result that are computed at once
constexpr uint32_t kRequestFlag = kKernelCrossCoreFlags;        // from a vector core to its cube core, one for each
constexpr uint32_t kResultFlag = kRequestFlag + 2;              // and back
constexpr uint32_t kMessageAccesses = 16;   // loads or stores of a message of 128 bytes

bool integers(const MatmulState &state) { return state.a.type == NumberType::I8 || state.a.type == NumberType::I4; }

// On a vector core, calls either go to the cube core or do nothing.
bool active(const MatmulState &state) { return on_cube_core() || state.delegates; }

// The whole matrices, as they are stored. What lies in local memory is the part of this core.
void bind_extents(MatmulState &state) {
    const auto bind = [](StoredMatrix &matrix, uint64_t rows, uint64_t columns) {
        matrix.rows = matrix.transposed ? columns : rows;
        matrix.columns = matrix.transposed ? rows : columns;
    };
    const bool global_a = state.a.space == Space::Gm, global_b = state.b.space == Space::Gm;
    bind(state.a, global_a ? state.original_m : state.single.m, global_a ? state.original_ka : state.single.k);
    bind(state.b, global_b ? state.original_kb : state.single.k, global_b ? state.original_n : state.single.n);
    bind(state.bias, 1, state.bias.space == Space::Gm ? state.original_n : state.single.n);
    bind(state.result, state.original_m, state.original_kc ? state.original_kc : state.original_n);
}

void require_operands(const MatmulState &state, const char *call) {
    if (state.a.base == nullptr || state.b.base == nullptr) {
        fault(FaultKind::RuntimeFault, call, "SetTensorA and SetTensorB have to be called first");
    }
    if (state.single.m == 0 || state.single.n == 0 || state.single.k == 0) {
        fault(FaultKind::RuntimeFault, call, "multiplies %u x %u x %u elements: Init or SetSingleShape has to give extents first",
              state.single.m, state.single.n, state.single.k);
    }
}

// Vector cores that share both operands (IBShare) find one result, in global memory: the documentation allows no other way to it
// (asc-devkit, guide: IBShare of A and B).
void require_shared_way(const MatmulState &state, const char *call, bool allowed) {
    if (!state.shared_by_group || allowed) return;
    fault(FaultKind::RuntimeFault, call, "both operands are shared (IBShare): their result comes by IterateAll, to global memory");
}

// ---- results ----

template <typename Sum>
void start_sums(const MatmulState &state, const ResultBlock &block, Sum *sums, size_t row) {
    for (uint32_t i = 0; i < block.rows; ++i) std::fill_n(sums + i * row, block.columns, Sum{0});
    if (!state.has_bias) return;
    const MatrixPart part{0, block.n, 1, block.columns};
    checked_part("Matmul bias", state.bias, part, false);
    read_part(state.bias, part, sums, row, false);
    for (uint32_t i = 1; i < block.rows; ++i) std::copy_n(sums, block.columns, sums + i * row);
}

template <typename Sum>
void read_operand(const MatmulState &state, const StoredMatrix &matrix, const MatrixPart &part, std::vector<Sum> &slab, size_t row) {
    checked_part("Matmul", matrix, part, false);
    slab.resize(size_t{part.rows} * part.columns);
    read_part(matrix, part, slab.data(), row, matrix.transposed);
    if constexpr (std::is_same_v<Sum, float>) {
        if (state.hf32 && matrix.type == NumberType::F32) round_to_hf32(slab.data(), slab.size(), state.hf32_ties_away);
    }
}

template <typename Sum>
void multiply(const MatmulState &state, const ResultBlock &block, Sum *sums, size_t row) {
    static std::vector<Sum> a, b;
    for (uint32_t k = 0; k < state.single.k; k += kDepth) {
        const uint32_t depth = std::min(kDepth, state.single.k - k);
        read_operand(state, state.a, stored_part(state.a, block.m, block.rows, k, depth), a, depth);
        read_operand(state, state.b, stored_part(state.b, k, depth, block.n, block.columns), b, block.columns);
        gemm(sums, row, a.data(), depth, b.data(), block.columns, {block.rows, block.columns, depth});
    }
}

ResultStore store_of(const MatmulState &state, const ResultBlock &block, const MatmulTarget &target) {
    ResultStore store = state.store;
    store.atomic = target.atomic;
    store.first_column = block.n;
    return store;
}

template <typename Sum>
void write_block(const MatmulState &state, const ResultBlock &block, const MatmulTarget &target, const Sum *sums, size_t row) {
    const BlockPlace place = place_of(state, block, target);
    checked_part("Matmul result", place.matrix, place.part, true);
    const uint64_t *const parameters = state.store.quantisation.vector;
    if (parameters != nullptr) checked_gm("SetQuantVector", parameters + block.n, block.columns * sizeof *parameters, false);
    write_part(place.matrix, place.part, sums, row, store_of(state, block, target));
}

template <typename Sum>
void compute_all(const MatmulState &state, const MatmulTarget &target, uint32_t rows, uint32_t columns) {
    static std::vector<Sum> sums;
    MatmulTarget place = target;
    for (uint32_t n = 0; n < state.single.n; n += columns) {
        for (uint32_t m = 0; m < state.single.m; m += rows) {
            const ResultBlock block{m, n, std::min(rows, state.single.m - m), std::min(columns, state.single.n - n)};
            sums.resize(size_t{block.rows} * block.columns);
            start_sums(state, block, sums.data(), block.columns);
            multiply(state, block, sums.data(), block.columns);
            write_block(state, block, place, sums.data(), block.columns);
        }
    }
}

template <typename Sum>
void compute_sequential(const MatmulState &state, MatmulTarget target) {
    std::vector<Sum> sums(size_t{state.blocks.base.m} * state.blocks.base.n);
    const uint64_t block_bytes = sums.size() * type_bits(state.result.type) / 8;
    for (uint32_t index = 0; index < block_count(state); ++index, target.base += block_bytes) {
        const ResultBlock block = block_at(state, index);
        start_sums(state, block, sums.data(), block.columns);
        multiply(state, block, sums.data(), block.columns);
        write_block(state, block, target, sums.data(), block.columns);
    }
}

// ---- the cube core ----

// Two vector cores that share a cube core are served in turn.
void let_others_run() {
    if (block().sub_count < 2) return;
    wait_until("Matmul", "its turn", [parked = false]() mutable {
        const bool turn = parked;
        parked = true;
        return turn;
    });
}

// Where both operands are shared (IBShare), the first vector core of a group asks for all of them: the others find the
// result in global memory.
bool served_by_first(const MatmulState &state) { return state.shared_by_group && !on_cube_core() && block().sub_index > 0; }

void tell_result(const MatmulState &state, Block &caller) {
    const uint32_t others = state.shared_by_group ? caller.sub_count : 0;
    direct_set(Pipe::FIX, caller, kResultFlag + caller.sub_index);
    for (uint32_t i = 1; i < others; ++i) direct_set(Pipe::FIX, *group_block(CoreKind::Vector, i), kResultFlag + i);
}

void await_result(MatmulState &state, MatmulWait wait) {
    if (wait == MatmulWait::Later) ++state.unread_results;
    if (wait != MatmulWait::Now) return;
    await_cross_core(kResultFlag + block().sub_index);
    let_others_run();
}

// Does `work` on the cube core: this one, or that of the group of this vector core, which gets a message.
void on_cube(MatmulState &state, MatmulWait wait, const std::function<void()> &work) {
    if (on_cube_core()) return work();
    Block *const cube = group_block(CoreKind::Cube, 0);
    if (cube == nullptr) {
        fault(FaultKind::RuntimeFault, "Matmul", "there is no cube core: the task type of the kernel starts vector cores only");
    }
    Block &caller = block();
    count_scalar(ScalarClass::Access, kMessageAccesses);
    direct_set(Pipe::MTE3, *cube, kRequestFlag + caller.sub_index);
    run_as(*cube, [&] {
        count_scalar(ScalarClass::Access, kMessageAccesses);
        await_cross_core(kRequestFlag + caller.sub_index);
        work();
        if (wait != MatmulWait::Never) tell_result(state, caller);
    });
    await_result(state, wait);
}

// The block in L0C.
template <typename Sum>
Sum *sums_of(MatmulState &state) {
    const size_t elements = size_t{state.blocks.base.m} * state.blocks.base.n;
    const auto with_room = [elements](auto &sums) {
        if (sums.size() < elements) {
            kernel_objects().take("Matmul", (elements - sums.size()) * sizeof(Sum));
            std::vector<Sum>(elements).swap(sums);
            forget_sums(sums);
        }
        return sums.data();
    };
    if constexpr (std::is_same_v<Sum, float>) return with_room(state.sums);
    else return with_room(state.integer_sums);
}

template <typename Sum>
void iterate_sums(MatmulState &state, const ResultBlock &block, bool accumulate) {
    Sum *const sums = sums_of<Sum>(state);
    take_l0c(state);
    const size_t row = state.blocks.base.n;
    if (!accumulate) start_sums(state, block, sums, row);
    multiply(state, block, sums, row);
}

// What lies in L1 is given up after the last block, as by the published library (scheduler_mdl_base.h, MoveOnIterateOrderM;
// scheduler_norm_base.h): the operands may hold other numbers when they are multiplied again.
void restart(MatmulState &state) {
    state.next_block = 0;
    state.l1_bytes = 0;
    state.forget_l1();
}

bool advance(MatmulState &state, bool accumulate) {
    if (state.next_block >= block_count(state)) {
        restart(state);
        return false;
    }
    const ResultBlock block = block_at(state, state.next_block);
    state.remembers_parts = true;
    if (state.next_block == 0) {
        take_l1(state);
        send_and_remember(state);
    } else {
        check_sent(state);
    }
    ++state.next_block;
    on_cube(state, MatmulWait::Never, [&] { trace_multiplication(state, block, accumulate); });
    if (state.next_block == block_count(state)) state.l1_bytes = 0;
    integers(state) ? iterate_sums<int32_t>(state, block, accumulate) : iterate_sums<float>(state, block, accumulate);
    return true;
}

constexpr uint32_t kMostObjects = 4096;     // of a block at a time

uint64_t kept_bytes(const MatmulState &state) {
    const uint64_t sent = state.sent_a.size() + state.sent_b.size() + state.sent_bias.size();
    return sizeof state + state.sums.size() * sizeof(float) + state.integer_sums.size() * sizeof(int32_t) + sent;
}

MatmulState &state_of(uint32_t object) {
    auto &objects = kernel_objects().matmuls;
    if (object == 0 || object > objects.size() || !objects[object - 1]) {
        fault(FaultKind::RuntimeFault, "Matmul", "there is no such object: it has ended, or was never made");
    }
    return *objects[object - 1];
}

}  // namespace

uint32_t matmul_create() {
    auto &objects = kernel_objects().matmuls;
    auto place = std::find(objects.begin(), objects.end(), nullptr);
    if (place == objects.end()) {
        if (objects.size() == kMostObjects) fault(FaultKind::ResourceLimit, "Matmul", "a block has at most %u objects at a time", kMostObjects);
        place = objects.emplace(objects.end());
    }
    kernel_objects().take("Matmul", sizeof(MatmulState));
    *place = std::make_unique<MatmulState>();
    return static_cast<uint32_t>(place - objects.begin()) + 1;
}

void matmul_destroy(uint32_t object) {
    kernel_objects().give_back(kept_bytes(state_of(object)));
    kernel_objects().matmuls[object - 1].reset();
}

void matmul_restart(uint32_t object) { restart(state_of(object)); }

bool matmul_iterate(uint32_t object, MatmulProblem problem, bool accumulate, bool asynchronous) {
    MatmulState &state = state_of(object);
    state.take("Iterate", problem);
    if (!active(state)) return false;
    require_shared_way(state, "Iterate", false);
    require_operands(state, "Iterate");
    bind_extents(state);
    state.asynchronous = asynchronous;
    if (asynchronous) state.cached_bytes = 0;
    return asynchronous || advance(state, accumulate);
}

namespace {

void fetch(MatmulState &state, const MatmulTarget &target, bool again) {
    check_target("GetTensorC", state, target);
    if (state.asynchronous && !again && !advance(state, false)) {
        fault(FaultKind::RuntimeFault, "GetTensorC", "all blocks of the result have been fetched");
    }
    if (state.next_block == 0 || state.next_block > block_count(state)) {
        fault(FaultKind::RuntimeFault, "GetTensorC", "Iterate has to be called first");
    }
    const ResultBlock block = block_at(state, state.next_block - 1);
    const BlockPlace place = place_of(state, block, target);
    on_cube(state, MatmulWait::Now, [&] { trace_result(state, block, place, target.atomic); });
    receive_result(place);
    const size_t row = state.blocks.base.n;
    integers(state) ? write_block(state, block, target, sums_of<int32_t>(state), row)
                    : write_block(state, block, target, sums_of<float>(state), row);
}

}  // namespace

void matmul_fetch(uint32_t object, MatmulProblem problem, MatmulTarget target, bool again) {
    MatmulState &state = state_of(object);
    state.take("GetTensorC", problem);
    bind_extents(state);
    if (active(state)) fetch(state, target, again);
}

uint8_t *matmul_fetch_cached(uint32_t object, MatmulProblem problem) {
    MatmulState &state = state_of(object);
    state.take("GetTensorC", problem);
    bind_extents(state);
    if (!active(state)) return nullptr;
    if (state.cached_results == nullptr) {
        fault(FaultKind::RuntimeFault, "GetTensorC", "SetWorkspace has to give room for the blocks first");
    }
    MatmulTarget target;
    target.base = state.cached_results + state.cached_bytes;
    target.sequential = true;
    fetch(state, target, false);
    state.cached_bytes += uint64_t{state.blocks.base.m} * state.blocks.base.n * type_bits(state.result.type) / 8;
    return target.base;
}

namespace {

void multiply_all(MatmulState &state, const MatmulTarget &target, MatmulWait wait) {
    require_shared_way(state, "IterateAll", target.space == Space::Gm);
    if (served_by_first(state)) return await_result(state, wait);
    require_operands(state, "IterateAll");
    bind_extents(state);
    state.forget_l1();
    state.remembers_parts = false;
    take_l1(state);
    send_operands(state);
    on_cube(state, wait, [&] {
        MatmulTarget place = target;
        for (uint32_t index = 0; index < block_count(state); ++index) {
            const ResultBlock block = block_at(state, index);
            trace_multiplication(state, block, false);
            trace_result(state, block, place_of(state, block, place), target.atomic);
            if (target.sequential) place.base += uint64_t{state.blocks.base.m} * state.blocks.base.n * type_bits(state.result.type) / 8;
        }
    });
    receive_result(place_of(state, {0, 0, state.single.m, state.single.n}, target));
    const bool sums_are_integers = integers(state);
    if (target.sequential) {
        sums_are_integers ? compute_sequential<int32_t>(state, target) : compute_sequential<float>(state, target);
    } else {
        sums_are_integers ? compute_all<int32_t>(state, target, kExtent, kExtent) : compute_all<float>(state, target, kExtent, kExtent);
    }
    restart(state);
}

}  // namespace

void matmul_all(uint32_t object, MatmulProblem problem, MatmulTarget target, MatmulWait wait) {
    MatmulState &state = state_of(object);
    state.take("IterateAll", problem);
    check_target("IterateAll", state, target);
    if (active(state)) multiply_all(state, target, wait);
}

void matmul_batches(uint32_t object, MatmulProblem problem, MatmulTarget target, MatmulBatches batches, MatmulWait wait) {
    MatmulState &state = state_of(object);
    state.take("IterateBatch", problem);
    check_target("IterateBatch", state, target);
    if (batches.a == 0 || batches.b == 0) fault(FaultKind::RuntimeFault, "IterateBatch", "multiplies %u batches by %u", batches.a, batches.b);
    if (!active(state)) return;
    bind_extents(state);
    uint8_t *const a = state.a.base, *const b = state.b.base;
    const auto distance = [](const StoredMatrix &matrix, uint64_t stride) {
        return (stride ? stride : matrix.rows * matrix.columns) * type_bits(matrix.type) / 8;
    };
    const uint64_t a_bytes = distance(state.a, batches.stride_a), b_bytes = distance(state.b, batches.stride_b);
    const uint64_t c_bytes = distance(state.result, batches.stride_c);
    for (uint32_t batch = 0; batch < std::max(batches.a, batches.b); ++batch) {
        state.a.base = a + batch % batches.a * a_bytes;
        state.b.base = b + batch % batches.b * b_bytes;
        MatmulTarget place = target;
        place.base += batch * c_bytes;
        restart(state);
        multiply_all(state, place, batch + 1 == std::max(batches.a, batches.b) ? wait : MatmulWait::Never);
    }
    state.a.base = a;
    state.b.base = b;
}

void matmul_wait(uint32_t object) {
    MatmulState &state = state_of(object);
    if (on_cube_core() || state.unread_results == 0) return;
    --state.unread_results;
    await_cross_core(kResultFlag + block().sub_index);
    let_others_run();
}

bool serves_vector_cores() { return on_cube_core() && group_block(CoreKind::Vector, 0) != nullptr; }

}  // namespace asim

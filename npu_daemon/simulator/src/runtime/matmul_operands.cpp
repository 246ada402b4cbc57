// Room of Matmul objects beside each other in L1 and L0C, and what becomes of operands in the unified buffer of a vector core.
#include <algorithm>
#include <utility>
#include <vector>

#include "asim/machine/fault.h"
#include "asim/machine/kernel_objects.h"
#include "asim/machine/scheduler.h"
#include "matmul_trace.h"
#include "matrix_copies.h"

namespace asim {

namespace {

// The library leaves nothing of what the kernel kept in L1 beyond its own buffers, nor in L0A and L0B, which it takes as a whole.
void overwrite(const Block &cube, uint64_t l1_bytes) {
    const auto lose = [&](Space space, uint64_t first, uint64_t bytes) {
        const LocalMemory &memory = cube.memories[static_cast<uint32_t>(space)];
        std::memset(memory.base + first, rerun().poison, std::min<uint64_t>(bytes, memory.bytes - first));
    };
    lose(Space::L1, cube.memories[static_cast<uint32_t>(Space::L1)].used_bytes, l1_bytes);
    for (const Space space : {Space::L0A, Space::L0B}) lose(space, 0, ~uint64_t{0});
}

}  // namespace

// Operands in L1 lie beside the kernel's own buffers and those of other objects, as all of them take room from one TPipe (published source:
// cube_in_buffer_double_buffer.h and its neighbours). There an object takes it for good; here it does while it is multiplying, as plans are
// ours, and those of operators that run on the device would not all fit.
void take_l1(MatmulState &state) {
    const Block *const cube = on_cube_core() ? &block() : group_block(CoreKind::Cube, 0);
    const uint64_t room = launch_shape().memory_bytes[static_cast<uint32_t>(Space::L1)];
    if (cube == nullptr || room == 0) return;
    state.l1_bytes = l1_bytes_of(state);
    const uint64_t own = state.l1_bytes, buffers = cube->memories[static_cast<uint32_t>(Space::L1)].used_bytes;
    const uint64_t all = kernel_objects().l1_bytes(), others = all - own;
    if (all + buffers <= room) return overwrite(*cube, all);
    fault(FaultKind::RuntimeFault, "Matmul", "the plan keeps %llu bytes of both operands and the bias in L1 (depthA1, depthB1, baseM, baseN, baseK), which has "
          "%llu, of which other Matmul objects take %llu and buffers of the kernel %llu: use smaller depths, or give each plan its part by SetBufferSpace",
          static_cast<unsigned long long>(own), static_cast<unsigned long long>(room), static_cast<unsigned long long>(others),
          static_cast<unsigned long long>(buffers));
}

namespace {

// Of the blocks that an object has in L0C; 0 before its first one.
uint64_t l0c_bytes_of(const MatmulState &state) {
    if (state.sums.empty() && state.integer_sums.empty()) return 0;
    const GemmExtents &base = state.blocks.base;
    return uint64_t{align_up(base.m, kFractalRows)} * align_up(base.n, kFractalRows) * sizeof(float) * state.blocks.l0c_buffers;
}

}  // namespace

void take_l0c(const MatmulState &state) {
    const uint64_t room = launch_shape().memory_bytes[static_cast<uint32_t>(Space::L0C)];
    uint64_t taken = 0;
    for (const auto &object : kernel_objects().matmuls) taken += object ? l0c_bytes_of(*object) : 0;
    if (room == 0 || taken <= room) return;
    for (const auto &object : kernel_objects().matmuls) {
        if (!object || object.get() == &state) continue;
        forget_sums(object->sums);
        forget_sums(object->integer_sums);
    }
}

namespace {

struct Sent {
    const char *name;
    const StoredMatrix &matrix;
    std::vector<uint8_t> &bytes;
};

// Operands of the running vector core that the cube core finds in global memory, as they were when the first block was asked for.
std::vector<Sent> sent_operands(MatmulState &state) {
    std::vector<Sent> sent;
    const auto add = [&](const char *name, const StoredMatrix &matrix, std::vector<uint8_t> &bytes) {
        if (!on_cube_core() && matrix.space == Space::Ub) sent.push_back({name, matrix, bytes});
    };
    add("left operand", state.a, state.sent_a);
    add("right operand", state.b, state.sent_b);
    if (state.has_bias) add("bias", state.bias, state.sent_bias);
    return sent;
}

std::vector<uint8_t> bytes_of(const StoredMatrix &matrix) {
    return asim::bytes_of(matrix, {0, 0, static_cast<uint32_t>(matrix.rows), static_cast<uint32_t>(matrix.columns)});
}

}  // namespace

void send_and_remember(MatmulState &state) {
    send_operands(state);
    for (const Sent &operand : sent_operands(state)) {
        std::vector<uint8_t> bytes = bytes_of(operand.matrix);
        kernel_objects().give_back(operand.bytes.size());
        operand.bytes.clear();
        kernel_objects().take("Matmul", bytes.size());
        operand.bytes = std::move(bytes);
    }
}

void check_sent(MatmulState &state) {
    for (const Sent &operand : sent_operands(state)) {
        if (bytes_of(operand.matrix) == operand.bytes) continue;
        fault(FaultKind::RuntimeFault, "Iterate",
              "the %s has changed in the unified buffer since it was sent to the cube core, which multiplies what was sent: change it after the last "
              "block, or begin anew with SetTensorA, SetTensorB or SetBias", operand.name);
    }
}

}  // namespace asim

// Room in L1 for the operands of a Matmul object, and what becomes of those in the unified buffer of a vector core.
#include <utility>
#include <vector>

#include "asim/machine/fault.h"
#include "asim/machine/kernel_objects.h"
#include "asim/machine/scheduler.h"
#include "matmul_trace.h"

namespace asim {

// Operands in L1 lie beside those of the kernel's other objects and its own buffers, as all of them take room from one TPipe (published
// source: cube_in_buffer_double_buffer.h and its neighbours).
void take_l1(MatmulState &state) {
    const Block *const cube = on_cube_core() ? &block() : group_block(CoreKind::Cube, 0);
    const uint64_t room = launch_shape().memory_bytes[static_cast<uint32_t>(Space::L1)];
    if (cube == nullptr || room == 0) return;
    state.l1_bytes = l1_bytes_of(state);
    const uint64_t own = state.l1_bytes, buffers = cube->memories[static_cast<uint32_t>(Space::L1)].used_bytes;
    uint64_t others = 0;
    for (const auto &object : kernel_objects().matmuls) others += object && object.get() != &state ? object->l1_bytes : 0;
    if (own + others + buffers <= room) return;
    fault(FaultKind::RuntimeFault, "Matmul", "the plan keeps %llu bytes of both operands and the bias in L1 (depthA1, depthB1, baseM, baseN, baseK), which has "
          "%llu, of which other Matmul objects take %llu and buffers of the kernel %llu: use smaller depths, or give each plan its part by SetBufferSpace",
          static_cast<unsigned long long>(own), static_cast<unsigned long long>(room), static_cast<unsigned long long>(others),
          static_cast<unsigned long long>(buffers));
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

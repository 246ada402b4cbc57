#include "asim/machine/core.h"

#include "asim/machine/block.h"
#include "asim/machine/buffer_flags.h"
#include "asim/machine/fault.h"
#include "asim/machine/queue_state.h"

namespace asim {

uint32_t block_index() { return block().index; }
uint32_t block_count() { return block().count; }
uint32_t sub_block_index() { return block().sub_index; }
uint32_t sub_block_count() { return block().sub_count; }

uint8_t *local_memory(Space space) {
    const auto index = static_cast<uint32_t>(space);
    if (index >= kSpaceCount) fault(FaultKind::RuntimeFault, "LocalTensor", "there is no memory of number %u", index);
    return space == Space::Ub ? block().ub : block().memories[index].base;
}

void begin_pipe(void *pipe) {
    reset_buffers();
    forget_event_ids();
    block().pipe = pipe;
}

void *current_pipe() { return block().pipe; }

void reset_pipe() {
    wait_for_freed_buffers();
    reset_buffers();
    forget_event_ids();
}

}  // namespace asim

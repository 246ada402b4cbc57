// What a multiplication makes a cube core do, block by block.
#pragma once
#include <cstring>
#include <vector>

#include "asim/machine/rerun.h"
#include "asim/semantics/matmul_state.h"

namespace asim {

// One block of the result, in elements of the part of this core.
struct ResultBlock {
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t rows = 0;
    uint32_t columns = 0;
};

uint32_t block_count(const MatmulState &state);
ResultBlock block_at(const MatmulState &state, uint32_t index);

// The part of an operand, as it is stored, that the logical part [row, row + rows) x [column, ...) lies in.
MatrixPart stored_part(const StoredMatrix &matrix, uint32_t row, uint32_t rows, uint32_t column, uint32_t columns);

// StoredMatrix and part that a block is written to.
struct BlockPlace {
    StoredMatrix matrix;
    MatrixPart part;
};
BlockPlace place_of(const MatmulState &state, const ResultBlock &block, const MatmulTarget &target);

// Bytes of L1 that the plan takes. `take_l1` faults if they do not fit beside what else the kernel keeps there.
uint64_t l1_bytes_of(MatmulState &state);
void take_l1(MatmulState &state);

// The object has a block in L0C. Those of other objects are lost if there is no room for all of them.
void take_l0c(const MatmulState &state);

// Sums that nobody has begun hold what memory does that was never written.
template <typename Sum>
void forget_sums(std::vector<Sum> &sums) {
    std::memset(static_cast<void *>(sums.data()), rerun().poison, sums.size() * sizeof(Sum));
}

// Traces of the running core: operands of a block and its multiplications; its way out of L0C.
void trace_multiplication(MatmulState &state, const ResultBlock &block, bool accumulate);
void trace_result(MatmulState &state, const ResultBlock &block, const BlockPlace &place, AtomicMode atomic);
// What a vector core does for its cube core, nothing on a cube core: it copies operands in its unified buffer to where the two
// meet in global memory, and a result that comes back there.
void send_operands(const MatmulState &state);
void receive_result(const BlockPlace &place);
// Likewise, where the kernel's own code runs between blocks: what it sends has to stay as it is until the last one.
void send_and_remember(MatmulState &state);
void check_sent(MatmulState &state);

}  // namespace asim

// One of the two operands of a Matmul object on its way from global memory to the cube.
#pragma once
#include "asim/machine/call_sync.h"
#include "asim/semantics/matmul_state.h"
#include "asim/trace/record.h"

namespace asim {

// Flags of the library's buffers: parts in L1 of either operand, the halves of L0, and the bias.
constexpr uint32_t kL1Flag = 2 * kCallFlag;
constexpr uint32_t kL0Flag = kL1Flag + 2 * L1Cache::kMostParts;
constexpr uint32_t kBiasFlag = kL0Flag + 2;             // of the bias in L1
constexpr uint32_t kBiasTableFlag = kBiasFlag + 1;

// A buffer that one pipe fills and another empties: the next filling waits for the latest emptying.
inline void begin_filling(bool &emptied, Pipe filler, Pipe reader, uint32_t flag) {
    if (emptied) wait_buffer_flag(reader, filler, flag);
    emptied = false;
}

inline void end_filling(Pipe filler, Pipe reader, uint32_t flag) {
    set_buffer_flag(filler, reader, flag);
    wait_buffer_flag(filler, reader, flag);
}

inline void end_emptying(bool &emptied, Pipe filler, Pipe reader, uint32_t flag) {
    if (!emptied) set_buffer_flag(reader, filler, flag);
    emptied = true;
}

// Where the rows of a part of an operand begin (of the right operand: its columns), and how many they are.
struct OperandRows {
    uint32_t first;
    uint32_t count;
};

// What is copied when follows the published source (asc-devkit impl/adv_api/detail/matmul): MDL copies as many base blocks at a
// time as the plan says, along k and across it (scheduler_mdl_common.h), Norm one (scheduler_norm.h, cube_in_buffer_normal.h).
class OperandPath {
public:
    OperandPath(MatmulState &state, bool left, uint64_t l1_base);

    // Bytes of L1 that the library takes up to the end of this operand's; it fits only if the plan does.
    uint64_t l1_end() const { return lies_in_l1() ? l1_base_ : l1_base_ + uint64_t{cache_.capacity} * part_bytes(); }

    // Before the first base block along k: Norm gives up what stays in L1, unless these rows still need it.
    void begin_block(const OperandRows &rows);

    // Traces the copy of the part that holds base block `k_block`, if it is not in L1, and the wait of MTE1 for it.
    void bring(const OperandRows &rows, uint32_t k_block);

    // Traces the copy of the rows that come next, where there is a second buffer for all of k.
    void bring_ahead(const OperandRows &rows);

    // Traces the copies from L1 to L0; returns where the base block lies then.
    Operand load(const OperandRows &rows, uint32_t k_block);

    // After the last base block of a part, or of k, its place in L1 is free.
    void release(uint32_t k_block);

private:
    static constexpr uint32_t kNone = ~0u;

    bool one_by_one() const { return state_.one_block_a_copy; }
    bool remembers() const { return state_.remembers_parts && matrix_.space == Space::Gm; }
    bool lies_in_l1() const { return matrix_.space == Space::L1; }  // by the kernel's own copies, or as the result of a product
    uint32_t rounds() const;
    uint32_t k_extent(uint32_t k_block, uint32_t blocks) const;
    uint32_t load_count(uint32_t k) const;
    uint32_t l1_flag(uint32_t place) const { return kL1Flag + (left_ ? 0 : L1Cache::kMostParts) + place; }
    uint64_t part_bytes() const { return uint64_t{step_} * across_ * block_bytes_; }
    uint64_t l1_address(uint32_t place) const { return l1_base_ + place * part_bytes(); }
    MatrixPart stored(const OperandRows &rows, uint32_t first_k, uint32_t k) const;
    Operand origin_of_load(const OperandRows &rows, uint32_t k_block, uint64_t offset, uint64_t bytes) const;
    OperandRows copied_with(const OperandRows &rows) const;
    void set_places(uint32_t depth);
    uint32_t find(uint64_t name) const;
    uint32_t next_place(uint32_t part);
    uint32_t in_l1(const OperandRows &rows, uint32_t part);
    void await_copy(uint32_t place);
    MatrixPart copied_part(const OperandRows &rows, uint32_t part) const;
    void check_unchanged(const OperandRows &copied, uint32_t part, uint32_t place) const;
    void copy_to_l1(const OperandRows &rows, uint32_t part, uint64_t address);

    MatmulState &state_;
    const StoredMatrix &matrix_;
    L1Cache &cache_;
    uint32_t &turn_;
    bool left_;
    uint64_t l1_base_;
    uint32_t step_, across_, l0_buffers_;   // base blocks of a copy along k, and of rows or columns
    uint64_t block_bytes_;
    uint32_t place_ = 0;
};

}  // namespace asim

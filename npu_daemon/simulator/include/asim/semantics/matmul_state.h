// The Matmul object at work: how far it has got, and what that makes the cube core do.
//
// Results come from whole blocks of the matrices at once. What a cube core would be told (copies to L1 and L0, multiplications of
// base blocks, copies out of L0C) goes into its trace block by block, as the plan says.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "asim/semantics/matmul.h"
#include "asim/semantics/matrix.h"

namespace asim {

// Which parts of an operand lie in L1, each of some base blocks: those that stay while their rows are multiplied, and the latest
// of a few.
struct L1Cache {
    static constexpr uint32_t kMostParts = 64;

    uint32_t capacity = 1;
    uint32_t resident = 0;              // places of parts that stay
    uint32_t resident_rows = 0;         // where their rows begin, and 1; 0 for none
    bool resident_filled = false;       // some have been copied since all were given up
    uint32_t next = 0;
    uint64_t parts[kMostParts] = {};    // 0 for none
    bool emptied[kMostParts] = {};      // MTE1 has raised the flag that it is done with the part
    bool copying[kMostParts] = {};      // MTE1 has not waited for the copy of it
    std::vector<uint8_t> held[kMostParts];  // what a part held when it was copied, where the kernel goes on before it is used again

    void forget() {
        std::fill(std::begin(parts), std::end(parts), 0);
        next = resident_rows = 0;
        for (std::vector<uint8_t> &bytes : held) std::vector<uint8_t>().swap(bytes);
    }
};

struct MatmulState : MatmulProblem {
    ResultStore store;
    // progress
    uint32_t next_block = 0;
    bool asynchronous = false;
    uint32_t unread_results = 0;        // of calls that are to be waited for
    uint64_t cached_bytes = 0;          // of blocks in the workspace for them
    std::vector<float> sums;            // the block in L0C, in rows of base.n
    std::vector<int32_t> integer_sums;  // likewise, of integers
    // the trace
    L1Cache cache_a, cache_b;
    std::vector<uint8_t> sent_a, sent_b, sent_bias;     // what operands in the unified buffer held when they were sent
    uint64_t l1_bytes = 0;              // that its plan takes, from the first block of a product to the last
    bool remembers_parts = false;       // the kernel's own code runs between blocks
    bool bias_emptied = false;          // MTE1 has raised the flag that it is done with the bias in L1
    bool bias_table_emptied = false;    // likewise the cube with the bias table
    uint32_t turn_a = 0, turn_b = 0, turn_c = 0;
    bool l0_emptied[2] = {};            // likewise the cube with a half of L0A and L0B

    // Takes over what the kernel says, if the chip can do it: a fault with the call's name if not.
    void take(const char *call, const MatmulProblem &problem);
    // Operands are copied to L1 again.
    void forget_l1() {
        cache_a.forget();
        cache_b.forget();
    }
};

// A fault if a result cannot go there.
void check_target(const char *call, const MatmulState &state, const MatmulTarget &target);

}  // namespace asim

// What belongs to objects of a kernel and is kept for it: the kernel's own code holds numbers of them only.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "asim/api/shape_info.h"
#include "asim/machine/queue_state.h"
#include "asim/semantics/matmul_state.h"

namespace asim {

// What the simulator keeps for the objects of all blocks that are under way; a launch that wants more ends. Matmul objects with a whole
// L0C each, two on every core of a 910B2, are 19 MiB.
constexpr uint64_t kMostObjectBytes = 256ull << 20;

class KernelObjects {
public:
    KernelObjects() = default;
    KernelObjects(const KernelObjects &) = delete;
    ~KernelObjects();

    std::vector<Queue> queues;                              // by number, from 1 on
    std::deque<std::unique_ptr<MatmulState>> matmuls;       // likewise; null for those that have ended
    std::map<const void *, AscendC::ShapeInfo> shapes;      // noted for tensors, by where they start

    std::map<const void *, int32_t> tags;                   // likewise

    // Called before memory is taken for an object, and after it is given back.
    void take(const char *call, uint64_t bytes);
    void give_back(uint64_t bytes);

    // Bytes of L1 that Matmul objects take.
    uint64_t l1_bytes() const {
        uint64_t bytes = 0;
        for (const std::unique_ptr<MatmulState> &matmul : matmuls) bytes += matmul ? matmul->l1_bytes : 0;
        return bytes;
    }

    // The TPipe that Matmul objects have taken L1 from begins anew.
    void release_l1();

private:
    uint64_t taken_bytes_ = 0;
};

// Those of the running block; they end with it.
KernelObjects &kernel_objects();

}  // namespace asim

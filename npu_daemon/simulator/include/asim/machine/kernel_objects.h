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

struct KernelObjects {
    std::vector<Queue> queues;                              // by number, from 1 on
    std::deque<std::unique_ptr<MatmulState>> matmuls;       // likewise; null for those that have ended
    std::map<const void *, AscendC::ShapeInfo> shapes;      // noted for tensors, by where they start
};

// Those of the running block; they end with it.
KernelObjects &kernel_objects();

}  // namespace asim

#include "asim/machine/kernel_objects.h"

#include "asim/machine/block.h"
#include "asim/machine/kernel_memory.h"

namespace asim {

KernelObjects &kernel_objects() {
    std::shared_ptr<KernelObjects> &objects = block().objects;
    if (!objects) objects = std::make_shared<KernelObjects>();
    return *objects;
}

void note_shape(const void *base, AscendC::ShapeInfo shape) { kernel_objects().shapes[base] = shape; }

void noted_shape(const void *base, AscendC::ShapeInfo *shape) {
    kernel_access(shape, sizeof *shape, true);
    const auto &shapes = kernel_objects().shapes;
    const auto found = shapes.find(base);
    *shape = found == shapes.end() ? AscendC::ShapeInfo{} : found->second;
}

}  // namespace asim

#include "asim/machine/kernel_objects.h"

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"

namespace asim {

namespace {

constexpr uint64_t kShapeBytes = 128;       // of a node of the map

uint64_t g_taken_bytes = 0;                 // by the objects of all blocks

}  // namespace

KernelObjects::~KernelObjects() { g_taken_bytes -= taken_bytes_; }

void KernelObjects::take(const char *call, uint64_t bytes) {
    if (bytes > kMostObjectBytes - g_taken_bytes) {
        fault(FaultKind::ResourceLimit, call,
              "the objects of the kernel (queues, Matmul objects, shapes of tensors) take more than %llu MiB: make them once, before the loop",
              static_cast<unsigned long long>(kMostObjectBytes >> 20));
    }
    g_taken_bytes += bytes;
    taken_bytes_ += bytes;
}

void KernelObjects::give_back(uint64_t bytes) {
    g_taken_bytes -= bytes;
    taken_bytes_ -= bytes;
}

void KernelObjects::release_l1() {
    for (const std::unique_ptr<MatmulState> &matmul : matmuls) {
        if (!matmul) continue;
        matmul->l1_bytes = 0;
        matmul->forget_l1();
    }
}

KernelObjects &kernel_objects() {
    std::shared_ptr<KernelObjects> &objects = block().objects;
    if (!objects) objects = std::make_shared<KernelObjects>();
    return *objects;
}

void note_shape(const void *base, AscendC::ShapeInfo shape) {
    KernelObjects &objects = kernel_objects();
    const auto found = objects.shapes.find(base);
    if (found != objects.shapes.end()) {
        found->second = shape;
        return;
    }
    objects.take("SetShapeInfo", kShapeBytes);
    objects.shapes.emplace(base, shape);
}

void note_tag(const void *base, int32_t tag) {
    KernelObjects &objects = kernel_objects();
    if (objects.tags.count(base) == 0) objects.take("SetUserTag", kShapeBytes);
    objects.tags[base] = tag;
}

int32_t noted_tag(const void *base) {
    const auto &tags = kernel_objects().tags;
    const auto found = tags.find(base);
    return found == tags.end() ? 0 : found->second;
}

void noted_shape(const void *base, AscendC::ShapeInfo *shape) {
    kernel_access(shape, sizeof *shape, true);
    const auto &shapes = kernel_objects().shapes;
    const auto found = shapes.find(base);
    *shape = found == shapes.end() ? AscendC::ShapeInfo{} : found->second;
}

}  // namespace asim

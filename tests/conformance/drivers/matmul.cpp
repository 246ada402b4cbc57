// One Matmul object on a cube core, its matrices in global memory.
//
// Call "matmul <a type> <result type> <ND or NZ>": addresses and bytes of a, b, bias (0: none) and result, then the numbers of
// `Problem`. Matrices are copied in before, and the result out afterwards.
#include "machine.h"

#include <cstring>
#include <vector>

#include "asim/machine/cross_core.h"
#include "asim/machine/gm.h"
#include "asim/machine/scheduler.h"
#include "lib/matmul_intf.h"

namespace asim {

Block *group_block(CoreKind, uint32_t) { return nullptr; }
void run_as(Block &, const std::function<void()> &work) { work(); }
void wait_until(const char *, const char *, const std::function<bool()> &) {}
void wait_for_group_end() {}
const LaunchShape &launch_shape() {
    static const LaunchShape shape;     // of a chip whose cube has all the room it wants
    return shape;
}
void direct_set(Pipe, Block &, uint32_t) {}
void await_cross_core(uint32_t) {}

}  // namespace asim

namespace {

using AscendC::GlobalTensor;
using AscendC::TPosition;

enum Mode { kAll, kBlocks, kSequentialBlocks, kPartialSums, kBatches, kTwice };

struct Problem {
    int64_t mode, m, n, k, single_m, single_n, single_k, base_m, base_n, base_k, n_first;
    int64_t transposed_a, transposed_b, offset_a, offset_b, offset_c, atomic, quant, hf32, depth_a, depth_b, step_ka, step_kb, batches, quant_by_column;
};

template <typename T>
struct InGlobalMemory {
    InGlobalMemory(const int64_t *argument, asim::GmRole role) : outside(reinterpret_cast<uint8_t *>(argument[0])) {
        region = &asim::add_gm_region("matrix", role, static_cast<uint64_t>(argument[1]), asim::kOwnAddress);
        base = region->base;
        bytes = region->size_bytes;
        if (outside != nullptr) std::memcpy(base, outside, bytes);
        tensor.SetGlobalBuffer(reinterpret_cast<T *>(base), bytes / sizeof(T));
    }
    void copy_out() const { std::memcpy(outside, base, bytes); }

    uint8_t *outside;
    asim::GmRegion *region;
    uint8_t *base;
    uint64_t bytes;
    GlobalTensor<T> tensor;
};

TCubeTiling plan_of(const Problem &problem) {
    TCubeTiling plan{};
    plan.M = problem.m, plan.N = problem.n, plan.Ka = plan.Kb = problem.k;
    plan.singleCoreM = problem.single_m, plan.singleCoreN = problem.single_n, plan.singleCoreK = problem.single_k;
    plan.baseM = problem.base_m, plan.baseN = problem.base_n, plan.baseK = problem.base_k;
    plan.iterateOrder = problem.n_first;
    plan.stepM = plan.stepN = 1;
    plan.stepKa = problem.step_ka, plan.stepKb = problem.step_kb;
    plan.depthA1 = problem.depth_a, plan.depthB1 = problem.depth_b;
    plan.dbL0A = plan.dbL0B = 2, plan.dbL0C = 1;
    return plan;
}

template <typename Object, typename A, typename B, typename C>
void compute(Object &object, const Problem &problem, const GlobalTensor<A> &a, const GlobalTensor<B> &b, const GlobalTensor<C> &c) {
    const auto atomic = static_cast<uint8_t>(problem.atomic);
    object.SetTensorA(a, problem.transposed_a);
    object.SetTensorB(b, problem.transposed_b);
    switch (problem.mode) {
        case kAll: return object.IterateAll(c, atomic);
        case kBlocks:
            while (object.Iterate()) object.GetTensorC(c, atomic);
            return;
        case kSequentialBlocks: {
            int64_t block = 0;
            while (object.Iterate()) object.GetTensorC(c[block++ * problem.base_m * problem.base_n], atomic, true);
            return;
        }
        case kPartialSums:  // k in two halves, summed up in L0C
            object.SetSingleShape(-1, -1, problem.k / 2);
            object.Iterate(false);
            object.SetTensorA(a[problem.transposed_a ? problem.k / 2 * problem.m : problem.k / 2], problem.transposed_a);
            object.SetTensorB(b[problem.transposed_b ? problem.k / 2 : problem.k / 2 * problem.n], problem.transposed_b);
            object.Iterate(true);
            return object.GetTensorC(c, atomic);
        case kTwice:    // with the same operands
            object.IterateAll(c, atomic);
            return object.IterateAll(c, atomic);
        case kBatches:
            object.SetBatchNum(problem.batches, 1);
            return object.IterateBatch(c, false, atomic, false);
    }
}

template <typename T, typename Result, typename Bias, CubeFormat format>
void multiply(const int64_t *arguments) {
    asim::block().kind = asim::CoreKind::Cube;
    Problem problem;
    std::memcpy(&problem, arguments + 8, sizeof problem);
    InGlobalMemory<T> a(arguments, asim::GmRole::Input), b(arguments + 2, asim::GmRole::Input);
    InGlobalMemory<Result> c(arguments + 6, asim::GmRole::InOut);
    using Input = AscendC::MatmulType<TPosition::GM, format, T, true>;
    using Output = AscendC::MatmulType<TPosition::GM, format, Result>;
    AscendC::MatmulImpl<Input, Input, Output, AscendC::MatmulType<TPosition::GM, CubeFormat::ND, Bias>, CFG_MDL> object;
    const TCubeTiling plan = plan_of(problem);
    object.Init(&plan);
    if (arguments[4] != 0) {
        InGlobalMemory<Bias> bias(arguments + 4, asim::GmRole::Input);
        object.SetBias(bias.tensor);
    }
    const std::vector<uint64_t> parameters(problem.n, static_cast<uint64_t>(problem.quant));
    const int64_t parameters_place[] = {reinterpret_cast<int64_t>(parameters.data()), static_cast<int64_t>(parameters.size() * sizeof(uint64_t))};
    if (problem.quant_by_column != 0) {
        InGlobalMemory<uint64_t> by_column(parameters_place, asim::GmRole::Input);
        object.SetQuantVector(by_column.tensor);
    } else if (problem.quant != 0) {
        object.SetQuantScalar(static_cast<uint64_t>(problem.quant));
    }
    object.SetHF32(problem.hf32 != 0, problem.hf32 == 2 ? 1 : 0);
    compute(object, problem, a.tensor[problem.offset_a], b.tensor[problem.offset_b], c.tensor[problem.offset_c]);
    object.End();
    c.copy_out();
}

template <typename T, typename Result, typename Bias>
void add(const std::string &types) {
    calls()["matmul " + types + " ND"] = multiply<T, Result, Bias, CubeFormat::ND>;
    calls()["matmul " + types + " NZ"] = multiply<T, Result, Bias, CubeFormat::NZ>;
}

const bool g_registered = [] {
    add<half, float, float>("float16 float32");
    add<half, half, half>("float16 float16");
    add<bfloat16_t, float, float>("bfloat16 float32");
    add<float, float, float>("float32 float32");
    add<int8_t, int32_t, int32_t>("int8 int32");
    add<int8_t, half, int32_t>("int8 float16");
    add<half, int8_t, float>("float16 int8");
    return true;
}();

}  // namespace

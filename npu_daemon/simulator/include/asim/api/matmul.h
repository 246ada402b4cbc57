// The Matmul object: multiplies matrices on the cube core.
//
// Matmul hands its calls on a vector core to the cube core of the group; MatmulImpl, and Matmul of pure cube kernels, does
// its work on the cube core itself.
#pragma once
#define ASIM_READ_FIRST     // an error behind text of kernels, whose macros would apply here (kernel_ir/headers.py)
#include "asim/api/matmul_config.h"
#include "asim/api/pipe.h"
#include "asim/machine/core.h"
#include "asim/machine/refusal.h"
#include "asim/semantics/matmul.h"

namespace AscendC {

// True on a cube core that has worked for the vector cores of its group, which have ended by then.
__aicore__ inline bool served_vector_cores() {
    if (!asim::serves_vector_cores()) return false;
    asim::wait_for_group_end();
    return true;
}

template <TPosition position, CubeFormat order, typename Type, bool transposable = false, LayoutMode batches = LayoutMode::NONE,
          bool shared = false, TPosition source = TPosition::GM>
struct MatmulType {
    constexpr static TPosition pos = position;
    constexpr static CubeFormat format = order;
    using T = Type;
    constexpr static bool isTrans = transposable;
    constexpr static LayoutMode layout = batches;
    constexpr static bool ibShare = shared;
    constexpr static TPosition srcPos = source;
};

using MatmulCopyOut = void (*)(const __gm__ void *, const LocalTensor<int8_t> &, const void *, const uint64_t, const uint64_t);
using MatmulCopyIn = void (*)(const LocalTensor<int8_t> &, const __gm__ void *, int, int, int, int, const uint64_t, const uint64_t);

// Copies of the kernel's own instead of the library's.
template <MatmulCopyOut copy_out = nullptr, MatmulCopyIn copy_a = nullptr, MatmulCopyIn copy_b = nullptr>
struct MatmulCallBackFunc {
    constexpr static bool any = copy_out != nullptr || copy_a != nullptr || copy_b != nullptr;
};

// How a multiplication goes about its blocks: as the configuration says, or with all of the left operand kept in L1.
namespace Impl::Detail {

template <const auto &configuration, typename...>
struct MatmulPolicy {
    static constexpr bool kKeepsLeft = false;
};
template <const auto &configuration, typename...>
struct NBuffer33MatmulPolicy {
    static constexpr bool kKeepsLeft = true;
};

}  // namespace Impl::Detail

template <typename T>
constexpr asim::NumberType number_type() {
    if constexpr (std::is_same_v<T, float>) return asim::NumberType::F32;
    else if constexpr (std::is_same_v<T, half>) return asim::NumberType::F16;
    else if constexpr (std::is_same_v<T, bfloat16_t>) return asim::NumberType::Bf16;
    else if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t>) return asim::NumberType::I32;
    else if constexpr (std::is_same_v<T, int8_t>) return asim::NumberType::I8;
    else {
        static_assert(std::is_same_v<T, int4b_t>, "Matmul does not support the element type on Atlas A2");
        return asim::NumberType::I4;
    }
}

constexpr asim::MatrixLayout matrix_layout(CubeFormat format) {
    return format == CubeFormat::NZ         ? asim::MatrixLayout::Fractals
           : format == CubeFormat::ND_ALIGN ? asim::MatrixLayout::PaddedRows
                                            : asim::MatrixLayout::Rows;
}

template <typename Type>
constexpr asim::StoredMatrix matrix_of() {
    asim::StoredMatrix matrix;
    matrix.type = number_type<typename Type::T>();
    matrix.layout = matrix_layout(Type::format);
    return matrix;
}

template <class A, class B, class C, class Bias, const auto &configuration, class CallBack, bool delegates, bool keeps_left = false>
class MatmulObject {
    using SrcA = typename A::T;
    using SrcB = typename B::T;
    using Dst = typename C::T;
    using BiasT = typename Bias::T;
    static constexpr MatmulConfig kConfig = asim::config_of(configuration);
    static constexpr bool kStaticPlan = std::is_same_v<std::decay_t<decltype(configuration)>, MatmulApiStaticTiling>;

public:
    using AType = A;
    using BType = B;
    using CType = C;
    using BiasType = Bias;

    MatmulObject() : number_(asim::matmul_create()) {
        problem_.a = matrix_of<A>();
        problem_.b = matrix_of<B>();
        problem_.result = matrix_of<C>();
        problem_.bias = matrix_of<Bias>();
        problem_.bias.layout = asim::MatrixLayout::Rows;
        problem_.delegates = delegates;
        problem_.shared_by_group = delegates && A::ibShare && B::ibShare;
        constexpr bool kMultiDataLoad = kConfig.doMultiDataLoad || kConfig.doSpecialMDL;
        problem_.one_block_a_copy = !kMultiDataLoad && A::layout == LayoutMode::NONE;
        if (kMultiDataLoad && kConfig.doMTE2Preload == 1) problem_.preload = asim::MatmulPreload::Rows;
        if (kMultiDataLoad && kConfig.doMTE2Preload == 2) problem_.preload = asim::MatmulPreload::Columns;
        problem_.unit_flag = kConfig.enUnitFlag;
        problem_.keeps_left = keeps_left;
        problem_.staggers_k = kConfig.doMultiDataLoad && kConfig.enableKdimReorderLoad;
        problem_.relu = kConfig.enableRelu;
    }
    MatmulObject(const MatmulObject &) = delete;
    ~MatmulObject() { asim::matmul_destroy(number_); }

    void Init(const TCubeTiling *tiling, TPipe * = nullptr) {
        TCubeTiling plan{};
        if (tiling != nullptr) plan = *tiling;
        if constexpr (kStaticPlan) fix(plan, configuration);
        take(plan);
    }

    void SetOrgShape(int m, int n, int k) { SetOrgShape(m, n, k, k); }
    void SetOrgShape(int m, int n, int ka, int kb, int kc = 0) {
        problem_.original_m = static_cast<uint64_t>(m);
        problem_.original_n = static_cast<uint64_t>(n);
        problem_.original_ka = static_cast<uint64_t>(ka);
        problem_.original_kb = static_cast<uint64_t>(kb);
        problem_.original_kc = static_cast<uint64_t>(kc);
    }
    // -1 keeps an extent.
    void SetSingleShape(int m, int n, int k) {
        if (m >= 0) problem_.single.m = static_cast<uint32_t>(m);
        if (n >= 0) problem_.single.n = static_cast<uint32_t>(n);
        if (k >= 0) problem_.single.k = static_cast<uint32_t>(k);
        asim::matmul_restart(number_);
    }
    void SetTail(int m = -1, int n = -1, int k = -1) { SetSingleShape(m, n, k); }

    void SetTensorA(const GlobalTensor<SrcA> &tensor, bool transposed = false) { set(problem_.a, tensor, transposed); }
    void SetTensorB(const GlobalTensor<SrcB> &tensor, bool transposed = false) { set(problem_.b, tensor, transposed); }
    void SetTensorA(const LocalTensor<SrcA> &tensor, bool transposed = false) { set(problem_.a, tensor, transposed); }
    void SetTensorB(const LocalTensor<SrcB> &tensor, bool transposed = false) { set(problem_.b, tensor, transposed); }
    void SetBias(const GlobalTensor<BiasT> &tensor) { set_bias(tensor); }
    void SetBias(const LocalTensor<BiasT> &tensor) { set_bias(tensor); }
    void ClearBias() { problem_.has_bias = false; }
    void DisableBias() { ClearBias(); }

    void SetQuantScalar(uint64_t parameter) { problem_.quantisation = {nullptr, parameter, true}; }
    void SetQuantVector(const GlobalTensor<uint64_t> &parameters) {
        problem_.quantisation = {parameters.GetPhyAddr(), 0, true};
    }
    void SetHF32(bool enabled = false, int32_t mode = 0) {
        problem_.hf32 = enabled;
        problem_.hf32_ties_away = mode == 1;
    }

    // Parts of the interface that this library has no use for: it needs no scratch, and callbacks are not simulated.
    void SetSubBlockIdx(uint8_t) {}
    uint8_t GetSubBlockIdx() const { return static_cast<uint8_t>(asim::sub_block_index()); }
    void SetLocalWorkspace(const LocalTensor<uint8_t> &) {}
    void SetUserDefInfo(uint64_t) {}
    template <typename T>
    void SetSelfDefineData(T) {}

    // Room in global memory for asynchronous blocks.
    template <typename T>
    void SetWorkspace(const T *address, int) {
        problem_.cached_results = reinterpret_cast<uint8_t *>(const_cast<T *>(address));
    }
    template <typename T>
    void SetWorkspace(GlobalTensor<T> &tensor) {
        SetWorkspace(tensor.GetPhyAddr(), 0);
    }

    template <bool sync = true>
    bool Iterate(bool accumulate = false) {
        require_library_copies();
        return asim::matmul_iterate(number_, problem_, accumulate, !sync);
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<Dst> &tensor, uint8_t atomic = 0, bool sequential = false) {
        asim::matmul_fetch(number_, problem_, target_of(tensor, atomic, sequential), false);
    }
    template <bool sync = true, bool padded = false>
    void GetTensorC(const LocalTensor<Dst> &tensor, uint8_t atomic = 0, bool sequential = false, uint32_t = 0, uint32_t = 0,
                    uint32_t = 0, uint32_t = 0) {
        asim::matmul_fetch(number_, problem_, target_of(tensor, atomic, sequential), false);
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<Dst> &tensor, const LocalTensor<Dst> &local, uint8_t atomic = 0, bool sequential = false) {
        GetTensorC(tensor, atomic, sequential);
        asim::matmul_fetch(number_, problem_, target_of(local, atomic, sequential), true);
    }
    template <bool sync = true>
    GlobalTensor<Dst> GetTensorC(uint8_t = 0, bool = false) {
        GlobalTensor<Dst> block;
        const uint64_t elements = uint64_t{problem_.blocks.base.m} * problem_.blocks.base.n;
        block.SetGlobalBuffer(reinterpret_cast<Dst *>(asim::matmul_fetch_cached(number_, problem_)), elements);
        return block;
    }

    // The older names of the asynchronous forms.
    void AsyncGetTensorC(const LocalTensor<Dst> &tensor) { GetTensorC<false>(tensor); }
    void WaitGetTensorC() {}

    template <bool sync = true>
    void IterateAll(const GlobalTensor<Dst> &tensor, uint8_t atomic = 0, bool sequential = false, bool waits = false,
                    bool pretended = false) {
        require_library_copies();
        if (!pretended) asim::matmul_all(number_, problem_, target_of(tensor, atomic, sequential), wait_for<sync>(waits));
    }
    template <bool sync = true>
    void IterateAll(const LocalTensor<Dst> &tensor, uint8_t atomic = 0) {
        require_library_copies();
        asim::matmul_all(number_, problem_, target_of(tensor, atomic, false), asim::MatmulWait::Now);
    }
    void WaitIterateAll() { asim::matmul_wait(number_); }
    void WaitIterateBatch() { asim::matmul_wait(number_); }
    void End() {}

    void SetBatchNum(int32_t a, int32_t b) {
        batches_a_ = static_cast<uint32_t>(a);
        batches_b_ = static_cast<uint32_t>(b);
    }
    // The numbers of batches, or where SetBatchNum has given them, `accumulate` and `atomic`.
    template <bool sync = true, bool waits = false>
    void IterateBatch(const GlobalTensor<Dst> &tensor, uint32_t first, uint32_t second, bool, uint32_t stride_a = 0,
                      uint32_t stride_b = 0, uint32_t stride_c = 0, bool = false, uint8_t atomic = 0) {
        require_library_copies();
        static_assert(A::layout == LayoutMode::NORMAL || A::layout == LayoutMode::NONE, "batches are simulated in NORMAL layout");
        if (delegates) SetBatchNum(static_cast<int32_t>(first), static_cast<int32_t>(second));
        const asim::MatmulTarget target = target_of(tensor, delegates ? atomic : static_cast<uint8_t>(second), false);
        asim::matmul_batches(number_, problem_, target, {batches_a_, batches_b_, stride_a, stride_b, stride_c}, wait_for<sync>(waits));
    }

private:
    static void require_library_copies() {
        if constexpr (CallBack::any) {
            asim::refuse(asim::Refusal::OwnMatmulCopies);
        }
    }

    template <bool sync>
    static asim::MatmulWait wait_for(bool waits) {
        return sync ? asim::MatmulWait::Now : waits ? asim::MatmulWait::Later : asim::MatmulWait::Never;
    }

    static void fix(TCubeTiling &plan, const MatmulApiStaticTiling &fixed) {
        if (fixed.baseM <= 0) return;
        const TCubeTiling given = plan;
        plan = fixed;
        if (given.M <= 0) return;
        plan.M = given.M;
        plan.N = given.N;
        plan.Ka = given.Ka;
        plan.Kb = given.Kb;
    }

    void take(const TCubeTiling &plan) {
        SetOrgShape(plan.M, plan.N, plan.Ka, plan.Kb);
        SetSingleShape(plan.singleCoreM, plan.singleCoreN, plan.singleCoreK);
        asim::MatmulBlocks &blocks = problem_.blocks;
        const auto at_least_one = [](int32_t value) { return value < 1 ? 1u : static_cast<uint32_t>(value); };
        blocks.base = {at_least_one(plan.baseM), at_least_one(plan.baseN), at_least_one(plan.baseK)};
        blocks.step_m = at_least_one(plan.stepM);
        blocks.step_n = at_least_one(plan.stepN);
        blocks.step_ka = at_least_one(plan.stepKa);
        blocks.step_kb = at_least_one(plan.stepKb);
        blocks.depth_a1 = at_least_one(plan.depthA1);
        blocks.depth_b1 = at_least_one(plan.depthB1);
        const auto one_or_two = [](int32_t value) { return value == 2 ? 2u : 1u; };     // kernels leave them out of plans of their own
        blocks.l0a_buffers = one_or_two(plan.dbL0A);
        blocks.l0b_buffers = one_or_two(plan.dbL0B);
        blocks.l0c_buffers = one_or_two(plan.dbL0C);
        blocks.n_first = plan.iterateOrder == 1;
        if (kConfig.iterateOrder != IterateOrder::UNDEF) blocks.n_first = kConfig.iterateOrder == IterateOrder::ORDER_N;
        batches_a_ = at_least_one(plan.batchM);
        batches_b_ = at_least_one(plan.batchN);
    }

    template <typename T>
    void set(asim::StoredMatrix &matrix, const GlobalTensor<T> &tensor, bool transposed) {
        matrix.base = tensor.bytes();
        matrix.space = asim::Space::Gm;
        matrix.bypass_l2 = tensor.reads_bypass_l2();
        matrix.transposed = transposed;
        asim::matmul_restart(number_);
    }
    template <typename T>
    void set(asim::StoredMatrix &matrix, const LocalTensor<T> &tensor, bool transposed) {
        matrix.base = tensor.bytes();
        matrix.space = space_of(tensor.GetPosition());
        matrix.transposed = transposed;
        asim::matmul_restart(number_);
    }
    template <typename Tensor>
    void set_bias(const Tensor &tensor) {
        set(problem_.bias, tensor, false);
        problem_.has_bias = true;
    }

    static asim::AtomicMode atomic_mode(uint8_t atomic) { return static_cast<asim::AtomicMode>(atomic & 3); }
    static asim::MatmulTarget target_of(const GlobalTensor<Dst> &tensor, uint8_t atomic, bool sequential) {
        return {tensor.bytes(), asim::Space::Gm, tensor.writes_bypass_l2(), sequential, atomic_mode(atomic)};
    }
    static asim::MatmulTarget target_of(const LocalTensor<Dst> &tensor, uint8_t atomic, bool sequential) {
        return {tensor.bytes(), space_of(tensor.GetPosition()), false, sequential, atomic_mode(atomic)};
    }

    asim::MatmulProblem problem_;
    uint32_t number_;               // of what the machine keeps for the object
    uint32_t batches_a_ = 1;
    uint32_t batches_b_ = 1;
};

template <class A, class B, class C, class Bias = C, const auto &configuration = CFG_NORM,
          class CallBack = MatmulCallBackFunc<nullptr, nullptr, nullptr>>
using MatmulImpl = MatmulObject<A, B, C, Bias, configuration, CallBack, false>;

// A plan from what a configuration says: with both extents and blocks, steps that fill half of L1 for each operand.
template <class A, class B, class C, class Bias>
__aicore__ constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig &config, int32_t l1Size = 512 * 1024 - 256) {
    MatmulApiStaticTiling plan{};
    plan.cfg = config;
    if (config.basicM == 0 || config.basicN == 0 || config.basicK == 0 || config.singleCoreK == 0) return plan;
    const auto steps = [&](uint32_t rows, size_t element_bytes) {
        const uint32_t rounds = (config.singleCoreK + config.basicK - 1) / config.basicK;
        const auto room = static_cast<uint32_t>(l1Size / 4 / (rows * config.basicK * element_bytes));
        return static_cast<int32_t>(room < 1 ? 1 : room < rounds ? room : rounds);
    };
    plan.usedCoreNum = 1;
    plan.M = plan.singleCoreM = static_cast<int32_t>(config.singleCoreM);
    plan.N = plan.singleCoreN = static_cast<int32_t>(config.singleCoreN);
    plan.Ka = plan.Kb = plan.singleCoreK = static_cast<int32_t>(config.singleCoreK);
    plan.baseM = static_cast<int32_t>(config.basicM);
    plan.baseN = static_cast<int32_t>(config.basicN);
    plan.baseK = static_cast<int32_t>(config.basicK);
    plan.isBias = config.enableSetBias;
    plan.stepM = plan.stepN = 1;
    plan.stepKa = steps(config.basicM, sizeof(typename A::T));
    plan.stepKb = steps(config.basicN, sizeof(typename B::T));
    plan.depthA1 = 2 * plan.stepKa;
    plan.depthB1 = 2 * plan.stepKb;
    plan.dbL0A = plan.dbL0B = 2;
    plan.dbL0C = 1;
    return plan;
}

template <typename... Nothing>
inline void init_matmul_objects(TPipe *, const Nothing &...) {}
template <typename Object, typename Plan, typename... Others>
inline void init_matmul_objects(TPipe *pipe, Object &object, Plan plan, Others &&...others) {
    object.Init((const TCubeTiling *)plan, pipe);
    init_matmul_objects(pipe, others...);
}

}  // namespace AscendC

namespace matmul = AscendC;

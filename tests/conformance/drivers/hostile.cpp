// Every function that kernels may call, as a kernel could call it that means harm: numbers of all sizes, pointers to anywhere.
//
// Addresses are offsets in the unified buffer; those from kElsewhere on are taken as they are.
#include <array>

#include "asim/machine/data_stack.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/instrumentation.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/scheduler.h"
#include "machine.h"
#include "lib/matmul_intf.h"

thread_local void *__safestack_unsafe_stack_ptr = nullptr;

namespace asim {

Block *group_block(CoreKind, uint32_t) { return nullptr; }
Block *launch_blocks() { return g_block; }
void run_as(Block &, const std::function<void()> &work) { work(); }
void wait_until(const char *call, const char *, const std::function<bool()> &ready) {
    if (!ready()) fault(FaultKind::RuntimeFault, call, "nobody else is there");
}
void wait_for_group_end() {}
void require_residency(const char *) {}
const LaunchShape &launch_shape() {
    static const LaunchShape shape = [] {
        LaunchShape chip;
        chip.composition = {1, 0};
        const std::pair<Space, uint32_t> memories[] = {{Space::L1, 524288}, {Space::L0A, 65536}, {Space::L0B, 65536}, {Space::L0C, 131072}};
        for (const auto &[space, bytes] : memories) chip.memory_bytes[static_cast<int>(space)] = bytes;
        return chip;
    }();
    return shape;
}

}  // namespace asim

namespace {

using namespace asim;

constexpr uint64_t kElsewhere = 1ull << 32;
constexpr uint32_t kGmBytes = 1u << 16;
constexpr uint32_t kMemoryBytes = 65536;        // of each memory of the cube core
alignas(64) uint8_t g_around_stack[3 * kDataStackBytes];
uint8_t *const g_stack = g_around_stack + kDataStackBytes;
uint64_t g_executed[kCodePlaces / 64];
alignas(64) uint8_t g_memories[kSpaceCount][kMemoryBytes];

uint8_t *at(int64_t place) {
    const auto address = static_cast<uint64_t>(place);
    return address < kElsewhere ? block().ub + address : reinterpret_cast<uint8_t *>(address);
}

uint8_t *gm() {
    static uint8_t *const base = add_gm_region("x", GmRole::InOut, kGmBytes, kOwnAddress).base;
    return base;
}

uint8_t *memory(Space space) { return block().memories[static_cast<int>(space)].base; }

template <typename T>
T number(int64_t value) {
    return static_cast<T>(value);
}

Lanes lanes(Arguments a) { return {at(a[0]), number<uint32_t>(a[1]), number<uint32_t>(a[2])}; }

Shape shape(Arguments a) {
    Shape result;
    result.counted = number<uint8_t>(a[0]), result.strided = number<uint8_t>(a[1]);
    result.count = number<uint32_t>(a[2]), result.repeats = number<uint32_t>(a[3]);
    result.mask[0] = number<uint64_t>(a[4]), result.mask[1] = number<uint64_t>(a[5]);
    return result;
}

CopyShape copy_shape(Arguments a) { return {number<uint32_t>(a[0]), number<uint32_t>(a[1]), number<uint64_t>(a[2]), number<uint64_t>(a[3])}; }

const Register g_start("start", [](Arguments a) {
    Block &self = block();
    allow_host_memory(false);
    self.kind = a[0] != 0 ? CoreKind::Cube : CoreKind::Vector;
    self.stack = g_stack;
    self.pipe = &self;  // any: queues are made by one
    self.executed = g_executed;
    for (uint32_t space = static_cast<uint32_t>(Space::L1); space < kSpaceCount; ++space) self.memories[space] = {g_memories[space], kMemoryBytes, 0};
    gm();
});

// ---- what instrumented code calls ----

const Register g_load("asim_load", [](Arguments a) { asim_load(at(a[0]), number<uint64_t>(a[1])); });
const Register g_store("asim_store", [](Arguments a) { asim_store(at(a[0]), number<uint64_t>(a[1])); });
const Register g_load_stack("asim_load of the stack", [](Arguments a) { asim_load(g_stack + a[0], number<uint64_t>(a[1])); });
const Register g_store_stack("asim_store to the stack", [](Arguments a) { asim_store(g_stack + a[0], number<uint64_t>(a[1])); });
const Register g_load_gm("asim_load of gm", [](Arguments a) { asim_load(gm() + a[0], number<uint64_t>(a[1])); });
const Register g_load_l1("asim_load of L1", [](Arguments) { asim_load(memory(Space::L1), 8); });
const Register g_store_constant("asim_store to a constant", [](Arguments) {
    static const uint64_t constant = 1;
    static bool added = false;
    if (!added) add_gm_constants(&constant, sizeof constant);
    added = true;
    asim_load(const_cast<uint64_t *>(&constant), sizeof constant);
    asim_store(const_cast<uint64_t *>(&constant), sizeof constant);
});
const Register g_copy("asim_memcpy", [](Arguments a) { asim_memcpy(at(a[0]), at(a[1]), number<uint64_t>(a[2])); });
const Register g_set("asim_memset", [](Arguments a) { asim_memset(at(a[0]), 1, number<uint64_t>(a[1])); });
const Register g_compare_memory("asim_memcmp", [](Arguments a) { asim_memcmp(at(a[0]), at(a[1]), number<uint64_t>(a[2])); });
const Register g_call("asim_call", [](Arguments a) {
    const void *targets[] = {at(0), at(8)};
    asim_call(at(a[0]), targets, 2);
});
const Register g_unreachable("asim_unreachable", [](Arguments) { asim_unreachable(); });
// Argument: what asim_count gets, twice; the counts of all classes go to the start of the unified buffer.
const Register g_count("asim_count", [](Arguments a) {
    asim_count(number<uint64_t>(a[0]));
    asim_count(number<uint64_t>(a[0]));
    std::memcpy(block().ub, block().scalar_counts, sizeof block().scalar_counts);
});
const Register g_counts("counts", [](Arguments) { std::memcpy(block().ub, block().scalar_counts, sizeof block().scalar_counts); });

// ---- flags, queues, registers, scalar accesses ----

const Register g_set_flag("set_flag", [](Arguments a) { set_flag(number<Pipe>(a[0]), number<Pipe>(a[1]), number<uint32_t>(a[2])); });
const Register g_wait_flag("wait_flag", [](Arguments a) { wait_flag(number<Pipe>(a[0]), number<Pipe>(a[1]), number<uint32_t>(a[2])); });
const Register g_barrier("pipe_barrier", [](Arguments a) { pipe_barrier(number<Pipe>(a[0])); });
const Register g_alloc("alloc_event_id", [](Arguments a) { alloc_event_id(number<Pipe>(a[0]), number<Pipe>(a[1])); });
const Register g_fetch("fetch_event_id", [](Arguments a) { fetch_event_id(number<Pipe>(a[0]), number<Pipe>(a[1])); });
const Register g_release_id("release_event_id", [](Arguments a) {
    release_event_id(number<Pipe>(a[0]), number<Pipe>(a[1]), number<uint32_t>(a[2]));
});
const Register g_cross_set("cross_core_set", [](Arguments a) { cross_core_set(number<uint32_t>(a[0]), number<Pipe>(a[1]), number<uint32_t>(a[2])); });
const Register g_cross_wait("cross_core_wait", [](Arguments a) { cross_core_wait(number<uint32_t>(a[0])); });
const Register g_signals("sync_by_signals", [](Arguments a) { sync_by_signals(reinterpret_cast<int32_t *>(at(a[0])), at(a[1]), 0); });
const Register g_clean("clean_cache", [](Arguments a) { clean_cache(at(a[0])); });
const Register g_local("local_memory", [](Arguments a) { block().pipe = local_memory(number<Space>(a[0])); });

const Register g_queue_init("queue_init", [](Arguments a) {
    queue_init(number<uint32_t>(a[0]), {number<Pipe>(a[1]), number<Pipe>(a[2]), number<Space>(a[3]), 2}, number<uint32_t>(a[4]), number<uint32_t>(a[5]));
});
const Register g_queue_allocate("queue_allocate", [](Arguments a) { queue_allocate(number<uint32_t>(a[0])); });
const Register g_queue_enqueue("queue_enqueue", [](Arguments a) {
    queue_enqueue(number<uint32_t>(a[0]), at(a[1]), number<Pipe>(a[2]), number<Pipe>(a[3]));
});
const Register g_queue_dequeue("queue_dequeue", [](Arguments a) { queue_dequeue(number<uint32_t>(a[0]), number<Pipe>(a[1]), number<Pipe>(a[2])); });
const Register g_queue_release("queue_release", [](Arguments a) { queue_release(number<uint32_t>(a[0]), at(a[1])); });
const Register g_queue_ask("queue_count", [](Arguments a) {
    const auto queue = number<uint32_t>(a[0]);
    queue_free_all_events(queue);
    if (queue_count(queue) != 0 || queue_has_free(queue)) fault(FaultKind::RuntimeFault, "queue", "there is something");
});
const Register g_buffer("allocate_buffer", [](Arguments a) { allocate_buffer(number<Space>(a[0]), number<uint32_t>(a[1])); });

// Arguments: base, space, bytes, used bytes, buffers of the pool, buffers and bytes of each.
BufferPool pool_of(Arguments a) {
    return {at(a[0]), number<Space>(a[1]), number<uint32_t>(a[2]), number<uint32_t>(a[3]), number<uint32_t>(a[4]), 4};
}
const Register g_pool("allocate_pool", [](Arguments a) { allocate_pool(number<Space>(a[0]), number<uint32_t>(a[1])); });
const Register g_pool_next("pool_next", [](Arguments a) { pool_next(pool_of(a), number<uint32_t>(a[5]), number<uint32_t>(a[6])); });
const Register g_queue_in_pool("queue_init_in_pool", [](Arguments a) {
    queue_init_in_pool(0, {Pipe::MTE2, Pipe::V, Space::Ub, 2}, number<uint32_t>(a[5]), number<uint32_t>(a[6]), pool_of(a));
});

const Register g_load_ub("load_ub", [](Arguments a) { load_ub(at(a[0]), number<uint32_t>(a[1])); });
const Register g_store_ub("store_ub", [](Arguments a) { store_ub(at(a[0]), 1, number<uint32_t>(a[1])); });
const Register g_load_of_gm("load_gm", [](Arguments a) { load_gm(at(a[0]), number<uint32_t>(a[1])); });
const Register g_store_gm("store_gm", [](Arguments a) { store_gm(at(a[0]), 1, number<uint32_t>(a[1])); });
const Register g_reads_gm("two reads of gm", [](Arguments a) {
    for (int64_t i = 0; i < 2; ++i) a[0] != 0 ? load_uncached(gm(), 4) : load_gm(gm(), 4);
});
const Register g_uncached("load_uncached", [](Arguments a) { load_uncached(at(a[0]), number<uint32_t>(a[1])); });

const Register g_atomic("set_atomic", [](Arguments a) { set_atomic(number<AtomicMode>(a[0])); });
const Register g_read_register("read_register", [](Arguments a) { read_register(number<VectorRegister>(a[0])); });
const Register g_merged("merged_count", [](Arguments a) { merged_count(number<uint32_t>(a[0])); });
const Register g_address("set_address_register", [](Arguments a) {
    set_address_register(number<uint32_t>(a[0]), reinterpret_cast<uint64_t *>(at(a[1])));
});
const Register g_refuse("refuse", [](Arguments a) { refuse(number<Refusal>(a[0]), 1, 2, 3); });
const Register g_assert("assertion_failed", [](Arguments a) {
    assertion_failed(reinterpret_cast<char *>(at(a[0])), reinterpret_cast<char *>(at(a[1])), reinterpret_cast<PrintValue *>(at(a[2])),
                     number<uint32_t>(a[3]));
});
const Register g_shape_of("noted_shape", [](Arguments a) { noted_shape(nullptr, reinterpret_cast<AscendC::ShapeInfo *>(at(a[0]))); });
const Register g_tiling("copy_tiling_bytes", [](Arguments a) { copy_tiling_bytes(at(a[0]), gm() + a[1], number<uint32_t>(a[2])); });
const Register g_list("read_list_shape", [](Arguments a) {
    ListDescriptor list;
    list.block = reinterpret_cast<uint64_t *>(at(a[0]));
    list.rank = number<uint32_t>(a[1]), list.count = number<uint32_t>(a[2]);
    read_list_shape(list, number<uint32_t>(a[3]), reinterpret_cast<uint64_t *>(at(a[4])));
});
const Register g_descriptor("read_list_descriptor", [](Arguments a) {
    std::memset(gm(), 0, kGmBytes);
    read_list_descriptor(gm(), reinterpret_cast<ListDescriptor *>(at(a[0])));
});

// ---- vector instructions ----

const Register g_unary("unary", [](Arguments a) { unary<Op::Abs, half>(lanes(a), lanes(a + 3), shape(a + 6)); });
const Register g_binary("binary", [](Arguments a) { binary<Op::Add, float>(lanes(a), lanes(a + 3), lanes(a + 3), shape(a + 6)); });
const Register g_cast("cast", [](Arguments a) { cast<float, half>(lanes(a), lanes(a + 3), number<RoundMode>(a[12]), shape(a + 6)); });
const Register g_int4("cast_to_int4", [](Arguments a) { cast_to_int4(at(a[0]), at(a[1]), RoundMode::CAST_RINT, number<uint32_t>(a[2])); });
const Register g_reduce("whole_reduce", [](Arguments a) {
    whole_reduce<half>(number<Reduction>(a[0]), {at(a[1]), number<uint32_t>(a[2])}, lanes(a + 3), shape(a + 6), number<ReduceOrder>(a[12]));
});
const Register g_blocks("block_reduce", [](Arguments a) {
    block_reduce<half>(number<Reduction>(a[0]), {at(a[1]), number<uint32_t>(a[2])}, lanes(a + 3), shape(a + 6));
});
const Register g_compare("compare", [](Arguments a) {
    compare<half>(at(a[0]), lanes(a + 1), lanes(a + 1), number<CompareMode>(a[4]), number<uint32_t>(a[5]));
});
const Register g_gather("gather", [](Arguments a) { gather<uint16_t>(lanes(a), at(a[3]), at(a[4]), number<uint32_t>(a[5]), shape(a + 6)); });
const Register g_gather_mask("gather_mask", [](Arguments a) {
    GatherPattern pattern;
    pattern.fixed = number<uint8_t>(a[4]), pattern.repeat_stride = number<uint32_t>(a[5]);
    pattern.bits = a[6] < 0 ? nullptr : at(a[6]);
    gather_mask<uint16_t>(at(a[0]), lanes(a + 1), pattern, number<uint32_t>(a[7]), number<uint32_t>(a[8]));
});
const Register g_brcb("broadcast_blocks", [](Arguments a) { broadcast_blocks<uint16_t>(lanes(a), at(a[3]), number<uint32_t>(a[4])); });
const Register g_progression("progression", [](Arguments a) {
    progression<half>(lanes(a), half(1), half(1), {number<uint32_t>(a[3]), number<uint32_t>(a[4]), number<uint32_t>(a[5])});
});
const Register g_sort("sort32", [](Arguments a) { sort32<half>(at(a[0]), at(a[0]), at(a[0]), number<uint32_t>(a[1])); });
const Register g_sort_all("sort_all", [](Arguments a) { sort_all<half>(at(a[0]), at(a[0]), at(a[0]), at(a[1]), number<uint32_t>(a[2]), true); });
const Register g_merge("merge_sort", [](Arguments a) {
    MergeQueues queues;
    for (uint32_t i = 0; i < kMergeQueues; ++i) queues.base[i] = at(a[2]), queues.length[i] = number<uint16_t>(a[3]);
    queues.valid = number<uint32_t>(a[4]);
    merge_sort<half>(at(a[0]), queues, reinterpret_cast<uint32_t *>(at(a[1])), number<uint32_t>(a[5]));
});
const Register g_transpose("transpose_blocks", [](Arguments a) {
    transpose_blocks<uint16_t>(reinterpret_cast<uint64_t *>(at(a[0])), reinterpret_cast<uint64_t *>(at(a[1])),
                               {number<uint32_t>(a[2]), number<uint32_t>(a[3]), number<uint32_t>(a[4]), 0, 0});
});
const Register g_transpose_va("transpose_by_registers", [](Arguments a) { transpose_by_registers(number<uint32_t>(a[0]), number<uint32_t>(a[1]), 1, 0, 0); });

// ---- library calls ----

const Register g_columns("broadcast_columns", [](Arguments a) {
    broadcast_columns<uint16_t>(at(a[0]), at(a[0]), {number<uint32_t>(a[1]), number<uint32_t>(a[2])}, {at(a[3]), number<uint32_t>(a[4])});
});
const Register g_softmax("softmax", [](Arguments a) {
    softmax<float>(at(a[0]), nullptr, nullptr, at(a[0]), {number<uint32_t>(a[1]), number<uint32_t>(a[2])}, number<uint32_t>(a[3]),
                   {at(a[4]), number<uint32_t>(a[5])});
});
const Register g_dequantize("dequantize", [](Arguments a) {
    dequantize<float>(at(a[0]), at(a[0]), {at(a[0]), number<FactorType>(a[1])}, {number<uint32_t>(a[2]), number<uint32_t>(a[3]), 64},
                      {at(a[0]), number<uint32_t>(a[4])});
});
const Register g_math("math", [](Arguments a) { math<Function::Tanh, float>(at(a[0]), at(a[1]), {at(a[2]), number<uint32_t>(a[3])}, number<uint32_t>(a[4]), 1.0f); });
const Register g_fill("fill_gm", [](Arguments a) { fill_gm(gm() + a[0], number<uint64_t>(a[1]), 1, number<uint32_t>(a[2]), false, number<uint32_t>(a[3])); });

// ---- copies ----

const Register g_in("copy_gm_to_ub", [](Arguments a) {
    PadShape pad;
    pad.fill = 1, pad.left_bytes = number<uint32_t>(a[6]), pad.right_bytes = number<uint32_t>(a[7]), pad.element_bytes = number<uint32_t>(a[8]);
    copy_gm_to_ub(number<CopyCall>(a[9]), at(a[0]), gm() + a[1], copy_shape(a + 2), pad);
});
const Register g_out("copy_ub_to_gm", [](Arguments a) {
    copy_ub_to_gm(CopyCall::DataCopy, gm() + a[1], at(a[0]), copy_shape(a + 2), number<uint32_t>(a[6]));
});
const Register g_inside("copy_ub_to_ub", [](Arguments a) {
    copy_ub_to_ub(at(a[0]), at(a[1]), number<uint32_t>(a[2]), number<uint32_t>(a[3]), number<uint32_t>(a[4]), number<uint32_t>(a[5]));
});
const Register g_to_l1("copy_gm_to_l1", [](Arguments a) {
    PadShape pad;
    pad.fill = 1, pad.left_bytes = number<uint32_t>(a[4]), pad.element_bytes = number<uint32_t>(a[5]);
    copy_gm_to_l1(CopyCall::DataCopy, number<Space>(a[6]), memory(Space::L1), gm(), copy_shape(a), pad);
});
const Register g_nd2nz("copy_nd_to_nz", [](Arguments a) {
    Nd2NzShape nz;
    nz.matrices = number<uint32_t>(a[0]), nz.rows = number<uint32_t>(a[1]), nz.columns = number<uint32_t>(a[2]);
    nz.row_stride_bytes = number<uint64_t>(a[3]), nz.nz_row_stride_bytes = number<uint64_t>(a[4]), nz.element_bytes = number<uint32_t>(a[5]);
    copy_nd_to_nz(memory(Space::L1), gm(), nz);
});
const Register g_fill_local("fill_local", [](Arguments a) {
    FillShape fill;
    fill.repeats = number<uint32_t>(a[1]), fill.blocks = number<uint32_t>(a[2]), fill.gap_blocks = number<uint32_t>(a[3]);
    fill.element_bytes = number<uint32_t>(a[4]);
    fill_local(number<Space>(a[0]), memory(Space::L1), fill);
});
const Register g_table("copy_l1_to_table", [](Arguments a) {
    copy_l1_to_table(number<Space>(a[4]), memory(Space::BiasTable), memory(Space::L1), copy_shape(a), true);
});

// ---- the cube ----

const Register g_load_2d("load_2d", [](Arguments a) {
    load_2d(number<Space>(a[0]), memory(Space::L0A), memory(Space::L1),
            {number<uint32_t>(a[1]), number<uint32_t>(a[2]), a[3], number<uint32_t>(a[4]), number<uint32_t>(a[5]), 0});
});
const Register g_load_3d("load_3d", [](Arguments a) {
    Load3dShape load;
    load.channels = number<uint32_t>(a[0]), load.columns = number<uint32_t>(a[1]), load.rows = number<uint32_t>(a[2]);
    load.first_column = number<uint32_t>(a[3]), load.filter_width = number<uint32_t>(a[4]), load.stride_width = number<uint32_t>(a[5]);
    load.element_bytes = number<uint32_t>(a[6]);
    set_feature_map(false, {number<uint32_t>(a[7]), number<uint32_t>(a[7]), 0, 0, 0, 0});
    load_3d(Space::L0A, memory(Space::L0A), memory(Space::L1), load);
});
const Register g_mmad("mmad", [](Arguments a) {
    mmad(memory(Space::L0C), memory(Space::L0A), memory(Space::L0B), nullptr,
         {number<uint32_t>(a[0]), number<uint32_t>(a[1]), number<uint32_t>(a[2]), number<MatrixType>(a[3]), number<MatrixType>(a[4]), number<MatrixStart>(a[5])});
});
const Register g_fixpipe("fixpipe_to_gm", [](Arguments a) {
    FixpipeShape fixpipe;
    fixpipe.m = number<uint32_t>(a[0]), fixpipe.n = number<uint32_t>(a[1]), fixpipe.matrices = number<uint32_t>(a[2]);
    fixpipe.src_stride_rows = number<uint64_t>(a[3]), fixpipe.dst_stride_bytes = number<uint64_t>(a[4]);
    fixpipe.result = number<ResultType>(a[5]), fixpipe.quantization = number<Quantization>(a[6]);
    fixpipe.scales = a[7] < 0 ? nullptr : at(a[7]);
    fixpipe_to_gm(gm(), memory(Space::L0C), fixpipe);
});

// Numbers of a Matmul problem on a cube core, half times half to float: extents, base block, depths and buffers, then what is wrong.
MatmulProblem problem_of(Arguments a) {
    MatmulProblem problem;
    problem.a.base = problem.b.base = gm();
    problem.result.type = NumberType::F32;
    problem.original_m = problem.original_n = problem.original_ka = problem.original_kb = number<uint64_t>(a[0]);
    problem.single = {number<uint32_t>(a[0]), number<uint32_t>(a[0]), number<uint32_t>(a[0])};
    problem.blocks.base = {number<uint32_t>(a[1]), number<uint32_t>(a[2]), number<uint32_t>(a[3])};
    problem.blocks.depth_a1 = problem.blocks.depth_b1 = number<uint32_t>(a[4]);
    problem.blocks.l0a_buffers = problem.blocks.l0c_buffers = number<uint32_t>(a[5]);
    problem.a.type = number<NumberType>(a[6]);
    problem.b.space = number<Space>(a[7]);
    problem.quantisation.vector = a[8] < 0 ? nullptr : reinterpret_cast<uint64_t *>(at(a[8]));
    problem.one_block_a_copy = true;
    return problem;
}

const Register g_matmul("matmul_all", [](Arguments a) {
    MatmulTarget target;
    target.base = gm();
    target.space = number<Space>(a[9]);
    matmul_all(matmul_create(), problem_of(a), target, MatmulWait::Now);
});
const Register g_fetch_first("matmul_fetch", [](Arguments a) {
    const uint32_t object = matmul_create();
    matmul_iterate(object, problem_of(a), false, false);
    MatmulTarget target;
    target.base = gm();
    matmul_fetch(object, problem_of(a + 10), target, false);
});
// A product of two blocks, whose left operand lies `a[9]` bytes further on for the second one.
const Register g_moved("matmul_iterate of another operand", [](Arguments a) {
    const uint32_t object = matmul_create();
    MatmulProblem problem = problem_of(a);
    problem.one_block_a_copy = false;
    problem.single.m = 2 * problem.blocks.base.m;
    problem.original_m = problem.single.m;
    for (const int64_t behind : {int64_t{0}, a[9]}) {
        problem.a.base = gm() + behind;
        matmul_iterate(object, problem, false, false);
    }
});
const Register g_batches("matmul_batches", [](Arguments a) {
    matmul_batches(matmul_create(), problem_of(a), {gm()}, {number<uint32_t>(a[9]), number<uint32_t>(a[10]), 0, 0, 0}, MatmulWait::Now);
});
const Register g_objects("matmul_wait", [](Arguments a) { matmul_wait(number<uint32_t>(a[0])); });
const Register g_destroy("matmul_destroy", [](Arguments a) {
    const uint32_t object = matmul_create();
    matmul_destroy(object);
    matmul_destroy(object + number<uint32_t>(a[0]));
});

}  // namespace

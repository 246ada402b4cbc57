#include "asim/machine/registers.h"

#include <algorithm>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/rerun.h"
#include "asim/semantics/vector.h"
#include "asim/trace/writer.h"

namespace asim {

bool counter_mode() { return block().counter_mode; }
uint64_t mask_low() { return block().mask[0]; }
uint64_t mask_high() { return block().mask[1]; }
void set_counter_mode(bool counts) { block().counter_mode = counts; }

void keep_mask(uint64_t low, uint64_t high) {
    block().mask[0] = low;
    block().mask[1] = high;
}

void keep_leading_mask(uint64_t lanes) {
    if (block().counter_mode) {
        keep_mask(lanes, 0);
    } else {
        const Shape shape = Shape::leading(lanes, 1);
        keep_mask(shape.mask[0], shape.mask[1]);
    }
}

void reset_mask() {
    block().counter_mode = false;
    keep_mask(~0ull, ~0ull);
}

void set_atomic(AtomicMode mode) {
    if (mode > AtomicMode::Min) fault(FaultKind::RuntimeFault, "SetAtomic", "there is no mode %u", static_cast<unsigned>(mode));
    block().atomic = mode;
}

void note_store_atomic(uint16_t type) { block().atomic_dtype = static_cast<uint8_t>(type); }
uint16_t noted_store_atomic() { return block().atomic == AtomicMode::None ? 0 : block().atomic_dtype; }

void watch_memory(uint32_t which, uint32_t start, uint32_t end, uint32_t kinds) {
    if (which >= kWatches) fault(FaultKind::RuntimeFault, "CheckLocalMemoryIA", "enableBit is %u, expected 0 to 3", which);
    if (start > UINT16_MAX || end > UINT16_MAX) {
        fault(FaultKind::RuntimeFault, "CheckLocalMemoryIA", "startAddr is %u and endAddr %u, expected 0 to 65535 units of 32 bytes", start, end);
    }
    Block &self = block();
    self.watched[which] = {(uint64_t{start} + 1) * kUbBlockBytes, (uint64_t{end} + 1) * kUbBlockBytes, kinds};
    self.watches = std::any_of(std::begin(self.watched), std::end(self.watched), [](const WatchedMemory &each) { return each.kinds != 0; });
}

void set_padding(uint64_t bits) {
    vector_registers().padding = bits;
    vector_registers().padding_set = true;
}

void set_deq_scale(uint64_t bits) {
    vector_registers().deq_scale = bits;
    vector_registers().deq_scale_set = true;
}

void set_deq_table(const uint8_t *table) {
    constexpr uint64_t kTableBytes = 128;
    const uint64_t offset = checked_ub("SetDeqScale", table, kTableBytes);
    check_ub_alignment("SetDeqScale", "vdeq", offset, kUbBlockBytes);
    set_deq_scale(offset / kUbBlockBytes);
}

void read_register(VectorRegister which) {
    if (static_cast<uint32_t>(which) >= kVectorRegisterCount) {
        fault(FaultKind::RuntimeFault, "GetReduceRepeatMaxMinSpr", "there is no register %u", static_cast<unsigned>(which));
    }
    Record record{};
    record.op = Op::ScalarAccess;
    record.dtype_bytes = kResultRegisterBytes;
    emit(record, {register_operand(which)});
    block().after_load = false;
}

namespace {

// What a vector instruction has left behind. On a cube core none has been executed.
uint32_t left_behind(uint32_t bits) { return on_cube_core() ? rerun().poison * 0x01010101u : bits; }

}  // namespace

uint32_t reduced_value() { return left_behind(vector_registers().reduce_value); }
uint32_t reduced_index() { return left_behind(vector_registers().reduce_index); }
uint32_t accumulated_bits() { return left_behind(vector_registers().accumulated); }
uint64_t gathered_count() { return on_cube_core() ? left_behind(0) : vector_registers().gathered; }

uint32_t merged_count(uint32_t queue) {
    constexpr uint32_t kQueues = sizeof VectorRegisters::merged / sizeof VectorRegisters::merged[0];
    if (queue >= kQueues) fault(FaultKind::RuntimeFault, "GetMrgSortResult", "there is no queue %u", queue);
    return left_behind(vector_registers().merged[queue]);
}

void set_address_register(uint32_t which, const uint64_t *addresses) {
    if (which >= kAddressRegisters) fault(FaultKind::RuntimeFault, "set_va_reg_sb", "there is no address register %u", which);
    kernel_access(addresses, sizeof vector_registers().addresses[which], false);
    std::copy_n(addresses, kAddressesOfRegister, vector_registers().addresses[which]);
}

void set_feature_map(bool right_matrix, FeatureMap map) { block().cube.maps[right_matrix ? 1 : 0] = map; }
void set_load_padding(uint64_t bits) { block().cube.pad_value = bits; }
void set_load_boundary(uint32_t bytes) {
    constexpr uint32_t kLeast = 1024;
    if (bytes != 0 && bytes < kLeast) {
        fault(FaultKind::RuntimeFault, "SetLoadDataBoundary", "boundaryValue is %u, expected 0 (none) or at least %u bytes", bytes, kLeast);
    }
    block().cube.load_boundary = bytes;
}

void set_load_repeat(uint32_t repeats, uint32_t stride, uint32_t mode) {
    if (repeats > UINT8_MAX) fault(FaultKind::RuntimeFault, "SetLoadDataRepeat", "repeatTime is %u, expected 0 to 255", repeats);
    if (mode > 1) fault(FaultKind::RuntimeFault, "SetLoadDataRepeat", "repeatMode is %u, expected 0 (height) or 1 (width)", mode);
    CubeRegisters &cube = block().cube;
    cube.load_repeats = repeats, cube.load_stride = stride, cube.load_along_width = mode == 1;
}

void set_hf32(bool enabled) { block().cube.hf32 = enabled; }
void set_hf32_ties_to_zero(bool enabled) { block().cube.hf32_ties_to_zero = enabled; }

void set_nz2nd(uint16_t matrices, uint16_t src_stride, uint16_t dst_stride) {
    CubeRegisters &cube = block().cube;
    cube.nd_matrices = matrices, cube.nd_src_stride = src_stride, cube.nd_dst_stride = dst_stride;
}

void set_quant_scale(uint64_t scale) { block().cube.quant_scale = scale; }
void set_quant_scales(const uint8_t *scales) { block().cube.quant_scales = scales; }

}  // namespace asim

#include "machine.h"

namespace {

const Register g_adds("Adds count", [](Arguments a) {
    AscendC::Adds(tensor<float>(a[0]), tensor<float>(a[1]), 1.0f, static_cast<int32_t>(a[2]));
});
const Register g_adds_register("Adds count with the register", [](Arguments a) {
    AscendC::Adds<float, false>(tensor<float>(a[0]), tensor<float>(a[1]), 1.0f, static_cast<int32_t>(a[2]));
});
const Register g_lanes("Adds lanes", [](Arguments a) {
    AscendC::Adds(tensor<float>(a[0]), tensor<float>(a[1]), 1.0f, static_cast<uint64_t>(a[2]), 1, {1, 1, 8, 8});
});
const Register g_bits("Adds bits", [](Arguments a) {
    uint64_t mask[2] = {static_cast<uint64_t>(a[2]), 0};
    AscendC::Adds(tensor<float>(a[0]), tensor<float>(a[1]), 1.0f, mask, 1, {1, 1, 8, 8});
});
const Register g_lanes_register("Adds with the register", [](Arguments a) {
    AscendC::Adds<float, false>(tensor<float>(a[0]), tensor<float>(a[1]), 1.0f, AscendC::MASK_PLACEHOLDER,
                                static_cast<uint8_t>(a[2]), {1, 1, 8, 8});
});
const Register g_count("SetMaskCount", [](Arguments) { AscendC::SetMaskCount(); });
const Register g_mask("SetVectorMask", [](Arguments a) {
    AscendC::SetVectorMask<float>(static_cast<uint64_t>(a[0]), static_cast<uint64_t>(a[1]));
});
// Arguments: dst, src, elements of each repeat or 0 for the register, repeats, strides of blocks and of repeats.
const Register g_copy("Copy", [](Arguments a) {
    const AscendC::CopyRepeatParams strides(a[4], a[5], a[6], a[7]);
    const auto repeats = static_cast<uint8_t>(a[3]);
    if (a[2] == 0) return AscendC::Copy<int32_t, false>(tensor<int32_t>(a[0]), tensor<int32_t>(a[1]), AscendC::MASK_PLACEHOLDER, repeats, strides);
    AscendC::Copy(tensor<int32_t>(a[0]), tensor<int32_t>(a[1]), static_cast<uint64_t>(a[2]), repeats, strides);
});
const Register g_gather("GatherMask", [](Arguments a) {
    uint64_t kept = 0;
    AscendC::GatherMask(tensor<float>(a[0]), tensor<float>(a[1]), uint8_t{7}, true, static_cast<uint32_t>(a[2]), {1, 1, 8, 0}, kept);
});
const Register g_brcb("Brcb", [](Arguments a) {
    AscendC::Brcb(tensor<float>(a[0]), tensor<float>(a[1]), static_cast<uint8_t>(a[2]), {1, 8});
});
const Register g_bytes("Copy bytes", [](Arguments a) {
    AscendC::Copy(tensor<int8_t>(a[0]), tensor<int8_t>(a[1]), uint64_t{32}, 1, {1, 1, 8, 8});
});

}  // namespace

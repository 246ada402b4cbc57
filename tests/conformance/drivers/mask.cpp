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

}  // namespace

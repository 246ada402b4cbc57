#include "machine.h"

namespace {

// Arguments: repeats, dst repeat stride, src repeat stride, dst high half, src high half, 16 dst and 16 src offsets.
template <typename T>
bool register_transpose() {
    const std::string type = " " + type_name<T>();
    Register("TransDataTo5HD" + type, [](Arguments a) {
        uint64_t dst[16], src[16];
        for (int i = 0; i < 16; ++i) {
            dst[i] = reinterpret_cast<uint64_t>(tensor<T>(a[5 + i]).GetPhyAddr());
            src[i] = reinterpret_cast<uint64_t>(tensor<T>(a[21 + i]).GetPhyAddr());
        }
        AscendC::TransDataTo5HD<T>(dst, src, AscendC::TransDataTo5HDParams(a[3] != 0, a[4] != 0, a[0], a[1], a[2]));
    });
    return true;
}

const bool g_registered = register_transpose<uint8_t>() && register_transpose<half>() && register_transpose<float>();
const Register g_square("Transpose", [](Arguments a) { AscendC::Transpose(tensor<half>(a[0]), tensor<half>(a[1])); });
const Register g_axpy("Axpy", [](Arguments a) {
    AscendC::Axpy(tensor<float>(a[0]), tensor<half>(a[1]), scalar<half>(a[2]), static_cast<uint64_t>(a[3]),
                  static_cast<uint8_t>(a[4]), AscendC::UnaryRepeatParams(1, 1, 8, 4));
});
const Register g_mul_add("MulAddDst", [](Arguments a) {
    const uint64_t mask[2] = {static_cast<uint64_t>(a[3]), 0};
    AscendC::MulAddDst(tensor<float>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), mask, static_cast<uint8_t>(a[4]),
                       AscendC::BinaryRepeatParams());
});
const Register g_and_bytes("And uint8", [](Arguments a) {
    AscendC::And(tensor<uint8_t>(a[0]), tensor<uint8_t>(a[1]), tensor<uint8_t>(a[2]), static_cast<int32_t>(a[3]));
});
const Register g_or_words("Or uint32", [](Arguments a) {
    AscendC::Or(tensor<uint32_t>(a[0]), tensor<uint32_t>(a[1]), tensor<uint32_t>(a[2]), static_cast<int32_t>(a[3]));
});

}  // namespace

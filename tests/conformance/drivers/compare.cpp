#include "machine.h"

namespace {

using AscendC::CMPMODE;
using AscendC::SELMODE;

template <typename T>
bool register_compare() {
    const std::string type = " " + type_name<T>();
    Register("Compare" + type, [](Arguments a) {
        AscendC::Compare(tensor<uint8_t>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), static_cast<CMPMODE>(a[3]),
                         static_cast<uint32_t>(a[4]));
    });
    Register("CompareScalar" + type, [](Arguments a) {
        AscendC::CompareScalar(tensor<uint8_t>(a[0]), tensor<T>(a[1]), scalar<T>(a[2]), static_cast<CMPMODE>(a[3]),
                               static_cast<uint32_t>(a[4]));
    });
    Register("Compare repeats" + type, [](Arguments a) {
        const AscendC::BinaryRepeatParams params(1, a[5], a[6], 8, a[7], a[8]);
        AscendC::Compare(tensor<uint8_t>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), static_cast<CMPMODE>(a[3]), uint64_t{1},
                         static_cast<uint8_t>(a[4]), params);
    });
    return true;
}

template <typename T>
bool register_select() {
    const std::string type = " " + type_name<T>();
    Register("Select" + type, [](Arguments a) {
        AscendC::Select(tensor<T>(a[0]), tensor<uint8_t>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]),
                        static_cast<SELMODE>(a[4]), static_cast<uint32_t>(a[5]));
    });
    Register("Select scalar" + type, [](Arguments a) {
        AscendC::Select(tensor<T>(a[0]), tensor<uint8_t>(a[1]), tensor<T>(a[2]), scalar<T>(a[3]),
                        SELMODE::VSEL_TENSOR_SCALAR_MODE, static_cast<uint32_t>(a[4]));
    });
    Register("Select mask" + type, [](Arguments a) {
        const uint64_t mask[2] = {static_cast<uint64_t>(a[5]), static_cast<uint64_t>(a[6])};
        const AscendC::BinaryRepeatParams params(a[8], a[9], a[10], a[11], a[12], a[13]);
        AscendC::Select(tensor<T>(a[0]), tensor<uint8_t>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]),
                        static_cast<SELMODE>(a[4]), mask, static_cast<uint8_t>(a[7]), params);
    });
    Register("Compare register" + type, [](Arguments a) {
        AscendC::Compare(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<CMPMODE>(a[2]), static_cast<uint64_t>(a[3]),
                         AscendC::BinaryRepeatParams());
    });
    Register("Select register" + type, [](Arguments a) {
        AscendC::Select<T, SELMODE::VSEL_CMPMASK_SPR>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]),
                                                      static_cast<uint8_t>(a[3]), AscendC::BinaryRepeatParams());
    });
    Register("Select register scalar" + type, [](Arguments a) {
        AscendC::Select(tensor<T>(a[0]), tensor<uint8_t>(a[1]), tensor<T>(a[2]), static_cast<uint8_t>(a[3]),
                        AscendC::BinaryRepeatParams());
    });
    return true;
}

const bool g_registered = register_compare<half>() && register_compare<float>() && register_compare<int32_t>() &&
                          register_select<half>() && register_select<float>();
const Register g_get("GetCmpMask", [](Arguments a) { AscendC::GetCmpMask(tensor<uint8_t>(a[0])); });
const Register g_set("SetCmpMask", [](Arguments a) { AscendC::SetCmpMask(tensor<uint8_t>(a[0])); });

}  // namespace

#include "machine.h"

namespace {

template <typename T>
using Function = void (*)(const AscendC::LocalTensor<T> &, const AscendC::LocalTensor<T> &,
                          const AscendC::LocalTensor<uint8_t> &, uint32_t);

template <typename T>
AscendC::LocalTensor<uint8_t> scratch(int64_t offset_bytes, int64_t bytes) {
    return AscendC::LocalTensor<uint8_t>(asim::block().ub + offset_bytes, bytes, AscendC::TPosition::VECCALC);
}

// Arguments: dst, src, scratch, bytes of scratch (0: what is left of the unified buffer from there on), count.
template <typename T, typename F, typename G>
void register_function(const std::string &name, F with_scratch, G without) {
    Register(name + " " + type_name<T>(), [=](Arguments a) {
        asim::block().ub_used_bytes = static_cast<uint32_t>(a[2]);
        const auto count = static_cast<uint32_t>(a[4]);
        if (a[3] == 0) return without(tensor<T>(a[0]), tensor<T>(a[1]), count);
        with_scratch(tensor<T>(a[0]), tensor<T>(a[1]), scratch<T>(a[2], a[3]), count);
    });
}

#define FUNCTION(Name)                                                                                       \
    register_function<T>(                                                                                    \
        #Name, [](auto dst, auto src, auto scratch, uint32_t count) { AscendC::Name(dst, src, scratch, count); }, \
        [](auto dst, auto src, uint32_t count) { AscendC::Name(dst, src, count); });

template <typename T>
bool register_math() {
    FUNCTION(Tanh) FUNCTION(Sigmoid) FUNCTION(Gelu) FUNCTION(FasterGelu) FUNCTION(FasterGeluV2)
    FUNCTION(Log2) FUNCTION(Log10) FUNCTION(Floor) FUNCTION(Ceil) FUNCTION(Round) FUNCTION(Trunc) FUNCTION(Rint)
    FUNCTION(Frac) FUNCTION(Sign) FUNCTION(Sin) FUNCTION(Cos) FUNCTION(Tan) FUNCTION(Asin) FUNCTION(Acos) FUNCTION(Atan)
    FUNCTION(Sinh) FUNCTION(Cosh) FUNCTION(Asinh) FUNCTION(Acosh) FUNCTION(Atanh) FUNCTION(Erf) FUNCTION(Erfc)
    FUNCTION(Lgamma) FUNCTION(Digamma)
    register_function<T>(
        "Exp", [](auto dst, auto src, auto tmp, uint32_t n) { AscendC::Exp<T, 10, false>(dst, src, tmp, n); },
        [](auto dst, auto src, uint32_t n) { AscendC::Exp<T, 10, false>(dst, src, n); });
    Register("Silu " + type_name<T>(), [](Arguments a) {
        asim::block().ub_used_bytes = static_cast<uint32_t>(a[2]);
        AscendC::Silu(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<uint32_t>(a[4]));
    });
    Register("Swish " + type_name<T>(), [](Arguments a) {
        asim::block().ub_used_bytes = static_cast<uint32_t>(a[2]);
        AscendC::Swish(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<uint32_t>(a[4]), static_cast<T>(1.5f));
    });
    Register("ClampMax " + type_name<T>(), [](Arguments a) {
        AscendC::ClampMax(tensor<T>(a[0]), tensor<T>(a[1]), scratch<T>(a[2], a[3]), static_cast<T>(0.5f), static_cast<uint32_t>(a[4]));
    });
    Register("ClampMin " + type_name<T>(), [](Arguments a) {
        AscendC::ClampMin(tensor<T>(a[0]), tensor<T>(a[1]), scratch<T>(a[2], a[3]), static_cast<T>(0.5f), static_cast<uint32_t>(a[4]));
    });
    return true;
}

// Arguments: dst, base, exponent, scratch, bytes, count; for scalars their bits.
template <typename T>
bool register_power() {
    const std::string type = " " + type_name<T>();
    Register("Power tensor" + type, [](Arguments a) {
        AscendC::Power<T, false>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), scratch<T>(a[3], a[4]), a[5]);
    });
    Register("Power scalar exponent" + type, [](Arguments a) {
        AscendC::Power<T, false>(tensor<T>(a[0]), tensor<T>(a[1]), scalar<T>(a[2]), scratch<T>(a[3], a[4]), a[5]);
    });
    Register("Power scalar base" + type, [](Arguments a) {
        AscendC::Power<T, false>(tensor<T>(a[0]), scalar<T>(a[1]), tensor<T>(a[2]), scratch<T>(a[3], a[4]), a[5]);
    });
    return true;
}

const bool g_registered = register_math<half>() && register_math<float>() && register_power<half>() &&
                          register_power<float>() && register_power<int32_t>();

}  // namespace

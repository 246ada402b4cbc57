#include "machine.h"

namespace {

using AscendC::DequantParams;
using AscendC::DeQuantMode;

AscendC::LocalTensor<uint8_t> bytes_at(int64_t offset_bytes, int64_t bytes) {
    return AscendC::LocalTensor<uint8_t>(asim::block().ub + offset_bytes, bytes, AscendC::TPosition::VECCALC);
}

template <typename T>
AscendC::LocalTensor<T> sized(int64_t offset_bytes, int64_t elements) {
    return AscendC::LocalTensor<T>(asim::block().ub + offset_bytes, elements * sizeof(T), AscendC::TPosition::VECCALC);
}

// Arguments: dst, src, scales, rows, columns, elements to scale, scratch, bytes.
template <typename D, typename S>
bool register_dequantization() {
    const std::string types = " " + type_name<D>() + " " + type_name<S>();
    Register("AscendDequant" + types, [](Arguments a) {
        const DequantParams params{uint32_t(a[3]), uint32_t(a[4]), uint32_t(a[5])};
        AscendC::AscendDequant<D, S>(tensor<D>(a[0]), tensor<int32_t>(a[1]), tensor<S>(a[2]), bytes_at(a[6], a[7]), params);
    });
    Register("AscendDequant whole rows" + types, [](Arguments a) {
        const DequantParams params{uint32_t(a[3]), uint32_t(a[4]), uint32_t(a[5])};
        AscendC::AscendDequant<D, S, DeQuantMode::DEQUANT_WITH_MULTI_ROW>(tensor<D>(a[0]), tensor<int32_t>(a[1]),
                                                                           tensor<S>(a[2]), bytes_at(a[6], a[7]), params);
    });
    // Elements to scale: of all, in rows as long as the scales.
    Register("AscendDequant elements" + types, [](Arguments a) {
        AscendC::AscendDequant(tensor<D>(a[0]), sized<int32_t>(a[1], a[3] * a[4]), sized<S>(a[2], a[4]), bytes_at(a[6], a[7]),
                               static_cast<uint32_t>(a[5]));
    });
    return true;
}

template <typename D, typename S>
bool register_scalar() {
    Register("AscendDequant scalar " + type_name<D>() + " " + type_name<S>(), [](Arguments a) {
        const DequantParams params{uint32_t(a[3]), uint32_t(a[4]), uint32_t(a[5])};
        AscendC::AscendDequant(tensor<D>(a[0]), tensor<int32_t>(a[1]), scalar<S>(a[2]), bytes_at(a[6], a[7]), params);
    });
    return true;
}

const bool g_registered = register_dequantization<float, float>() && register_dequantization<float, bfloat16_t>() &&
                          register_dequantization<bfloat16_t, float>() && register_dequantization<bfloat16_t, bfloat16_t>() &&
                          register_dequantization<half, uint64_t>() && register_scalar<float, float>() &&
                          register_scalar<float, bfloat16_t>() && register_scalar<bfloat16_t, float>() &&
                          register_scalar<bfloat16_t, bfloat16_t>();

}  // namespace

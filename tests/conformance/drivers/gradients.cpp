#include "machine.h"

namespace {

using namespace AscendC;

LocalTensor<uint8_t> bytes_at(int64_t offset, int64_t bytes) { return LocalTensor<uint8_t>(asim::block().ub + offset, bytes, TPosition::VECCALC); }
template <typename T>
LocalTensor<T> sized(int64_t offset, int64_t elems) {
    return LocalTensor<T>(asim::block().ub + offset, elems * sizeof(T), TPosition::VECCALC);
}

template <typename T>
bool register_norms() {
    const std::string type = " " + type_name<T>();
    // Arguments: dx, res, dy, x, variance, mean, gamma, scratch, bytes, rows, columns.
    Register("LayerNormGrad" + type, [](Arguments a) {
        const LayerNormGradTiling tiling{0, uint32_t(a[9]), 1, uint32_t(a[10]), uint32_t(a[10])};
        LayerNormGrad<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]), tensor<T>(a[5]), tensor<T>(a[6]),
                         bytes_at(a[7], a[8]), T(1e-3f), tiling);
    });
    // Arguments: gamma, beta, res, dy, scratch, bytes, rows, columns.
    Register("LayerNormGradBeta" + type, [](Arguments a) {
        const LayerNormGradBetaTiling tiling{0, uint32_t(a[6]), 1, uint32_t(a[7]), uint32_t(a[7])};
        LayerNormGradBeta<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), bytes_at(a[4], a[5]), tiling);
    });
    // Arguments: output, mean, variance, x, gamma, beta, scratch, bytes, batches, columns.
    Register("BatchNorm" + type, [](Arguments a) {
        const BatchNormTiling tiling{uint32_t(a[8]), uint32_t(a[8]), 1, uint32_t(a[9]), 0, 1.0f / float(a[8])};
        BatchNorm<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]), tensor<T>(a[5]), bytes_at(a[6], a[7]), T(1e-3f),
                     tiling);
    });
    // Arguments: dst, src, left, right, value, height, width, own width, scratch, bytes.
    Register("Pad" + type, [](Arguments a) {
        PadParams params{uint16_t(a[2]), uint16_t(a[3]), int32_t(a[4])};
        PadTiling tiling{uint32_t(a[5]), uint32_t(a[6]), uint32_t(a[7])};
        Pad(tensor<T>(a[0]), tensor<T>(a[1]), params, bytes_at(a[8], a[9]), tiling);
    });
    // Arguments: dst, src, right, height, width, scratch, bytes.
    Register("UnPad" + type, [](Arguments a) {
        UnPadParams params{0, uint16_t(a[2])};
        UnPadTiling tiling{uint32_t(a[3]), uint32_t(a[4])};
        UnPad(tensor<T>(a[0]), tensor<T>(a[1]), params, bytes_at(a[5], a[6]), tiling);
    });
    return true;
}

// Arguments: dst, sum, max, src, factor, sum before, max before, scratch, bytes, rows, stride, columns, update.
template <typename T, typename S>
void flash(Arguments a) {
    const uint32_t rows = uint32_t(a[9]), stride = uint32_t(a[10]);
    SoftmaxFlash<T>(tensor<T>(a[0]), tensor<S>(a[1]), tensor<S>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]), tensor<S>(a[5]), tensor<S>(a[6]), bytes_at(a[7], a[8]),
                    SoftMaxTiling{}, a[12] != 0, {rows, stride, rows, uint32_t(a[11])});
}
const Register kFlash("SoftmaxFlash float32 float32", &flash<float, float>), kFlashHalf("SoftmaxFlash float16 float16", &flash<half, half>);
const Register kFlashMixed("SoftmaxFlash float32 float16", &flash<half, float>);

// Arguments: dst, mean, sum, max, src, factor, mean before, sum before, max before, scratch, bytes, rows, columns, counting rows and columns, loops,
// parts, millionths of alpha.
template <bool update>
void shifted(Arguments a) {
    const SoftMaxParams params(uint32_t(a[11]), uint32_t(a[12]), uint32_t(a[13]), uint32_t(a[14]), uint32_t(a[15]), uint32_t(a[16]), float(a[17]) / 1e6f);
    SoftmaxFlashV3<half, float, update>(tensor<half>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), tensor<float>(a[3]), tensor<half>(a[4]),
                                        tensor<half>(a[5]), tensor<float>(a[6]), tensor<float>(a[7]), tensor<float>(a[8]), bytes_at(a[9], a[10]),
                                        SoftMaxTiling{}, params);
}
const Register kShiftedFirst("SoftmaxFlashV3 first float16", &shifted<false>), kShifted("SoftmaxFlashV3 float16", &shifted<true>);

// Arguments: dst, src, offset, scale, scratch, bytes, elements, rows or columns, groups.
template <typename T, bool transposed, typename In = int8_t>
void anti_quant(Arguments a) {
    const uint32_t elems = uint32_t(a[6]), k = uint32_t(a[7]), groups = uint32_t(a[8]), other = elems / k;
    const AntiQuantShapeInfo info = transposed ? AntiQuantShapeInfo{other, groups, other, groups} : AntiQuantShapeInfo{groups, other, groups, other};
    const LocalTensor<In> src = sized<In>(a[1], std::is_same_v<In, int4b_t> ? elems / 2 : elems);
    AscendAntiQuant<In, T, transposed>(sized<T>(a[0], elems), src, tensor<T>(a[2]), tensor<T>(a[3]), bytes_at(a[4], a[5]), k, info);
}
const Register kAntiHalf("AscendAntiQuant float16", &anti_quant<half, false>), kAntiBf("AscendAntiQuant bfloat16", &anti_quant<bfloat16_t, false>);
const Register kAntiHalfT("AscendAntiQuant transposed float16", &anti_quant<half, true>);
const Register kAntiBfT("AscendAntiQuant transposed bfloat16", &anti_quant<bfloat16_t, true>);
const Register kAntiHalf4("AscendAntiQuant int4 float16", &anti_quant<half, false, int4b_t>);
const Register kAntiBf4("AscendAntiQuant int4 bfloat16", &anti_quant<bfloat16_t, false, int4b_t>);
const Register kAntiHalf4T("AscendAntiQuant int4 transposed float16", &anti_quant<half, true, int4b_t>);
const Register kAntiBf4T("AscendAntiQuant int4 transposed bfloat16", &anti_quant<bfloat16_t, true, int4b_t>);
// Arguments: dst, src, scale, scratch, bytes, elements, rows.
const Register kAntiScaled4("AscendAntiQuant int4 without offset", [](Arguments a) {
    const uint32_t columns = uint32_t(a[5] / a[6]);
    AscendAntiQuant<int4b_t, half, false>(sized<half>(a[0], a[5]), sized<int4b_t>(a[1], a[5] / 2), sized<half>(a[2], columns), bytes_at(a[3], a[4]),
                                          uint32_t(a[6]), AntiQuantShapeInfo{0, 0, 1, columns});
});
// Arguments: dst, src, scratch, bytes, elements; the offset is 2, the scale 3.
const Register kAntiWhole4("AscendAntiQuant int4 by tensor", [](Arguments a) {
    AscendAntiQuant<int4b_t, half, false>(sized<half>(a[0], a[4]), sized<int4b_t>(a[1], a[4] / 2), half(2.0f), half(3.0f), bytes_at(a[2], a[3]), 1);
});

// Arguments: dst, src, n, c, d, h, w, scratch, bytes.
template <const TransDataConfig &config>
void trans_data(Arguments a) {
    const auto plain = MakeLayout(MakeShape(uint32_t(a[2]), uint32_t(a[3]), uint32_t(a[4]), uint32_t(a[5]), uint32_t(a[6])), MakeStride());
    TransDataParams<decltype(MakeLayout(MakeShape(1u, 1u, 1u, 1u, 1u), MakeStride())), decltype(MakeLayout(MakeShape(1u, 1u, 1u, 1u, 1u), MakeStride()))> params{
        plain, plain};
    TransData<config>(tensor<half>(a[0]), tensor<half>(a[1]), bytes_at(a[7], a[8]), params);
}
constexpr TransDataConfig kToBlocks{DataFormat::NCDHW, DataFormat::NDC1HWC0}, kFromBlocks{DataFormat::NDC1HWC0, DataFormat::NCDHW};
constexpr TransDataConfig kToFractals{DataFormat::NCDHW, DataFormat::FRACTAL_Z_3D}, kFromFractals{DataFormat::FRACTAL_Z_3D, DataFormat::NCDHW};
const Register kTo("TransData to NDC1HWC0", &trans_data<kToBlocks>), kFrom("TransData from NDC1HWC0", &trans_data<kFromBlocks>);
const Register kToZ("TransData to FRACTAL_Z_3D", &trans_data<kToFractals>), kFromZ("TransData from FRACTAL_Z_3D", &trans_data<kFromFractals>);

// Arguments: dst, src, elements, scale as bits of float, offset, second half.
const Register kDequant("CastDequant int8", [](Arguments a) {
    SetDeqScale(scalar<float>(a[3]), int16_t(a[4]), true);
    if (a[5] != 0) CastDequant<int8_t, int16_t, false, true>(tensor<int8_t>(a[0]), tensor<int16_t>(a[1]), uint32_t(a[2]));
    else CastDequant<int8_t, int16_t, false, false>(tensor<int8_t>(a[0]), tensor<int16_t>(a[1]), uint32_t(a[2]));
});
const Register kDequantSign("CastDequant wrong sign", [](Arguments a) {
    SetDeqScale(1.0f, 0, false);
    CastDequant<int8_t, int16_t, false, false>(tensor<int8_t>(a[0]), tensor<int16_t>(a[1]), uint32_t(a[2]));
});
// Arguments: dst, src, elements, table.
const Register kDequantTable("CastDequant table", [](Arguments a) {
    VdeqInfo info;
    for (int i = 0; i < 16; ++i) info.vdeqScale[i] = 0.5f * float(i), info.vdeqOffset[i] = int16_t(i - 8), info.vdeqSignMode[i] = false;
    SetDeqScale(tensor<uint64_t>(a[3]), info);
    CastDequant<uint8_t, int16_t>(tensor<uint8_t>(a[0]), tensor<int16_t>(a[1]), uint32_t(a[2]));
});

// Arguments: dst, src, offsets, factors, horizontal and vertical repeats, by blocks, offset of rows, scratch, bytes.
const Register kBilinear("BilinearInterpolation", [](Arguments a) {
    BilinearInterpolation(tensor<half>(a[0]), tensor<half>(a[1]), tensor<uint32_t>(a[2]), tensor<half>(a[3]), uint64_t{128}, uint8_t(a[4]), a[6] != 0,
                          uint16_t{1}, uint16_t(a[7]), uint8_t(a[5]), bytes_at(a[8], a[9]));
});

// Arguments: first and last block of 32 bytes, where to write.
const Register kWatch("CheckLocalMemoryIA", [](Arguments a) {
    CheckLocalMemoryIAParam watch(0, uint32_t(a[0]), uint32_t(a[1]), false, true, false, true, false, false, true);
    CheckLocalMemoryIA(watch);
    if (a[2] >= 0) Duplicate(tensor<float>(a[2]), 1.0f, 64);
    else tensor<float>(0).SetValue(uint32_t(-a[2]), 1.0f);
    watch.isEnable = false;
    CheckLocalMemoryIA(watch);
});

// Arguments: packed numbers, halves, halves again, repeats, mask.
const Register kInt4("Cast int4", [](Arguments a) {
    const auto packed = tensor<int8_t>(a[0]).ReinterpretCast<int4b_t>();
    const auto repeats = static_cast<uint8_t>(a[3]);
    Cast<int4b_t, half>(packed, tensor<half>(a[1]), RoundMode::CAST_RINT, uint64_t(a[4]), repeats, UnaryRepeatParams{1, 1, 2, 8});
    Cast<half, int4b_t>(tensor<half>(a[2]), packed, RoundMode::CAST_NONE, uint64_t(a[4]), repeats, UnaryRepeatParams{1, 1, 8, 2});
});

// Arguments: dst, src, rows, columns, scratch, bytes; along the first axis, or the last.
template <typename T, int32_t axis>
void broadcast_of(Arguments a) {
    const uint32_t to[] = {uint32_t(a[2]), uint32_t(a[3])}, from[] = {axis == 0 ? 1u : to[0], axis == 0 ? to[1] : 1u};
    BroadCast<T, 2, axis>(tensor<T>(a[0]), tensor<T>(a[1]), to, from, bytes_at(a[4], a[5]));
}
const Register kRowsOfBytes("BroadCast rows int8", &broadcast_of<int8_t, 0>), kColumnsOfBytes("BroadCast columns uint8", &broadcast_of<uint8_t, 1>);

const bool kRegistered = register_norms<half>() && register_norms<float>();

static_assert(Crd2Idx(MakeCoord(1, 2, 3), MakeLayout(MakeShape(3, 4, 5), MakeStride(20, 5, 1))) == 33);
static_assert(Crd2Idx(MakeCoord(11, 12), MakeShape(MakeShape(2, 4), MakeShape(3, 5)), MakeStride(MakeStride(3, 6), MakeStride(1, 24))) == 129);

}  // namespace

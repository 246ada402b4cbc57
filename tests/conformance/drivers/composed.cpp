#include "machine.h"

namespace {

AscendC::LocalTensor<uint8_t> bytes_at(int64_t offset_bytes, int64_t bytes) {
    return AscendC::LocalTensor<uint8_t>(asim::block().ub + offset_bytes, bytes, AscendC::TPosition::VECCALC);
}

// Arguments: dst, src0, src1, scratch, bytes of scratch (0: what is left of the unified buffer from there on), count.
template <typename T, typename F, typename G>
void register_pair(const std::string &name, F with_scratch, G without) {
    Register(name + " " + type_name<T>(), [=](Arguments a) {
        asim::block().ub_used_bytes = static_cast<uint32_t>(a[3]);
        const auto count = static_cast<uint32_t>(a[5]);
        if (a[4] == 0) return without(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), count);
        with_scratch(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), bytes_at(a[3], a[4]), count);
    });
}

#define PAIR(Name, ...)                                                                                                 \
    register_pair<T>(                                                                                                   \
        #Name, [](auto dst, auto a, auto b, auto tmp, uint32_t n) { AscendC::Name(dst, a, b, ##__VA_ARGS__, tmp, n); }, \
        [](auto dst, auto a, auto b, uint32_t n) { AscendC::Name(dst, a, b, ##__VA_ARGS__, n); });

constexpr AscendC::CumSumConfig kAcross{true, false, true}, kDown{false, false, true};
constexpr AscendC::WelfordUpdateConfig kInPlace{true};

// Arguments: dst, last row, src, rows, columns, scratch, bytes.
template <typename T>
bool register_sums() {
    const std::string type = " " + type_name<T>();
    Register("CumSum across" + type, [](Arguments a) {
        AscendC::CumSum<T, kAcross>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), bytes_at(a[5], a[6]),
                                    {uint32_t(a[3]), uint32_t(a[4])});
    });
    Register("CumSum down" + type, [](Arguments a) {
        AscendC::CumSum<T, kDown>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), bytes_at(a[5], a[6]),
                                  {uint32_t(a[3]), uint32_t(a[4])});
    });
    PAIR(SwiGLU, 1.5f) PAIR(GeGLU) PAIR(ReGlu) PAIR(Fmod)
    return true;
}

// Rows of a round of the layer norms and where its parts lie, as a host function plans them.
template <typename Tiling>
Tiling planned_rows(uint32_t rows, uint32_t columns, uint32_t original, uint32_t rows_at_once, bool wide) {
    Tiling tiling{};
    tiling.bLength = rows;
    tiling.sLength = 1;
    tiling.hLength = columns;
    tiling.originalHLength = original;
    tiling.lastDimValueBack = 1.0f / static_cast<float>(original);
    tiling.inputRoundSize = rows_at_once * columns;
    const uint32_t aligned = wide ? 0 : (rows + 7) / 8 * 8;
    tiling.varianceTmpTensorPos = aligned;
    tiling.firstTmpStartPos = 2 * aligned;
    tiling.secondTmpStartPos = tiling.firstTmpStartPos + tiling.inputRoundSize;
    tiling.thirdTmpStartPos = tiling.secondTmpStartPos + tiling.inputRoundSize;
    return tiling;
}

// Arguments: dst, mean, variance, x, gamma, beta, rows, columns, columns that count, rows at once, scratch, bytes, bits of epsilon.
template <typename T>
bool register_norms() {
    const std::string type = " " + type_name<T>();
    constexpr bool wide = std::is_same_v<T, float>;
    Register("LayerNorm" + type, [](Arguments a) {
        const auto tiling = planned_rows<LayerNormTiling>(a[6], a[7], a[8], a[9], wide);
        AscendC::LayerNorm<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]), tensor<T>(a[5]),
                              bytes_at(a[10], a[11]), scalar<T>(a[12]), tiling);
    });
    // The source is also what is added to it, scaled by 2.
    Register("DeepNorm" + type, [](Arguments a) {
        const auto tiling = planned_rows<DeepNormTiling>(a[6], a[7], a[8], a[9], wide);
        AscendC::DeepNorm<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[3]), tensor<T>(a[5]),
                             tensor<T>(a[4]), bytes_at(a[10], a[11]), static_cast<T>(2.0f), scalar<T>(a[12]), tiling);
    });
    Register("LayerNorm of rows" + type, [](Arguments a) {
        LayerNormSeparateTiling tiling{};
        tiling.inputRoundSize = a[9] * a[7];
        tiling.rValueBack = 1.0f / static_cast<float>(a[8]);
        const AscendC::LayerNormPara para{uint32_t(a[6]), uint32_t(a[8]), uint32_t(a[7])};
        AscendC::LayerNorm<T, T>(tensor<T>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]),
                                 tensor<T>(a[5]), static_cast<float>(scalar<T>(a[12])), bytes_at(a[10], a[11]), para, tiling);
    });
    Register("Normalize" + type, [](Arguments a) {
        const AscendC::NormalizePara para{uint32_t(a[6]), uint32_t(a[8]), uint32_t(a[7])};
        AscendC::Normalize<T, T>(tensor<T>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), tensor<float>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]),
                                 tensor<T>(a[5]), bytes_at(a[10], a[11]), static_cast<float>(scalar<T>(a[12])), para);
    });
    // Likewise, with basic blocks and by how many elements the rounds of the plan are too short instead of mean and variance.
    Register("RmsNorm" + type, [](Arguments a) {
        RmsNormTiling tiling{};
        tiling.bLength = a[6];
        tiling.sLength = 1;
        tiling.hLength = a[7];
        tiling.originalHLength = a[8];
        tiling.reciprocalOfHLength = 1.0f / static_cast<float>(a[8]);
        tiling.mainBsLength = a[9];
        tiling.mainBshLength = a[9] * a[7] - a[2];
        const auto dst = tensor<T>(a[0]), src = tensor<T>(a[3]), gamma = tensor<T>(a[4]);
        if (a[1] != 0) return AscendC::RmsNorm<T, true>(dst, src, gamma, bytes_at(a[10], a[11]), scalar<T>(a[12]), tiling);
        AscendC::RmsNorm<T>(dst, src, gamma, bytes_at(a[10], a[11]), scalar<T>(a[12]), tiling);
    });
    // Arguments: dst, mean, variance, x, gamma, beta, n, groups, channels of a group, elements of a channel, scratch, bytes, epsilon.
    Register("GroupNorm" + type, [](Arguments a) {
        GroupNormTiling tiling{};
        tiling.n = a[6];
        tiling.g = a[7];
        tiling.d = a[8];
        tiling.c = a[7] * a[8];
        tiling.hw = a[9];
        AscendC::GroupNorm<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), tensor<T>(a[4]), tensor<T>(a[5]),
                              bytes_at(a[10], a[11]), scalar<T>(a[12]), tiling);
    });
    // Arguments: dst, src, mask, rows, columns, columns of the mask, scratch, bytes.
    Register("DropOut" + type, [](Arguments a) {
        AscendC::DropOutShapeInfo info;
        info.firstAxis = a[3];
        info.srcLastAxis = a[4];
        info.maskLastAxis = a[5];
        AscendC::DropOut<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<uint8_t>(a[2]), bytes_at(a[6], a[7]), 0.5f, info);
    });
    // Arguments: dst, src, rows, columns, kind.
    Register("Transpose" + type, [](Arguments a) {
        ConfusionTransposeTiling tiling{};
        tiling.param1 = a[2];
        tiling.param2 = a[3];
        AscendC::Transpose(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<AscendC::TransposeType>(a[4]), tiling);
    });
    // Arguments: mean and variance after, before, x, elements, scratch, bytes, bits of 1 / n as float.
    Register("WelfordUpdate" + type, [](Arguments a) {
        const AscendC::WelfordUpdateParam para{1, AscendC::AlignUp(uint32_t(a[5]), 16u), uint32_t(a[5]), scalar<float>(a[8])};
        AscendC::WelfordUpdate<T, float>(tensor<float>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), tensor<float>(a[3]),
                                         tensor<T>(a[4]), bytes_at(a[6], a[7]), para);
    });
    // Likewise, with the number of elements in all at the end.
    Register("WelfordUpdate in place" + type, [](Arguments a) {
        const AscendC::WelfordUpdateParam para{1, uint32_t(a[9]), uint32_t(a[5]), scalar<float>(a[8])};
        AscendC::WelfordUpdate<T, float, false, kInPlace>(tensor<float>(a[0]), tensor<float>(a[1]), tensor<float>(a[2]), tensor<float>(a[3]),
                                                          tensor<T>(a[4]), bytes_at(a[6], a[7]), para);
    });
    return true;
}

// Arguments: dst, src, mask, bytes of the mask, rows, columns, columns of the mask, scratch, bytes.
template <typename T, uint32_t mode>
bool register_drop_out() {
    Register("DropOut mode " + std::to_string(mode) + " " + type_name<T>(), [](Arguments a) {
        AscendC::DropOutShapeInfo info;
        info.firstAxis = a[4];
        info.srcLastAxis = a[5];
        info.maskLastAxis = a[6];
        AscendC::DropOut<T, false, mode>(tensor<T>(a[0]), tensor<T>(a[1]), bytes_at(a[2], a[3]), bytes_at(a[7], a[8]), 0.5f, info);
    });
    return true;
}
template <typename T>
bool register_drop_outs() {
    return register_drop_out<T, 0>() && register_drop_out<T, 1>() && register_drop_out<T, 2>() && register_drop_out<T, 3>() &&
           register_drop_out<T, 4>();
}

// Arguments: dst, sums, maxima, src, rows, columns, scratch, bytes.
template <typename T>
bool register_softmax() {
    const std::string type = " " + type_name<T>();
    Register("LogSoftMax" + type, [](Arguments a) {
        const uint32_t rows = a[4], columns = a[5];
        AscendC::LogSoftMax<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), bytes_at(a[6], a[7]), LogSoftMaxTiling{},
                               {rows, columns, rows, columns});
    });
    Register("SimpleSoftMax" + type, [](Arguments a) {
        const uint32_t rows = a[4], columns = a[5];
        AscendC::SimpleSoftMax<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), tensor<T>(a[3]), bytes_at(a[6], a[7]), SoftMaxTiling{},
                                  {rows, columns, rows, columns});
    });
    // Arguments: rows' values, maxima, bits to look for, bits to write, rows, columns; returns by the first element at 0.
    Register("AdjustSoftMaxRes" + type, [](Arguments a) {
        const uint32_t rows = a[4], columns = a[5];
        const bool found = AscendC::AdjustSoftMaxRes<T, T>(tensor<T>(a[0]), tensor<T>(a[1]), a[2], scalar<T>(a[3]), {rows, columns, rows, columns});
        tensor<int32_t>(a[6]).SetValue(0, found);
    });
    return true;
}

// Arguments: values, indices, src, indices of src, finished rows, rows, columns, columns that count, k, largest, scratch, bytes.
template <typename T, bool own_indices, bool finishes, AscendC::TopKMode mode>
void top_k(Arguments a) {
    const AscendC::TopKInfo info{int32_t(a[5]), int32_t(a[6]), int32_t(a[7])};
    AscendC::TopK<T, own_indices, finishes, false, mode>(tensor<T>(a[0]), tensor<int32_t>(a[1]), tensor<T>(a[2]), tensor<int32_t>(a[3]),
                                                         tensor<bool>(a[4]), bytes_at(a[10], a[11]), int32_t(a[8]), TopkTiling{}, info, a[9] != 0);
}

template <typename T>
bool register_topk() {
    using AscendC::TopKMode;
    const std::string type = " " + type_name<T>();
    Register("TopK" + type, top_k<T, false, false, TopKMode::TOPK_NORMAL>);
    Register("TopK indexed" + type, top_k<T, true, true, TopKMode::TOPK_NORMAL>);
    Register("TopK small" + type, top_k<T, false, false, TopKMode::TOPK_NSMALL>);
    // Arguments: dst, src, scratch, bytes, scale and offset as bits of float, elements.
    Register("AscendQuant" + type, [](Arguments a) {
        AscendC::AscendQuant<T>(tensor<int8_t>(a[0]), tensor<T>(a[1]), bytes_at(a[2], a[3]), scalar<float>(a[4]), scalar<float>(a[5]), uint32_t(a[6]));
    });
    // Arguments: dst, src, scratch, bytes, scales, offsets, columns, elements.
    Register("AscendQuant columns" + type, [](Arguments a) {
        const uint32_t columns = a[6];
        AscendC::AscendQuant<T>(tensor<int8_t>(a[0]), tensor<T>(a[1]), bytes_at(a[2], a[3]), tensor<T>(a[4]), tensor<T>(a[5]), columns, columns,
                                uint32_t(a[7]));
    });
    // Likewise with the bits of one offset.
    Register("AscendQuant one offset" + type, [](Arguments a) {
        AscendC::AscendQuant<T>(tensor<int8_t>(a[0]), tensor<T>(a[1]), bytes_at(a[2], a[3]), tensor<T>(a[4]), scalar<T>(a[5]), uint32_t(a[6]),
                                uint32_t(a[7]));
    });
    return true;
}

// Arguments: dst, src, rows, columns, scratch, bytes.
template <typename T>
bool register_flags() {
    namespace Reduce = AscendC::Pattern::Reduce;
    const std::string type = " " + type_name<T>();
#define FLAGS(Name, pattern)                                                                                            \
    Register(#Name " " #pattern + type, [](Arguments a) {                                                               \
        const uint32_t shape[] = {uint32_t(a[2]), uint32_t(a[3])};                                                      \
        AscendC::Name<T, Reduce::pattern>(tensor<T>(a[0]), tensor<T>(a[1]), bytes_at(a[4], a[5]), shape, true);         \
    });
    FLAGS(ReduceAll, AR) FLAGS(ReduceAll, RA) FLAGS(ReduceAny, AR) FLAGS(ReduceAny, RA)
    if constexpr (std::is_same_v<T, float>) {
        FLAGS(ReduceProd, AR) FLAGS(ReduceProd, RA) FLAGS(ReduceSum, AR) FLAGS(ReduceSum, RA) FLAGS(ReduceMean, AR)
        FLAGS(ReduceMean, RA) FLAGS(ReduceMax, AR) FLAGS(ReduceMax, RA) FLAGS(ReduceMin, AR) FLAGS(ReduceMin, RA)
    }
    return true;
}

// Arguments: dst, src0, src1, scratch, bytes, elements.
const Register g_xor_sum("ReduceXorSum", [](Arguments a) {
    AscendC::ReduceXorSum<int16_t>(tensor<int16_t>(a[0]), tensor<int16_t>(a[1]), tensor<int16_t>(a[2]), bytes_at(a[3], a[4]), uint32_t(a[5]));
});
const Register g_xor("Xor int16", [](Arguments a) {
    AscendC::Xor(tensor<int16_t>(a[0]), tensor<int16_t>(a[1]), tensor<int16_t>(a[2]), bytes_at(a[3], a[4]), uint32_t(a[5]));
});

// Arguments: mean, variance, means, variances, counts or 0, scratch, bytes, values, head count and length, tail count and length,
// how many values there are in all, as bits of float.
const Register g_welford_finalize("WelfordFinalize", [](Arguments a) {
    AscendC::WelfordFinalizePara para{};
    para.rnLength = static_cast<uint32_t>(a[8]);
    para.abLength = static_cast<uint32_t>(a[7]);
    para.headCount = static_cast<uint32_t>(a[8]);
    para.headCountLength = static_cast<uint32_t>(a[9]);
    para.tailCount = static_cast<uint32_t>(a[10]);
    para.tailCountLength = static_cast<uint32_t>(a[11]);
    para.abRec = 1.0f / static_cast<float>(a[7]);
    para.rRec = 1.0f / scalar<float>(a[12]);
    const auto mean = tensor<float>(a[0]), variance = tensor<float>(a[1]), means = tensor<float>(a[2]), variances = tensor<float>(a[3]);
    if (a[4] == 0) return AscendC::WelfordFinalize(mean, variance, means, variances, bytes_at(a[5], a[6]), para);
    AscendC::WelfordFinalize<false>(mean, variance, means, variances, tensor<int32_t>(a[4]), bytes_at(a[5], a[6]), para);
});

// Arguments: dst, src0, src1, elements.
template <typename D, typename S>
bool register_fused() {
    const std::string type = " " + type_name<D>() + " " + type_name<S>();
    Register("AddReluCast" + type, [](Arguments a) { AscendC::AddReluCast(tensor<D>(a[0]), tensor<S>(a[1]), tensor<S>(a[2]), uint32_t(a[3])); });
    Register("SubReluCast" + type, [](Arguments a) { AscendC::SubReluCast(tensor<D>(a[0]), tensor<S>(a[1]), tensor<S>(a[2]), uint32_t(a[3])); });
    return true;
}
// Arguments: dst, src, bits of the scalar, scratch, bytes, elements.
template <typename T>
bool register_axpy() {
    Register("Axpy " + type_name<T>(), [](Arguments a) {
        AscendC::Axpy(tensor<T>(a[0]), tensor<half>(a[1]), scalar<half>(a[2]), bytes_at(a[3], a[4]), uint32_t(a[5]));
    });
    return true;
}
const Register g_mul_cast("MulCast", [](Arguments a) {
    AscendC::MulCast(tensor<uint8_t>(a[0]), tensor<half>(a[1]), tensor<half>(a[2]), uint32_t(a[3]));
});
const Register g_add_deq_relu("AddDeqRelu", [](Arguments a) {
    AscendC::SetDeqScale(static_cast<half>(0.5f));
    AscendC::AddDeqRelu(tensor<half>(a[0]), tensor<int32_t>(a[1]), tensor<int32_t>(a[2]), int32_t(a[3]));
});

const bool g_registered = register_sums<half>() && register_sums<float>() && register_norms<half>() && register_norms<float>() &&
                          register_softmax<half>() && register_softmax<float>() && register_topk<half>() && register_topk<float>() &&
                          register_flags<uint8_t>() && register_flags<float>() && register_fused<int8_t, half>() &&
                          register_fused<half, float>() && register_fused<int8_t, int16_t>() && register_axpy<half>() && register_axpy<float>() &&
                          register_drop_outs<half>() && register_drop_outs<float>();

}  // namespace

// One call of every declared contract. Arguments of overlaps: where the result, the source and the temporary buffer begin; further
// sources lie apart. Arguments of ranges: the number. A row without a call here does not compile.
#include "machine.h"

#include "asim/machine/gm.h"
#include "asim/trace/record.h"

namespace {

using namespace AscendC;
using asim::LibraryContract;
using asim::Op;
using asim::ParameterRange;

constexpr int64_t kOther = 96 * 1024, kFar = 112 * 1024, kThird = 128 * 1024, kFourth = 144 * 1024;
constexpr int32_t kCount = 256;
constexpr uint32_t kRows = 16, kColumns = 16, kTmpBytes = 32 * 1024;
constexpr WelfordUpdateConfig kUpdate{false};

LocalTensor<float> result(Arguments a) { return tensor<float>(a[0])[0]; }
LocalTensor<float> source(Arguments a) { return tensor<float>(a[1])[0]; }
LocalTensor<uint8_t> scratch(Arguments a) {
    return LocalTensor<uint8_t>(asim::block().ub + a[2], kTmpBytes, TPosition::VECCALC);
}
template <typename T = float>
LocalTensor<T> sized(int64_t offset, uint32_t elems) {
    return LocalTensor<T>(asim::block().ub + offset, elems * sizeof(T), TPosition::VECCALC);
}

template <LibraryContract C>
struct Library;

#define LIBRARY(Name, ...)                                                                                       \
    template <>                                                                                                  \
    struct Library<LibraryContract::Name> {                                                                      \
        static void call([[maybe_unused]] Arguments a) { __VA_ARGS__; }                                          \
    };
#define FUNCTION(Name) LIBRARY(Name, Name(result(a), source(a), scratch(a), kCount))
FUNCTION(Acos) FUNCTION(Acosh) FUNCTION(Asin) FUNCTION(Asinh) FUNCTION(Atan) FUNCTION(Atanh) FUNCTION(Ceil) FUNCTION(Cos) FUNCTION(Cosh)
FUNCTION(Digamma) FUNCTION(Erf) FUNCTION(Erfc) FUNCTION(FasterGelu) FUNCTION(FasterGeluV2) FUNCTION(Floor) FUNCTION(Frac) FUNCTION(Gelu)
FUNCTION(Lgamma) FUNCTION(Log10) FUNCTION(Log2) FUNCTION(Rint) FUNCTION(Round) FUNCTION(Sigmoid) FUNCTION(Sign) FUNCTION(Sin)
FUNCTION(Sinh) FUNCTION(Tan) FUNCTION(Tanh) FUNCTION(Trunc)
#define PAIR(Name, ...) LIBRARY(Name, Name(result(a), source(a), sized(kOther, kCount), ##__VA_ARGS__, scratch(a), kCount))
PAIR(Fmod) PAIR(GeGLU) PAIR(ReGlu) PAIR(SwiGLU, 1.0f) PAIR(Power)
#define REDUCTION(Name) \
    LIBRARY(Name, const uint32_t shape[] = {kRows, kColumns}; Name<float, Pattern::Reduce::AR>(result(a), source(a), scratch(a), shape, true))
REDUCTION(ReduceAll) REDUCTION(ReduceAny) REDUCTION(ReduceMax) REDUCTION(ReduceMean) REDUCTION(ReduceMin) REDUCTION(ReduceProd) REDUCTION(ReduceSum)
LIBRARY(AscendDequant, AscendDequant<float, float>(result(a), tensor<int32_t>(a[1]), sized(kOther, kColumns), scratch(a), DequantParams{kRows, kColumns, kColumns}))
LIBRARY(AscendQuant, AscendQuant(tensor<int8_t>(a[0]), sized(a[1], kCount), scratch(a), 1.0f, 0.0f, kCount))
LIBRARY(Axpy, Axpy(result(a), source(a), 2.0f, scratch(a), static_cast<uint32_t>(kCount)))
LIBRARY(BroadCast, const uint32_t to[] = {kRows, kColumns}; const uint32_t from[] = {1, kColumns};
        BroadCast<float, 2, 0>(result(a), source(a), to, from, scratch(a)))
LIBRARY(ClampMax, ClampMax(result(a), source(a), scratch(a), 1.0f, static_cast<uint32_t>(kCount)))
LIBRARY(ClampMin, ClampMin(result(a), source(a), scratch(a), 1.0f, static_cast<uint32_t>(kCount)))
LIBRARY(DropOut, DropOutShapeInfo info; info.firstAxis = kRows; info.srcLastAxis = 32; info.maskLastAxis = 32;
        DropOut<float>(result(a), source(a), sized<uint8_t>(kOther, kRows * 32), scratch(a), 0.5f, info))
LIBRARY(ExpPrecise, (Exp<float, 10>(result(a), source(a), scratch(a), static_cast<uint32_t>(kCount))))
LIBRARY(LayerNorm, LayerNormSeparateTiling tiling{}; tiling.inputRoundSize = kCount; tiling.rValueBack = 1.0f / kColumns;
        const LayerNormPara para{kRows, kColumns, kColumns};
        LayerNorm<float, float>(result(a), sized(kOther, kRows), sized(kFar, kRows), source(a), sized(kThird, kColumns), sized(kFourth, kColumns), 1.0f,
                                scratch(a), para, tiling))
LIBRARY(Log, Log(result(a), source(a), static_cast<uint32_t>(kCount)))
LIBRARY(LogSoftMax, LogSoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = kColumns; tiling.srcSize = kCount; tiling.reduceM = kRows; tiling.splitM = kRows;
        tiling.splitK = kColumns; tiling.splitSize = kCount; tiling.rangeM = 1;
        LogSoftMax(result(a), sized(kOther, 8 * kRows), sized(kFar, 8 * kRows), source(a), scratch(a), tiling, {kRows, kColumns, kRows, kColumns}))
LIBRARY(Mean, Mean(result(a), source(a), scratch(a), MeanParams{kRows, kColumns, kColumns}))
LIBRARY(Normalize, const NormalizePara para{kRows, kColumns, kColumns};
        Normalize<float, float>(result(a), sized(kOther, kRows), sized(kFar, kRows), sized(kFar + 1024, kRows), source(a), sized(kThird, kColumns),
                                sized(kFourth, kColumns), scratch(a), 1.0f, para))
LIBRARY(ReduceXorSum, ReduceXorSum(tensor<int16_t>(a[0]), sized<int16_t>(a[1], kCount), sized<int16_t>(kOther, kCount), scratch(a), static_cast<uint32_t>(kCount)))
LIBRARY(Select, SelectWithBytesMaskShapeInfo info; info.firstAxis = kRows; info.srcLastAxis = kColumns; info.maskLastAxis = 32;
        SelectWithBytesMask(result(a), source(a), 1.0f, sized<uint8_t>(kOther, kRows * 32), scratch(a), info))
LIBRARY(Silu, Silu(result(a), source(a), static_cast<uint32_t>(kCount)))
LIBRARY(SimpleSoftMax, SoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = kColumns; tiling.srcSize = kCount; tiling.reduceM = kRows; tiling.splitM = kRows;
        tiling.splitK = kColumns; tiling.splitSize = kCount; tiling.rangeM = 1;
        SimpleSoftMax(result(a), sized(kOther, 8 * kRows), sized(kFar, 8 * kRows), source(a), scratch(a), tiling, {kRows, kColumns, kRows, kColumns}))
LIBRARY(SoftMax, SoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = kColumns; SoftMax<float>(result(a), source(a), scratch(a), tiling,
                                                                                                       {kRows, kColumns, kRows, kColumns}))
LIBRARY(SoftmaxFlashV2, SoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = 64;
        SoftmaxFlashV2<float>(result(a), sized(kOther, 8 * kRows), sized(kFar, 8 * kRows), source(a), sized(kThird, 8 * kRows), sized(kFourth, 8 * kRows),
                              sized(kFourth + 4096, 8 * kRows), scratch(a), tiling, {kRows, 64, kRows, 64}))
LIBRARY(SoftmaxGrad, SoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = kColumns;
        SoftmaxGrad<float>(result(a), sized(kOther, kCount), source(a), scratch(a), tiling, false, {kRows, kColumns, kRows, kColumns}))
LIBRARY(Sort, LocalTensor<float> other = sized(kThird, 2 * kCount);
        Sort<float, true>(result(a), source(a), sized<uint32_t>(kOther, kCount), other, kCount / 32))
LIBRARY(Sum, Sum(result(a), source(a), scratch(a), SumParams{kRows, kColumns, kColumns}))
LIBRARY(Swish, Swish(result(a), source(a), static_cast<uint32_t>(kCount), 1.0f))
LIBRARY(TopK, TopkTiling tiling{}; const TopKInfo info{1, 64, 64};
        TopK<float>(result(a), sized<int32_t>(kOther, 64), source(a), sized<int32_t>(kFar, 64), sized<bool>(kThird, 32), scratch(a), 8, tiling, info, true))
LIBRARY(WelfordFinalize, const WelfordFinalizePara para{1, kCount, 2, 0, 1, kCount, 0.5f / kCount, 0.5f};
        WelfordFinalize(result(a), sized(kOther, 8), sized(a[1], kCount), sized(kFar, kCount), scratch(a), para))
LIBRARY(WelfordUpdate, const WelfordUpdateParam para{1, kCount, kCount, 0.5f};
        WelfordUpdate<float, float, false, kUpdate>(result(a), sized(kOther, kCount), source(a), sized(kFar, kCount), sized(kThird, kCount), scratch(a), para))
LIBRARY(Xor, Xor(tensor<int16_t>(a[0]), sized<int16_t>(a[1], kCount), sized<int16_t>(kOther, kCount), scratch(a), static_cast<uint32_t>(kCount)))

LIBRARY(RmsNorm, RmsNormTiling tiling{}; tiling.bLength = kRows; tiling.sLength = 1; tiling.hLength = tiling.originalHLength = kColumns;
        tiling.reciprocalOfHLength = 1.0f / kColumns; tiling.mainBsLength = tiling.mainBsLengthAlign = kRows; tiling.mainBshLength = kCount; tiling.loopRound = 1;
        RmsNorm(result(a), sized(kOther, kCount), sized(a[1], kColumns), scratch(a), 1.0f, tiling))
LIBRARY(AscendAntiQuant, AscendAntiQuant<int8_t, half, false>(sized<half>(a[0], kCount), sized<int8_t>(a[1], kCount), half(1.0f), half(2.0f), scratch(a), kCount))
constexpr TransDataConfig kPacks{DataFormat::NCDHW, DataFormat::NDC1HWC0};
LIBRARY(TransData, const auto plain = MakeLayout(MakeShape(1, 16, 1, 1, 16), MakeStride()); const auto blocks = MakeLayout(MakeShape(1, 1, 1, 1, 16, 16), MakeStride());
        const TransDataParams<decltype(MakeLayout(MakeShape(1, 16, 1, 1, 16), MakeStride())), decltype(MakeLayout(MakeShape(1, 1, 1, 1, 16, 16), MakeStride()))> params{plain, blocks};
        TransData<kPacks>(tensor<half>(a[0]), tensor<half>(a[1]), scratch(a), params))
LIBRARY(SoftmaxFlash, SoftMaxTiling tiling{}; tiling.srcM = kRows; tiling.srcK = kColumns;
        SoftmaxFlash(result(a), sized(kOther, 8 * kRows), sized(kFar, 8 * kRows), source(a), sized(kThird, 8 * kRows), sized(kFourth, 8 * kRows),
                     sized(kFourth + 4096, 8 * kRows), scratch(a), tiling, false, {kRows, kColumns, kRows, kColumns}))
LIBRARY(SoftmaxFlashV3, SoftmaxFlashV3<half, float>(sized<half>(a[0], 8 * 512), sized(kOther, 64), sized(kFar, 64), sized(kFar + 1024, 64),
        sized<half>(a[1], 8 * 512), sized<half>(kThird, 128), sized(kFourth, 64), sized(kFourth + 1024, 64), sized(kFourth + 2048, 64), scratch(a),
        SoftMaxTiling{}, SoftMaxParams{8, 512, 8, 512}))

#define CONTRACT(name, call_name, overlap, page) \
    const Register kLibrary_##name(#name, [](Arguments a) { Library<LibraryContract::name>::call(a); });
#include "asim/check/contracts.def"

// Instructions, over whole repeats in one and in several.
template <Op O>
void elementwise(Arguments a) {
    using T = typename std::conditional_t<asim::supports<O, float>, float, int16_t>;
    const auto dst = tensor<T>(a[0]), src = tensor<T>(a[1]), other = tensor<T>(kOther);
    const auto shape = asim::Shape::first(kCount);
    if constexpr (asim::form_of(O) == asim::Form::unary) asim::unary<O, T>(asim::linear(dst), asim::linear(src), shape);
    else if constexpr (asim::form_of(O) == asim::Form::with_scalar) asim::with_scalar<O, T>(asim::linear(dst), asim::linear(src), T(1), shape);
    else asim::binary<O, T>(asim::linear(dst), asim::linear(src), asim::linear(other), shape);
}
#define ELEMENTWISE(name, form, cost, types, result) const Register kInstruction_##name("instruction " #name, &elementwise<Op::name>);
#include "asim/trace/instructions.def"

const Register kGather("instruction Gather", [](Arguments a) { Gather(result(a), source(a), tensor<uint32_t>(kOther), 0u, uint32_t{kCount}); });
const Register kGatherb("instruction Gatherb", [](Arguments a) { Gatherb(result(a), source(a), tensor<uint32_t>(kOther), 4, GatherRepeatParams{1, 8}); });
const Register kBrcb("instruction Brcb", [](Arguments a) { Brcb(result(a), source(a), 4, BrcbRepeatParams{1, 8}); });
const Register kSort32("instruction Sort32", [](Arguments a) { Sort32(result(a), source(a), tensor<uint32_t>(kOther), kCount / 32); });
const Register kMrgSort("instruction MrgSort", [](Arguments a) {
    const uint16_t lengths[] = {32, 32, 0, 0};
    MrgSort(result(a), MrgSortSrcList<float>(source(a), tensor<float>(kOther), source(a), source(a)), MrgSort4Info(lengths, false, 3, 1));
});
const Register kCompare("instruction Compare", [](Arguments a) { Compare(tensor<uint8_t>(a[0]), source(a), tensor<float>(kOther), CMPMODE::LT, uint32_t{kCount}); });
const Register kCompareScalar("instruction CompareScalar", [](Arguments a) { CompareScalar(tensor<uint8_t>(a[0]), source(a), 1.0f, CMPMODE::LT, uint32_t{kCount}); });
const Register kWholeSum("instruction WholeReduceSum", [](Arguments a) { WholeReduceSum(result(a), source(a), 64, 4, 1, 1, 8); });
const Register kWholeMax("instruction WholeReduceMax", [](Arguments a) { WholeReduceMax(result(a), source(a), 64, 4, 1, 1, 8); });
const Register kWholeMin("instruction WholeReduceMin", [](Arguments a) { WholeReduceMin(result(a), source(a), 64, 4, 1, 1, 8); });
const Register kBlockSum("instruction BlockReduceSum", [](Arguments a) { BlockReduceSum(result(a), source(a), 4, 64, 1, 1, 8); });
const Register kBlockMax("instruction BlockReduceMax", [](Arguments a) { BlockReduceMax(result(a), source(a), 4, 64, 1, 1, 8); });
const Register kBlockMin("instruction BlockReduceMin", [](Arguments a) { BlockReduceMin(result(a), source(a), 4, 64, 1, 1, 8); });
const Register kPairSum("instruction PairReduceSum", [](Arguments a) { PairReduceSum(result(a), source(a), 4, 64, 1, 1, 8); });

const Register kSelect("instruction Select", [](Arguments a) {
    Select(result(a), tensor<uint8_t>(kOther), source(a), tensor<float>(kFar), SELMODE::VSEL_TENSOR_TENSOR_MODE, uint32_t{kCount});
});
const Register kGatherMask("instruction GatherMask", [](Arguments a) {
    uint64_t kept = 0;
    GatherMask(result(a), source(a), uint8_t{1}, false, 0u, GatherMaskParams{1, 4, 8, 0}, kept);
});
const Register kAddReluCast("instruction AddReluCast", [](Arguments a) { AddReluCast(tensor<half>(a[0]), source(a), tensor<float>(kOther), uint32_t{kCount}); });
const Register kSubReluCast("instruction SubReluCast", [](Arguments a) { SubReluCast(tensor<half>(a[0]), source(a), tensor<float>(kOther), uint32_t{kCount}); });
const Register kMulCast("instruction MulCast", [](Arguments a) { MulCast(tensor<int8_t>(a[0]), tensor<half>(a[1]), tensor<half>(kOther), uint32_t{2 * kCount}); });
const Register kCopy("instruction CopyUbToUb", [](Arguments a) { Copy(result(a), source(a), uint64_t{64}, 4, CopyRepeatParams{1, 1, 8, 8}); });

// Numbers.
template <ParameterRange R>
struct Number;
#define NUMBER(Name, ...)                                                                \
    template <>                                                                          \
    struct Number<ParameterRange::Name> {                                                \
        static void call([[maybe_unused]] int64_t value) { __VA_ARGS__; }                \
    };
template <typename T, bool left>
void shift(int64_t bits) {
    if constexpr (left) ShiftLeft(tensor<T>(0), tensor<T>(kFar), static_cast<T>(bits), kCount);
    else ShiftRight(tensor<T>(0), tensor<T>(kFar), static_cast<T>(bits), kCount);
}
NUMBER(ShiftLeftOf16, (shift<int16_t, true>(value))) NUMBER(ShiftLeftOf32, (shift<int32_t, true>(value)))
NUMBER(ShiftRightOf16, (shift<int16_t, false>(value))) NUMBER(ShiftRightOf32, (shift<int32_t, false>(value)))
NUMBER(SortRepeats, Sort32(tensor<float>(0), tensor<float>(kOther), tensor<uint32_t>(kThird), static_cast<int32_t>(value)))
void merge(uint16_t length, int64_t repeats) {
    const uint16_t lengths[] = {length, length, length, length};
    uint32_t counts[4];
    const auto at = [&](int queue) { return tensor<float>(kOther + int64_t{queue} * length * 8); };
    MrgSort<float>(tensor<float>(0), MrgSortSrcList<float>(at(0), at(1), at(2), at(3)), lengths, counts, 15, static_cast<int32_t>(repeats));
}
NUMBER(MergeRepeats, merge(8, value)) NUMBER(MergeLength, merge(static_cast<uint16_t>(value), 1))
NUMBER(BrcbBlockStride, Brcb(tensor<float>(0), tensor<float>(kFar), 1, BrcbRepeatParams{static_cast<uint16_t>(value), 8}))
GlobalTensor<float> global() {
    static asim::GmRegion &region = asim::add_gm_region("gm", asim::GmRole::Workspace, 1u << 20, asim::kOwnAddress);
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<float *>(region.base));
    return tensor;
}
template <uint16_t Nd2NzParams::*Field>
void nd_to_nz(int64_t value) {
    Nd2NzParams params{1, 2, 8, 0, 8, 1, 1, 1};
    params.*Field = static_cast<uint16_t>(value);
    DataCopy(tensor<float>(0), global(), params);
}
NUMBER(NdToNzMatrices, nd_to_nz<&Nd2NzParams::ndNum>(value)) NUMBER(NdToNzRows, nd_to_nz<&Nd2NzParams::nValue>(value))
NUMBER(NdToNzColumns, nd_to_nz<&Nd2NzParams::dValue>(value)) NUMBER(NdToNzSourceRow, nd_to_nz<&Nd2NzParams::srcDValue>(value))
NUMBER(NdToNzColumnStride, nd_to_nz<&Nd2NzParams::dstNzC0Stride>(value)) NUMBER(NdToNzRowStride, nd_to_nz<&Nd2NzParams::dstNzNStride>(value))
NUMBER(NdToNzMatrixStride, nd_to_nz<&Nd2NzParams::dstNzMatrixStride>(value))
template <uint16_t Nz2NdParamsFull::*Field>
void nz_to_nd(int64_t value) {
    Nz2NdParamsFull params{1, 2, 16, 1, 2, 16, 1};
    params.*Field = static_cast<uint16_t>(value);
    DataCopy(global(), tensor<float>(0), params);
}
NUMBER(NzToNdMatrices, nz_to_nd<&Nz2NdParamsFull::ndNum>(value)) NUMBER(NzToNdRows, nz_to_nd<&Nz2NdParamsFull::nValue>(value))
NUMBER(NzToNdColumns, nz_to_nd<&Nz2NdParamsFull::dValue>(value)) NUMBER(NzToNdMatrixStride, nz_to_nd<&Nz2NdParamsFull::srcNdMatrixStride>(value))
NUMBER(NzToNdSourceStride, nz_to_nd<&Nz2NdParamsFull::srcNStride>(value)) NUMBER(NzToNdRowStride, nz_to_nd<&Nz2NdParamsFull::dstDStride>(value))
NUMBER(NzToNdTargetStride, nz_to_nd<&Nz2NdParamsFull::dstNdMatrixStride>(value))
NUMBER(SumBlocks, Sum(tensor<float>(0), tensor<float>(kFar), sized<uint8_t>(kFourth, kTmpBytes), SumParams{1, static_cast<uint32_t>(value / 4), 1}))
NUMBER(MeanBlocks, Mean(tensor<float>(0), tensor<float>(kFar), sized<uint8_t>(kFourth, kTmpBytes), MeanParams{1, static_cast<uint32_t>(value / 4), 1}))
NUMBER(SumCount, Sum(tensor<float>(0), tensor<float>(kFar), sized<uint8_t>(kFourth, kTmpBytes), SumParams{1, 8, static_cast<uint32_t>(value)}))
NUMBER(MeanCount, Mean(tensor<float>(0), tensor<float>(kFar), sized<uint8_t>(kFourth, kTmpBytes), MeanParams{1, 8, static_cast<uint32_t>(value)}))

#define RANGE(name, call_name, parameter, least, most, multiple, page) \
    const Register kRange_##name("range " #name, [](Arguments a) { Number<ParameterRange::name>::call(a[0]); });
#include "asim/check/contracts.def"

}  // namespace

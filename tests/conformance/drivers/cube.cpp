// A cube core in a test: its memories lie one after another in the arena of the machine, and one region of global memory
// holds what was last put behind them.
#include <array>

#include "asim/machine/gm.h"
#include "machine.h"

namespace {

using asim::Space;

struct Place {
    Space space;
    uint32_t offset;
    uint32_t bytes;
};
constexpr Place kPlaces[] = {{Space::L1, 0, 524288},          {Space::L0A, 524288, 65536},     {Space::L0B, 589824, 65536},
                             {Space::L0C, 655360, 131072},    {Space::BiasTable, 786432, 1024}, {Space::FixpipeBuffer, 790528, 2048}};
constexpr uint32_t kStaging = 1u << 20;
constexpr uint32_t kGmBytes = 1u << 20;

uint8_t *gm() {
    static asim::GmRegion &region = asim::add_gm_region("gm", asim::GmRole::Workspace, kGmBytes, asim::kOwnAddress);
    return region.base;
}

uint8_t *memory(Space space) { return asim::block().memories[static_cast<int>(space)].base; }

template <typename T>
AscendC::LocalTensor<T> at(AscendC::TPosition position, int64_t offset_bytes) {
    const Space space = AscendC::space_of(position);
    return {memory(space) + offset_bytes, asim::block().memories[static_cast<int>(space)].bytes - static_cast<uint64_t>(offset_bytes), position};
}

template <typename T>
AscendC::GlobalTensor<T> global(int64_t offset_bytes) {
    AscendC::GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<T *>(gm() + offset_bytes));
    return tensor;
}

const Register g_start("start", [](Arguments a) {
    asim::Block &self = asim::block();
    self.kind = a[0] != 0 ? asim::CoreKind::Cube : asim::CoreKind::Vector;
    for (const Place &place : kPlaces) self.memories[static_cast<int>(place.space)] = {self.ub + place.offset, place.bytes, 0};
    gm();
});
const Register g_put("put_gm", [](Arguments a) { std::memcpy(gm(), asim::block().ub + kStaging, static_cast<size_t>(a[0])); });
const Register g_get("get_gm", [](Arguments a) { std::memcpy(asim::block().ub + kStaging, gm(), static_cast<size_t>(a[0])); });
const Register g_hf32("hf32", [](Arguments a) {
    AscendC::SetHF32Mode(a[0] != 0);
    AscendC::SetHF32TransMode(a[1] != 0);
});
const Register g_atomic("atomic_add", [](Arguments) { AscendC::SetAtomicAdd<float>(); });

constexpr AscendC::TPosition kLeft[] = {AscendC::TPosition::A2, AscendC::TPosition::B2};

template <typename T>
void register_moves() {
    const std::string type = type_name<T>();
    calls()["nd2nz " + type] = [](Arguments a) {
        const auto u = [&](int i) { return static_cast<uint16_t>(a[i]); };
        AscendC::DataCopy(at<T>(AscendC::TPosition::A1, a[8]), global<T>(0), AscendC::Nd2NzParams(u(0), u(1), u(2), u(3), u(4), u(5), u(6), u(7)));
    };
    calls()["load2d " + type] = [](Arguments a) {
        AscendC::LoadData2DParams params(a[2], a[3], a[4], 0, a[5], a[6] != 0, a[7]);
        AscendC::LoadData(at<T>(kLeft[a[0]], a[8]), at<T>(AscendC::TPosition::A1, a[1]), params);
    };
    calls()["transposed " + type] = [](Arguments a) {
        AscendC::LoadDataWithTranspose(at<T>(kLeft[a[0]], 0), at<T>(AscendC::TPosition::A1, 0),
                                       AscendC::LoadData2dTransposeParams(a[1], a[2], a[3], a[4], a[5]));
    };
    calls()["fill " + type] = [](Arguments a) {
        AscendC::InitConstValue(at<T>(AscendC::TPosition::A1, 0),
                                AscendC::InitConstValueParams<T>(a[0], a[1], a[2], static_cast<T>(a[3])));
    };
}

// Arguments: which L0 memory; map height, width, channels; columns, rows, first column, first row; stride; filter height,
// width; dilation; paddings; transpose; whether the numbers are packed.
template <typename T>
void register_load3d() {
    calls()["load3d " + std::string(type_name<T>())] = [](Arguments a) {
        AscendC::LoadData3DParamsV2<T> params;
        params.l1H = a[1], params.l1W = a[2], params.channelSize = a[3];
        params.kExtension = a[4], params.mExtension = a[5], params.kStartPt = a[6], params.mStartPt = a[7];
        params.strideH = params.strideW = a[8];
        params.filterH = a[9], params.filterW = a[10];
        params.dilationFilterH = params.dilationFilterW = a[11];
        for (int i = 0; i < 4; ++i) params.padList[i] = a[12 + i];
        params.enTranspose = a[16] != 0;
        if (a[17] != 0) {
            const auto eight = [](uint64_t value, int place) { return value << (8 * place); };
            AscendC::LoadData3DParamsV2Pro packed;
            packed.channelSize = params.channelSize, packed.enTranspose = params.enTranspose;
            packed.extConfig = uint64_t(params.kExtension) | uint64_t(params.mExtension) << 16 |
                               uint64_t(params.kStartPt) << 32 | uint64_t(params.mStartPt) << 48;
            packed.filterConfig = eight(params.strideW, 0) | eight(params.strideH, 1) | eight(params.filterW, 2) |
                                  eight(params.filterH, 3) | eight(params.dilationFilterW, 4) | eight(params.dilationFilterH, 5);
            AscendC::Load3DSetFMatrixCal(params.l1H, params.l1W, params.padList);
            AscendC::SetLoadDataPaddingValue(static_cast<T>(0));
            return AscendC::LoadData(at<T>(kLeft[a[0]], 0), at<T>(AscendC::TPosition::A1, 0), packed);
        }
        AscendC::LoadData(at<T>(kLeft[a[0]], 0), at<T>(AscendC::TPosition::A1, 0), params);
    };
}

template <typename C, typename T>
void register_mmad() {
    calls()["mmad " + std::string(type_name<T>())] = [](Arguments a) {
        AscendC::MmadParams params;
        params.m = a[0], params.n = a[1], params.k = a[2];
        params.cmatrixInitVal = a[3] == 0;
        const auto c = at<C>(AscendC::TPosition::CO1, a[4]);
        const auto left = at<T>(AscendC::TPosition::A2, 0);
        const auto right = at<T>(AscendC::TPosition::B2, 0);
        if (a[3] == 2) {
            AscendC::Mmad(c, left, right, at<C>(AscendC::TPosition::C2, 0), params);
        } else {
            AscendC::Mmad(c, left, right, params);
        }
    };
}

// Arguments: n, m, source stride, destination stride, mode, scale, matrices, source and destination matrix stride, ReLU,
// split, fractals stay, to L1.
template <typename T, typename U>
void register_fixpipe() {
    calls()["fixpipe " + std::string(type_name<U>()) + " " + type_name<T>()] = [](Arguments a) {
        AscendC::FixpipeParamsV220 params(a[0], a[1], a[2], a[3], a[9] != 0, static_cast<QuantMode_t>(a[4]), a[5], a[6], a[7], a[8], 0, a[10] != 0);
        const auto source = at<U>(AscendC::TPosition::CO1, 0);
        const auto scales = at<uint64_t>(AscendC::TPosition::C1, 0);
        if (a[12] != 0) return AscendC::Fixpipe<T, U, AscendC::CFG_NZ>(at<T>(AscendC::TPosition::A1, 0), source, params);
        if (a[11] != 0) return AscendC::Fixpipe<T, U, AscendC::CFG_NZ>(global<T>(0), source, params);
        AscendC::Fixpipe<T, U>(global<T>(0), source, scales, params);
    };
}

const bool g_registered = [] {
    register_moves<half>();
    register_moves<float>();
    register_moves<int8_t>();
    register_load3d<half>();
    register_load3d<float>();
    register_mmad<float, half>();
    register_mmad<float, bfloat16_t>();
    register_mmad<float, float>();
    register_mmad<int32_t, int8_t>();
    register_fixpipe<float, float>();
    register_fixpipe<half, float>();
    register_fixpipe<bfloat16_t, float>();
    register_fixpipe<int8_t, float>();
    register_fixpipe<int32_t, int32_t>();
    register_fixpipe<half, int32_t>();
    register_fixpipe<int8_t, int32_t>();
    return true;
}();

}  // namespace

#include "machine.h"

#include "asim/machine/gm.h"

namespace {

constexpr uint32_t kElems = 4096;
float *g_tensor = nullptr;

// Buffers are set from the addresses of others (conv3dv2 of cann-ops).
using Address = decltype(std::declval<const AscendC::GlobalTensor<float> &>().GetPhyAddr(0));
static_assert(std::is_same_v<Address, float *>, "an address with an offset is one to write to, as in the public header");

AscendC::GlobalTensor<float> global() {
    AscendC::GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(g_tensor, kElems);
    return tensor;
}

// A tensor in global memory whose elements are their own positions.
const Register g_make("make", [](Arguments) {
    asim::GmRegion &region = asim::add_gm_region("x", asim::GmRole::InOut, kElems * sizeof(float), asim::kOwnAddress);
    g_tensor = reinterpret_cast<float *>(region.base);
    for (uint32_t i = 0; i < kElems; ++i) g_tensor[i] = static_cast<float>(i);
});

const Register g_drop("drop", [](Arguments) { asim::remove_gm_region(g_tensor); });

const Register g_show("show", [](Arguments a) { std::memcpy(asim::block().ub + a[0], g_tensor, a[1] * sizeof(float)); });

// Arguments: offset in UB, dimensions, then five numbers for each slice of the destination and of the source.
std::vector<AscendC::SliceInfo> slices(Arguments a, int64_t dims) {
    std::vector<AscendC::SliceInfo> read;
    for (int64_t i = 0; i < dims; ++i, a += 5) read.emplace_back(a[0], a[1], a[2], a[3], a[4]);
    return read;
}

const Register g_in("in", [](Arguments a) {
    const auto dst = slices(a + 2, a[1]), src = slices(a + 2 + 5 * a[1], a[1]);
    AscendC::DataCopy(tensor<float>(a[0]), global(), dst.data(), src.data(), static_cast<uint32_t>(a[1]));
});

const Register g_out("out", [](Arguments a) {
    const auto dst = slices(a + 2, a[1]), src = slices(a + 2 + 5 * a[1], a[1]);
    AscendC::DataCopy(global(), tensor<float>(a[0]), dst.data(), src.data(), static_cast<uint32_t>(a[1]));
});

}  // namespace

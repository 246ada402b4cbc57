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

const bool g_registered = register_sums<half>() && register_sums<float>();

}  // namespace

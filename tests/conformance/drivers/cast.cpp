#include "machine.h"

namespace {

template <typename D, typename S>
void register_pair() {
    const std::string pair = type_name<S>() + ">" + type_name<D>();
    Register("count " + pair, [](Arguments a) {
        AscendC::Cast(tensor<D>(a[0]), tensor<S>(a[1]), static_cast<AscendC::RoundMode>(a[2]), static_cast<uint32_t>(a[3]));
    });
    Register("mask " + pair, [](Arguments a) {
        const uint64_t mask[2] = {static_cast<uint64_t>(a[3]), static_cast<uint64_t>(a[4])};
        const AscendC::UnaryRepeatParams params(a[6], a[7], a[8], a[9]);
        AscendC::Cast(tensor<D>(a[0]), tensor<S>(a[1]), static_cast<AscendC::RoundMode>(a[2]), mask,
                      static_cast<uint8_t>(a[5]), params);
    });
    Register("lanes " + pair, [](Arguments a) {
        const AscendC::UnaryRepeatParams params(a[5], a[6], a[7], a[8]);
        AscendC::Cast(tensor<D>(a[0]), tensor<S>(a[1]), static_cast<AscendC::RoundMode>(a[2]),
                      static_cast<uint64_t>(a[3]), static_cast<uint8_t>(a[4]), params);
    });
}

template <typename... D, typename... S>
bool register_pairs(asim::TypeList<asim::CastPair<D, S>...>) {
    (register_pair<D, S>(), ...);
    return true;
}

const bool g_registered = register_pairs(asim::ExactCasts{}) && register_pairs(asim::RoundingCasts{}) &&
                          register_pairs(asim::RoundingOrNoneCasts{}) && register_pairs(asim::ScaledCasts{});
const Register g_to_int4("to int4", [](Arguments a) {
    AscendC::Cast(tensor<int4b_t>(a[0]), tensor<half>(a[1]), static_cast<AscendC::RoundMode>(a[2]), static_cast<uint32_t>(a[3]));
});
const Register g_offset_int4("global offset int4", [](Arguments a) {
    static uint8_t memory[32];
    AscendC::GlobalTensor<int4b_t> whole;
    whole.SetGlobalBuffer(reinterpret_cast<int4b_t *>(memory), 64);
    const auto shifted = whole[static_cast<uint64_t>(a[1])];
    const int64_t bytes = reinterpret_cast<const uint8_t *>(shifted.GetPhyAddr()) - memory;
    tensor<int32_t>(a[0]).SetValue(0, static_cast<int32_t>(bytes));
    tensor<int32_t>(a[0]).SetValue(1, static_cast<int32_t>(shifted.GetSize()));
});
const Register g_from_int4("from int4", [](Arguments a) {
    AscendC::Cast(tensor<half>(a[0]), tensor<int4b_t>(a[1]), static_cast<AscendC::RoundMode>(a[2]), static_cast<uint32_t>(a[3]));
});
const Register g_scale("SetDeqScale", [](Arguments a) { AscendC::SetDeqScale(scalar<half>(a[0])); });

}  // namespace

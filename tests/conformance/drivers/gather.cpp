#include "machine.h"

namespace {

template <typename T>
bool register_moves() {
    const std::string type = " " + type_name<T>();
    Register("Gather" + type, [](Arguments a) {
        AscendC::Gather(tensor<T>(a[0]), tensor<T>(a[1]), tensor<uint32_t>(a[2]), static_cast<uint32_t>(a[3]),
                        static_cast<uint32_t>(a[4]));
    });
    Register("Gather mask" + type, [](Arguments a) {
        const uint64_t mask[2] = {static_cast<uint64_t>(a[4]), static_cast<uint64_t>(a[5])};
        AscendC::Gather(tensor<T>(a[0]), tensor<T>(a[1]), tensor<uint32_t>(a[2]), static_cast<uint32_t>(a[3]), mask,
                        static_cast<uint8_t>(a[6]), static_cast<uint16_t>(a[7]));
    });
    Register("Gatherb" + type, [](Arguments a) {
        AscendC::Gatherb(tensor<T>(a[0]), tensor<T>(a[1]), tensor<uint32_t>(a[2]), static_cast<uint8_t>(a[3]),
                         AscendC::GatherRepeatParams(a[4], a[5]));
    });
    // Arguments: dst, src, pattern, counter mode, mask, src block, repeats, src repeat, pattern repeat, where the count goes.
    Register("GatherMask fixed" + type, [](Arguments a) {
        uint64_t kept = 0;
        AscendC::GatherMask(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<uint8_t>(a[2]), a[3] != 0,
                            static_cast<uint32_t>(a[4]), AscendC::GatherMaskParams(a[5], a[6], a[7], a[8]), kept);
        tensor<uint32_t>(a[9]).SetValue(0, kept);
    });
    Register("GatherMask bits" + type, [](Arguments a) {
        using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
        uint64_t kept = 0;
        AscendC::GatherMask(tensor<T>(a[0]), tensor<T>(a[1]), tensor<Bits>(a[2]), a[3] != 0, static_cast<uint32_t>(a[4]),
                            AscendC::GatherMaskParams(a[5], a[6], a[7], a[8]), kept);
        tensor<uint32_t>(a[9]).SetValue(0, kept);
    });
    Register("Brcb" + type, [](Arguments a) {
        AscendC::Brcb(tensor<T>(a[0]), tensor<T>(a[1]), static_cast<uint8_t>(a[2]), AscendC::BrcbRepeatParams(a[3], a[4]));
    });
    Register("Copy" + type, [](Arguments a) {
        const uint64_t mask[2] = {static_cast<uint64_t>(a[2]), static_cast<uint64_t>(a[3])};
        AscendC::Copy(tensor<T>(a[0]), tensor<T>(a[1]), mask, static_cast<uint8_t>(a[4]),
                      AscendC::CopyRepeatParams(a[5], a[6], a[7], a[8]));
    });
    return true;
}

template <typename T>
bool register_progressions() {
    const std::string type = " " + type_name<T>();
    Register("CreateVecIndex" + type, [](Arguments a) {
        AscendC::CreateVecIndex(tensor<T>(a[0]), static_cast<T>(a[1]), static_cast<uint32_t>(a[2]));
    });
    Register("CreateVecIndex repeats" + type, [](Arguments a) {
        auto dst = tensor<T>(a[0]);
        AscendC::CreateVecIndex(dst, static_cast<T>(a[1]), static_cast<uint64_t>(a[2]), a[3], a[4], a[5]);
    });
    Register("ArithProgression" + type, [](Arguments a) {
        AscendC::ArithProgression<T>(tensor<T>(a[0]), static_cast<T>(a[1]), static_cast<T>(a[2]), static_cast<int32_t>(a[3]));
    });
    return true;
}

const bool g_registered = register_moves<half>() && register_moves<int32_t>() && register_moves<uint16_t>() &&
                          register_moves<float>() && register_progressions<half>() && register_progressions<float>() &&
                          register_progressions<int16_t>() && register_progressions<int32_t>();

}  // namespace

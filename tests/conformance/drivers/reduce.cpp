#include "machine.h"

namespace {

using AscendC::ReduceOrder;

struct Mask {
    uint64_t words[2];
};
Mask mask_of(int64_t low, int64_t high) { return {{static_cast<uint64_t>(low), static_cast<uint64_t>(high)}}; }

// Arguments of the instruction forms: dst, src, mask low, mask high, repeats, dst repeat, src block, src repeat, order.
template <typename T>
bool register_instructions() {
    const std::string type = " " + type_name<T>();
    Register("WholeReduceSum" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::WholeReduceSum(tensor<T>(a[0]), tensor<T>(a[1]), mask.words, a[4], a[5], a[6], a[7]);
    });
    Register("WholeReduceMax" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::WholeReduceMax(tensor<T>(a[0]), tensor<T>(a[1]), mask.words, a[4], a[5], a[6], a[7],
                                static_cast<ReduceOrder>(a[8]));
    });
    Register("WholeReduceMin" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::WholeReduceMin(tensor<T>(a[0]), tensor<T>(a[1]), mask.words, a[4], a[5], a[6], a[7],
                                static_cast<ReduceOrder>(a[8]));
    });
    Register("BlockReduceSum" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::BlockReduceSum(tensor<T>(a[0]), tensor<T>(a[1]), a[4], mask.words, a[5], a[6], a[7]);
    });
    Register("BlockReduceMax" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::BlockReduceMax(tensor<T>(a[0]), tensor<T>(a[1]), a[4], mask.words, a[5], a[6], a[7]);
    });
    Register("BlockReduceMin" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::BlockReduceMin(tensor<T>(a[0]), tensor<T>(a[1]), a[4], mask.words, a[5], a[6], a[7]);
    });
    Register("PairReduceSum" + type, [](Arguments a) {
        const Mask mask = mask_of(a[2], a[3]);
        AscendC::PairReduceSum(tensor<T>(a[0]), tensor<T>(a[1]), a[4], mask.words, a[5], a[6], a[7]);
    });
    Register("RepeatReduceSum" + type, [](Arguments a) {
        AscendC::RepeatReduceSum(tensor<T>(a[0]), tensor<T>(a[1]), a[2], a[3], 1, a[4], a[5], a[6]);
    });
    return true;
}

// Arguments of the whole-tensor forms: dst, src, work, count, index wanted; or lanes, repeats, src repeat, index wanted.
template <typename T>
bool register_tensors() {
    const std::string type = " " + type_name<T>();
    Register("ReduceSum" + type, [](Arguments a) { AscendC::ReduceSum<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), a[3]); });
    Register("ReduceMax" + type, [](Arguments a) {
        AscendC::ReduceMax<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), a[3], a[4] != 0);
    });
    Register("ReduceMin" + type, [](Arguments a) {
        AscendC::ReduceMin<T>(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), a[3], a[4] != 0);
    });
    Register("ReduceSum repeats" + type, [](Arguments a) {
        AscendC::ReduceSum(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), static_cast<int32_t>(a[3]), a[4], a[5]);
    });
    Register("ReduceMax repeats" + type, [](Arguments a) {
        AscendC::ReduceMax(tensor<T>(a[0]), tensor<T>(a[1]), tensor<T>(a[2]), static_cast<int32_t>(a[3]), a[4], a[5], a[6] != 0);
    });
    Register("GetAccVal" + type, [](Arguments a) { tensor<T>(a[0]).SetValue(0, AscendC::GetAccVal<T>()); });
    Register("SetMaskCount" + type, [](Arguments) { AscendC::SetMaskCount(); });
    Register("GetReduceMaxMinCount" + type, [](Arguments a) {
        T value, index;
        AscendC::GetReduceMaxMinCount<T>(value, index);
        tensor<T>(a[0]).SetValue(0, value);
        tensor<T>(a[0]).SetValue(1, index);
    });
    return true;
}

const bool g_registered = register_instructions<half>() && register_instructions<float>() && register_tensors<half>() &&
                          register_tensors<float>();

}  // namespace

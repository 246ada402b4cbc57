#include "machine.h"

namespace {

// Arguments of every form. Strides are in data blocks.
enum Place { kDst, kSrc0, kSrc1, kScalar, kLanes, kMaskLow, kMaskHigh, kRepeats, kDstBlock, kSrc0Block, kSrc1Block,
             kDstRepeat, kSrc0Repeat, kSrc1Repeat };

struct Mask {
    explicit Mask(Arguments a) : words{static_cast<uint64_t>(a[kMaskLow]), static_cast<uint64_t>(a[kMaskHigh])} {}
    uint64_t words[2];
};

AscendC::UnaryRepeatParams unary_strides(Arguments a) {
    return AscendC::UnaryRepeatParams(a[kDstBlock], a[kSrc0Block], a[kDstRepeat], a[kSrc0Repeat]);
}

AscendC::BinaryRepeatParams binary_strides(Arguments a) {
    return AscendC::BinaryRepeatParams(a[kDstBlock], a[kSrc0Block], a[kSrc1Block], a[kDstRepeat], a[kSrc0Repeat],
                                       a[kSrc1Repeat]);
}

enum class Form { kCount, kLanes, kBits };
using FormsCall = std::function<void(Form, Arguments)>;

// Not a template: each instance of what is registered takes the compiler a while.
void register_each_form(const std::string &name, const FormsCall &call) {
    for (const auto &[word, form] : {std::pair{"count ", Form::kCount}, {"lanes ", Form::kLanes}, {"bits ", Form::kBits}}) {
        Register(word + name, [call, form = form](Arguments a) { call(form, a); });
    }
}

// Registers the forms of one instruction; `with(a, rest...)` calls it with its operands before the rest.
template <typename With, typename Strides>
void register_forms(const std::string &name, With with, Strides strides) {
    register_each_form(name, [=](Form form, Arguments a) {
        const auto repeats = static_cast<uint8_t>(a[kRepeats]);
        if (form == Form::kCount) {
            with(a, static_cast<int32_t>(a[kLanes]));
        } else if (form == Form::kLanes) {
            with(a, static_cast<uint64_t>(a[kLanes]), repeats, strides(a));
        } else {
            Mask mask(a);
            with(a, mask.words, repeats, strides(a));
        }
    });
}

template <typename F, typename... T>
void register_unary(const std::string &name, F call, asim::TypeList<T...>) {
    (register_forms(name + " " + type_name<T>(), [=](Arguments a, auto &&...rest) {
        call(tensor<T>(a[kDst]), tensor<T>(a[kSrc0]), rest...);
    }, unary_strides), ...);
}

template <typename F, typename... T>
void register_binary(const std::string &name, F call, asim::TypeList<T...>) {
    (register_forms(name + " " + type_name<T>(), [=](Arguments a, auto &&...rest) {
        call(tensor<T>(a[kDst]), tensor<T>(a[kSrc0]), tensor<T>(a[kSrc1]), rest...);
    }, binary_strides), ...);
}

template <typename F, typename... T>
void register_fused(const std::string &name, F call, asim::TypeList<T...> types) {
    register_binary(name, call, types);
}

template <typename F, typename... T>
void register_with_scalar(const std::string &name, F call, asim::TypeList<T...>) {
    (register_forms(name + " " + type_name<T>(), [=](Arguments a, auto &&...rest) {
        call(tensor<T>(a[kDst]), tensor<T>(a[kSrc0]), scalar<T>(a[kScalar]), rest...);
    }, unary_strides), ...);
}

template <typename D, typename S>
void register_accumulating() {
    const std::string types = " " + type_name<S>() + ">" + type_name<D>();
    register_forms("Axpy" + types, [](Arguments a, auto &&...rest) {
        AscendC::Axpy(tensor<D>(a[kDst]), tensor<S>(a[kSrc0]), scalar<S>(a[kScalar]), rest...);
    }, unary_strides);
    register_forms("MulAddDst" + types, [](Arguments a, auto &&...rest) {
        AscendC::MulAddDst(tensor<D>(a[kDst]), tensor<S>(a[kSrc0]), tensor<S>(a[kSrc1]), rest...);
    }, binary_strides);
}

template <typename... T>
void register_duplicate(asim::TypeList<T...>) {
    (Register("count Duplicate " + type_name<T>(), [](Arguments a) {
        AscendC::Duplicate(tensor<T>(a[kDst]), scalar<T>(a[kScalar]), static_cast<int32_t>(a[kLanes]));
    }), ...);
    (Register("lanes Duplicate " + type_name<T>(), [](Arguments a) {
        AscendC::Duplicate(tensor<T>(a[kDst]), scalar<T>(a[kScalar]), static_cast<uint64_t>(a[kLanes]),
                           static_cast<uint8_t>(a[kRepeats]), static_cast<uint16_t>(a[kDstBlock]),
                           static_cast<uint8_t>(a[kDstRepeat]));
    }), ...);
    (Register("bits Duplicate " + type_name<T>(), [](Arguments a) {
        Mask mask(a);
        AscendC::Duplicate(tensor<T>(a[kDst]), scalar<T>(a[kScalar]), mask.words, static_cast<uint8_t>(a[kRepeats]),
                           static_cast<uint16_t>(a[kDstBlock]), static_cast<uint8_t>(a[kDstRepeat]));
    }), ...);
}

const bool g_registered = [] {
#define ELEMENTWISE(name, form, cost, types, result) register_##form(#name, [](auto &&...arguments) { AscendC::name(arguments...); }, asim::types());
#include "asim/trace/instructions.def"
    register_accumulating<half, half>();
    register_accumulating<float, float>();
    register_accumulating<float, half>();
    register_duplicate(asim::TypeList<half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>{});
    Register("SetMaskCount", [](Arguments) { AscendC::SetMaskCount(); });
    return true;
}();

}  // namespace

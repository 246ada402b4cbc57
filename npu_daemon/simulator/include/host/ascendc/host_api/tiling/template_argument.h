// Tiling keys by template on the host: ASCENDC_TPL_SEL_PARAM makes one of the values of the parameters that the operator declares.
// Which combinations there are (ASCENDC_TPL_SEL) the build of the kernel looks at, as in the real toolchain: that may depend on
// macros which only kernels have.
#pragma once

#include <string>

#include "asim/host/fault.h"
#include "tiling/template_parameters.h"

namespace asim::tiling_template {

[[noreturn]] inline void refuse(const Text &text) { throw host::HostFault(std::string(text.data(), text.size())); }

constexpr uint64_t invalid_key = ~uint64_t{0};

// Tells why a value cannot be in a key.
inline void refuse_value(const Declaration &declaration, size_t index, uint64_t value) {
    Text text;
    text << "ASCENDC_TPL_SEL_PARAM: " << declaration.name(index) << " has no value " << value << ": ASCENDC_TPL_"
         << kind_name(declaration.kind(index)) << "_DECL lists ";
    declaration.values(index).tell(text);
    refuse(text);
}

inline uint64_t key_of(const Declaration &declaration, std::initializer_list<uint64_t> values) {
    uint64_t key = 0;
    size_t index = 0;
    for (const uint64_t value : values) {
        const uint64_t code = declaration.code_of(index, value);
        if (code == invalid_key) refuse_value(declaration, index, value);
        key |= declaration.shifted(index++, code);
    }
    return key;
}

constexpr Text wrong_number(const Declaration &declaration, size_t given) {
    Text text;
    if (given == declaration.size()) return text;
    text << "ASCENDC_TPL_SEL_PARAM and GET_TPL_TILING_KEY take a value for each of the " << declaration.size() << " parameters (";
    declaration.tell_names(text);
    return text << "), in this order; got " << given;
}

template <const Declaration &declaration, typename... Given>
uint64_t key(Given... values) {
    static constexpr Text problem = wrong_number(declaration, sizeof...(Given));
    static_assert(problem.size() == 0, problem);
    return key_of(declaration, {static_cast<uint64_t>(values)...});
}

// As earlier versions were called: GET_TPL_TILING_KEY({a, b}).
template <const Declaration &declaration>
uint64_t key(std::initializer_list<uint64_t> values) {
    const Text problem = wrong_number(declaration, values.size());
    if (problem.size() != 0) refuse(problem);
    return key_of(declaration, values);
}

}  // namespace asim::tiling_template

#define ASCENDC_TPL_ARGS_DECL(x, ...) ASIM_TPL_DECLARE(__VA_ARGS__)
#define ASCENDC_TPL_SEL(...)
#define GET_TPL_TILING_KEY(...) ::asim::tiling_template::key<asim_template_parameters>(__VA_ARGS__)
#define ASCENDC_TPL_SEL_PARAM(context, ...)                      \
    do {                                                         \
        (context)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__)); \
    } while (0)

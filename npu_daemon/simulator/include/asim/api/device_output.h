// Printing from a kernel, dumping tensors, reading the clock, and the state a kernel starts in.
#pragma once
#include <cstdio>

#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/machine/fault.h"
#include "asim/machine/device_output.h"

namespace asim {

// As a variadic function takes it: element types that C does not know become double.
template <typename T>
auto printable(const T &value) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>) {
        return static_cast<double>(static_cast<float>(value));
    } else {
        return value;
    }
}

template <typename T, size_t N>
const T *printable(const T (&values)[N]) {
    return values;
}

template <typename T>
void dump_values(const T *values, uint32_t description, uint32_t count) {
    device_print("DumpTensor: desc=%u, %u elements: [", description, count);
    for (uint32_t i = 0; i < count; ++i) {
        device_print(i ? ", %g" : "%g", static_cast<double>(static_cast<float>(counted_load<T>(values + i))));
    }
    device_print("]\n");
}

}  // namespace asim

namespace AscendC {

template <typename... Values>
__aicore__ inline int printf(const char *format, const Values &...values) {
    return asim::device_print(format, asim::printable(values)...);
}
template <typename... Values>
__aicore__ inline int PRINTF(const char *format, const Values &...values) {
    return asim::device_print(format, asim::printable(values)...);
}

template <typename T>
__aicore__ inline void DumpTensor(const LocalTensor<T> &tensor, uint32_t description, uint32_t count) {
    asim::dump_values(tensor.GetPhyAddr(), description, std::min(count, tensor.GetSize()));
}
template <typename T>
__aicore__ inline void DumpTensor(const GlobalTensor<T> &tensor, uint32_t description, uint32_t count) {
    asim::dump_values(tensor.GetPhyAddr(), description, count);
}

// By address: dump_size elements of any memory.
template <typename T>
__aicore__ inline void asc_dump(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump_values(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_gm(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump_values(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_ubuf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump_values(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_l1buf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump_values(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_cbuf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump_values(input, desc, dump_size);
}

__aicore__ inline int64_t GetSystemCycle() { return asim::read_system_counter(); }

// Registers as a kernel expects them; a simulated block starts in this state anyway.
__aicore__ inline void InitSocState() {
    SetAtomicNone();
    asim::reset_mask();
}

}  // namespace AscendC

using AscendC::asc_dump;
using AscendC::asc_dump_cbuf;
using AscendC::asc_dump_gm;
using AscendC::asc_dump_l1buf;
using AscendC::asc_dump_ubuf;
using AscendC::printf;

namespace asim {

// An assertion of a kernel that does not hold: says so, with the kernel's own words if it has any, and ends the launch.
template <typename... Values>
[[noreturn]] void assertion_failed(const char *condition, const char *format = "", const Values &...values) {
    char words[256];
    if constexpr (sizeof...(Values) == 0) {
        snprintf(words, sizeof words, "%s", format);
    } else {
        snprintf(words, sizeof words, format, printable(values)...);
    }
    fault(FaultKind::RuntimeFault, "ascendc_assert", "assertion `%s' does not hold. %s", condition, words);
}

}  // namespace asim

#define ascendc_assert(condition, ...) \
    (static_cast<bool>(condition) ? void() : asim::assertion_failed(#condition, ##__VA_ARGS__))

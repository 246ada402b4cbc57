// Printing from a kernel, dumping tensors, reading the clock, and the state a kernel starts in.
#pragma once
#include <type_traits>

#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/machine/device_output.h"

namespace asim {

template <typename T>
PrintValue printable(const T &value) {
    if constexpr (std::is_pointer_v<T> && std::is_same_v<std::remove_cv_t<std::remove_pointer_t<T>>, char>) {
        return {reinterpret_cast<uint64_t>(value), PrintKind::Text};
    } else if constexpr (std::is_pointer_v<T>) {
        return {reinterpret_cast<uint64_t>(value), PrintKind::Address};
    } else if constexpr (std::is_floating_point_v<T> || is_floating<T>) {
        return {__builtin_bit_cast(uint64_t, static_cast<double>(value)), PrintKind::Float};
    } else if constexpr (std::is_enum_v<T>) {
        return printable(static_cast<std::underlying_type_t<T>>(value));
    } else {
        return {static_cast<uint64_t>(value), std::is_signed_v<T> ? PrintKind::Signed : PrintKind::Unsigned};
    }
}

template <typename T, size_t N>
PrintValue printable(const T (&values)[N]) {
    return printable(static_cast<const T *>(values));
}

template <typename... Values>
int print(const char *format, const Values &...values) {
    const PrintValue list[] = {printable(values)..., {}};
    return device_print(format, list, sizeof...(values));
}

template <typename T>
constexpr DumpType dump_type() {
    if constexpr (std::is_same_v<T, half>) return DumpType::Half;
    if constexpr (std::is_same_v<T, bfloat16_t>) return DumpType::Bfloat16;
    if constexpr (std::is_same_v<T, float>) return DumpType::Float;
    if constexpr (std::is_same_v<T, double>) return DumpType::Double;
    return std::is_signed_v<T> ? DumpType::Signed : DumpType::Unsigned;
}

template <typename T>
void dump(const T *values, uint32_t description, uint32_t count) {
    dump_values((const void *)values, dump_type<std::remove_cv_t<T>>(), sizeof(T), description, count);
}

}  // namespace asim

namespace AscendC {

template <typename... Values>
__aicore__ inline int printf(const char *format, const Values &...values) {
    return asim::print(format, values...);
}
template <typename... Values>
__aicore__ inline int PRINTF(const char *format, const Values &...values) {
    return asim::print(format, values...);
}

template <typename T>
__aicore__ inline void DumpTensor(const LocalTensor<T> &tensor, uint32_t description, uint32_t count) {
    asim::dump(reinterpret_cast<const T *>(tensor.GetPhyAddr()), description, std::min(count, tensor.GetSize()));
}
template <typename T>
__aicore__ inline void DumpTensor(const GlobalTensor<T> &tensor, uint32_t description, uint32_t count) {
    asim::dump(tensor.GetPhyAddr(), description, count);
}

// From element `countOff` on.
template <typename T>
__aicore__ inline void DumpAccChkPoint(const LocalTensor<T> &tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize) {
    DumpTensor(tensor[countOff], index, dumpSize);
}
template <typename T>
__aicore__ inline void DumpAccChkPoint(const GlobalTensor<T> &tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize) {
    DumpTensor(tensor[countOff], index, dumpSize);
}

// By address: dump_size elements of any memory.
template <typename T>
__aicore__ inline void asc_dump(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_gm(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_ubuf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_l1buf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump(input, desc, dump_size);
}
template <typename T>
__aicore__ inline void asc_dump_cbuf(T *input, uint32_t desc, uint32_t dump_size) {
    asim::dump(input, desc, dump_size);
}

__aicore__ inline int64_t GetSystemCycle() { return asim::read_system_counter(); }

// Both print where ASCENDC_TIME_STAMP_ON is defined, and are nothing else.
__aicore__ inline void PrintTimeStamp([[maybe_unused]] uint32_t descId) {
#ifdef ASCENDC_TIME_STAMP_ON
    asim::print("descId is %u, rsv is 0, timeStamp is %ld\n", descId, GetSystemCycle());
#endif
}
__aicore__ inline void asc_time_stamp(uint32_t desc_id) { PrintTimeStamp(desc_id); }

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
using AscendC::asc_time_stamp;
using AscendC::printf;

namespace asim {

// An assertion of a kernel that does not hold.
template <typename... Values>
[[noreturn]] void assertion_of_kernel_failed(const char *condition, const char *format = "", const Values &...values) {
    const PrintValue list[] = {printable(values)..., {}};
    assertion_failed(condition, format, static_cast<const PrintValue *>(list), static_cast<uint32_t>(sizeof...(values)));
}

}  // namespace asim

#define ascendc_assert(condition, ...) \
    (static_cast<bool>(condition) ? void() : asim::assertion_of_kernel_failed(#condition, ##__VA_ARGS__))

// A vector core in a test: one unified buffer, faults as exceptions, the trace in memory.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "asim/machine/block.h"
#include "kernel_operator.h"

using Arguments = const int64_t *;
using Call = std::function<void(Arguments)>;

// Calls by name; a driver fills this while it is loaded.
std::map<std::string, Call> &calls();

struct Register {
    Register(const std::string &name, Call call) { calls()[name] = std::move(call); }
};

template <typename T>
AscendC::LocalTensor<T> tensor(int64_t offset_bytes) {
    asim::Block &self = asim::block();
    return AscendC::LocalTensor<T>(self.ub + offset_bytes, self.ub_bytes - offset_bytes, AscendC::TPosition::VECCALC);
}

template <typename T>
std::string type_name();
#define NAME_TYPE(Type, Name) \
    template <>               \
    inline std::string type_name<Type>() { return Name; }
NAME_TYPE(half, "float16")
NAME_TYPE(bfloat16_t, "bfloat16")
NAME_TYPE(float, "float32")
NAME_TYPE(int8_t, "int8")
NAME_TYPE(uint8_t, "uint8")
NAME_TYPE(int16_t, "int16")
NAME_TYPE(uint16_t, "uint16")
NAME_TYPE(int32_t, "int32")
NAME_TYPE(uint32_t, "uint32")
NAME_TYPE(int64_t, "int64")
NAME_TYPE(uint64_t, "uint64")
#undef NAME_TYPE

// A scalar passed as its bits.
template <typename T>
T scalar(int64_t bits) {
    T value;
    std::memcpy(static_cast<void *>(&value), &bits, sizeof value);
    return value;
}

#include "asim/semantics/atomic.h"

#include <cstring>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/numeric/types.h"

namespace asim {

namespace {

template <typename T>
T combine(T old, T value, AtomicMode mode) {
    switch (mode) {
        case AtomicMode::Add: return static_cast<T>(old + value);
        case AtomicMode::Max: return old > value ? old : value;
        case AtomicMode::Min: return old < value ? old : value;
        default: return value;
    }
}

template <typename T>
void accumulate_as(uint8_t *destination, const uint8_t *source, uint32_t bytes) {
    for (uint32_t offset = 0; offset + sizeof(T) <= bytes; offset += sizeof(T)) {
        T old, value;
        std::memcpy(&old, destination + offset, sizeof(T));
        std::memcpy(&value, source + offset, sizeof(T));
        const T result = combine<T>(old, value, block().atomic);
        std::memcpy(destination + offset, &result, sizeof(T));
    }
}

}  // namespace

void accumulate(uint8_t *destination, const uint8_t *source, uint32_t bytes, uint32_t dtype_code) {
    switch (static_cast<AtomicType>(dtype_code)) {
        case AtomicType::F32: return accumulate_as<float>(destination, source, bytes);
        case AtomicType::F16: return accumulate_as<half>(destination, source, bytes);
        case AtomicType::Bf16: return accumulate_as<bfloat16_t>(destination, source, bytes);
        case AtomicType::I32: return accumulate_as<int32_t>(destination, source, bytes);
        case AtomicType::I16: return accumulate_as<int16_t>(destination, source, bytes);
        case AtomicType::I8: return accumulate_as<int8_t>(destination, source, bytes);
    }
    fault(FaultKind::Unsupported, "DataCopy", "atomic accumulation of element type code %u is not supported", dtype_code);
}

}  // namespace asim

// Element types of Ascend C and how they convert.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

using half = _Float16;
using float32_t = float;

// Two-byte brain float. Arithmetic goes through float; conversion from float rounds to nearest even.
class __attribute__((visibility("default"))) bfloat16_t {
public:
    bfloat16_t() = default;
    bfloat16_t(float value) : bits_(round(value)) {}
    operator float() const {
        const uint32_t wide = static_cast<uint32_t>(bits_) << 16;
        float value;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }

private:
    static uint16_t round(float value) {
        uint32_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        if ((wide & 0x7fffffffu) > 0x7f800000u) {
            return static_cast<uint16_t>((wide >> 16) | 0x40u);
        }
        return static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
    }
    uint16_t bits_;
};

// Signed numbers of four bits. A tensor of them is only reinterpreted and cast as a whole: its elements have no address.
struct int4b_t {
    uint8_t storage;
};

namespace asim {

template <typename... Ts>
struct TypeList {};

template <typename T, typename List>
struct contains;
template <typename T, typename... Ts>
struct contains<T, TypeList<Ts...>> : std::bool_constant<(std::is_same_v<T, Ts> || ...)> {};

template <typename T>
constexpr bool is_floating = std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, bfloat16_t>;

}  // namespace asim

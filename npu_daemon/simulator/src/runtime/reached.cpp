#include "asim/machine/reached.h"

namespace asim {

namespace {

uint8_t g_reached[kCoreKinds][kMaxReached / 8];

}  // namespace

void note_reached(uint32_t number) {
    if (number < kMaxReached) g_reached[static_cast<uint32_t>(block().kind)][number / 8] |= static_cast<uint8_t>(1u << number % 8);
}

std::string reached_digits(CoreKind kind) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (const uint8_t byte : g_reached[static_cast<uint32_t>(kind)]) {
        digits += kDigits[byte >> 4];
        digits += kDigits[byte & 15];
    }
    return digits.substr(0, digits.find_last_not_of('0') + 1);
}

}  // namespace asim

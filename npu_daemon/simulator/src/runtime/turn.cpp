#include "asim/machine/turn.h"

namespace asim {

namespace {

constexpr uint64_t kShiftBytes = 37ull << 21;   // huge pages, so that alignments stay
constexpr uint8_t kFinitePoison = 0x7b;         // large and finite in every floating-point type
Turn g_turn;

}  // namespace

const Turn &turn() { return g_turn; }

void begin_turn(uint32_t number) {
    if (number != 0) g_turn = {number * kShiftBytes, kFinitePoison};
}

}  // namespace asim

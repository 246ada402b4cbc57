// Rounding functions and the sign.
#include "math_formulas.h"

namespace asim {

#define ASIM_ROUNDING(Name, Mode)                          \
    ASIM_FORMULA(Name, 0, false) {                         \
        (void)piece;                                       \
        steps.round(dst, src, RoundMode::Mode);            \
    }

ASIM_ROUNDING(Floor, CAST_FLOOR)
ASIM_ROUNDING(Ceil, CAST_CEIL)
ASIM_ROUNDING(Trunc, CAST_TRUNC)
ASIM_ROUNDING(Round, CAST_RINT)
ASIM_ROUNDING(Rint, CAST_RINT)

#undef ASIM_ROUNDING

ASIM_FORMULA(Frac, 1, false) {
    T *whole = piece[0];
    steps.round(whole, src, RoundMode::CAST_TRUNC);
    steps.template two<Op::Sub>(dst, src, whole);
}

// 1 where x > 0, -1 where x < 0, else 0.
ASIM_FORMULA(Sign, 3, true) {
    T *x = piece[0], *positive = piece[1], *flag = piece[2];
    steps.template by<Op::Adds>(x, src, 0.0f);                  // comparisons read whole repeats
    steps.where(piece.bits(2), x, CompareMode::GT, 0.0f);
    steps.fill(positive, 1.0f);
    steps.choose(positive, reinterpret_cast<uint8_t *>(flag), positive, 0.0f);
    steps.where(piece.bits(2), x, CompareMode::LT, 0.0f);
    steps.fill(x, -1.0f);
    steps.choose(x, reinterpret_cast<uint8_t *>(flag), x, 0.0f);
    steps.template two<Op::Add>(dst, positive, x);
}

}  // namespace asim

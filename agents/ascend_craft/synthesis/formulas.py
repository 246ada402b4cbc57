"""Functions that no instruction has, as lists of instructions."""

from __future__ import annotations

from collections.abc import Callable

Line = tuple[str, ...]
"""An instruction without its count: name, buffer that it writes, operands."""

# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: |error| <= 1.5e-7
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911

_ROUNDING = "12582912.0"  # 1.5 times 2 ** 23: floats above it are whole
_HALF_TURNS = "0.3183098861837907"
_PI_PARTS = ("3.140625", "9.67502593994140625e-4", "1.509957990978376432e-7")  # Cody and Waite, 1980
TEMPORARIES = {"tanh": 1, "erf": 2, "round": 0, "sin": 2, "cos": 2}
"""Buffers of room to work in."""


def _tanh(dst: str, x: str, below: str) -> list[Line]:
    """1 - 2 / (exp(2 x) + 1): right at both ends, where exp overflows or vanishes."""
    return [
        ("muls", below, x, "2.0"),
        ("exp", below, below),
        ("adds", below, below, "1.0"),
        ("fill", dst, "-2.0"),
        ("div", dst, dst, below),
        ("adds", dst, dst, "1.0"),
    ]


def _erf(dst: str, x: str, size: str, t: str) -> list[Line]:
    """1 - t polynomial(t) exp(-x x) with t = 1 / (1 + p |x|), between limits that have the sign of x."""
    polynomial: list[Line] = []
    for factor in reversed(_ERF[:4]):
        polynomial += [("adds", dst, dst, repr(factor)), ("mul", dst, dst, t)]
    return [
        ("abs", size, x),
        ("muls", t, size, repr(_ERF_P)),
        ("adds", t, t, "1.0"),
        ("fill", dst, "1.0"),
        ("div", t, dst, t),
        ("muls", dst, t, repr(_ERF[4])),
        *polynomial,
        ("mul", size, size, size),
        ("muls", size, size, "-1.0"),
        ("exp", size, size),
        ("mul", dst, dst, size),
        ("adds", dst, dst, "-1.0"),
        ("muls", t, dst, "-1.0"),
        ("muls", size, x, "1.0e30"),
        ("vmin", size, size, t),
        ("vmax", dst, dst, size),
    ]


def _round(dst: str, x: str) -> list[Line]:
    """The nearest whole number, of two the even one, for |x| < 2 ** 22."""
    return [("adds", dst, x, _ROUNDING), ("adds", dst, dst, f"-{_ROUNDING}")]


def _sin(dst: str, x: str, turns: str, rest: str) -> list[Line]:
    """The sine of what is left of x beyond half turns, with the sign of an even or odd number of these."""
    return [("muls", turns, x, _HALF_TURNS), *_round(turns, turns), *_sin_of_rest(dst, x, turns, rest)]


def _cos(dst: str, x: str, turns: str, rest: str) -> list[Line]:
    """The sine a quarter turn further: half turns are counted from half of one on."""
    return [
        ("muls", turns, x, _HALF_TURNS),
        ("adds", turns, turns, "0.5"),
        *_round(turns, turns),
        ("adds", turns, turns, "-0.5"),
        *_sin_of_rest(dst, x, turns, rest, whole="0.5"),
    ]


def _sin_of_rest(dst: str, x: str, turns: str, rest: str, whole: str = "") -> list[Line]:
    """Taylor's series of the sine to the eleventh power, on [-pi / 2, pi / 2]: |error| <= 5.7e-8."""
    reduced: list[Line] = [("copy", rest, x)]
    for part in _PI_PARTS:
        reduced += [("muls", dst, turns, part), ("sub", rest, rest, dst)]
    parity = [("adds", turns, turns, whole)] if whole else []
    series: list[Line] = [("mul", dst, rest, rest)]
    return [
        *reduced,
        *parity,
        *_sign_of_parity(dst, turns),
        ("mul", turns, turns, rest),
        *series,
        ("muls", rest, dst, "-2.5052108385e-8"),
        *(
            line
            for factor in ("2.7557319224e-6", "-1.9841269841e-4", "8.3333333333e-3", "-0.16666666667", "1.0")
            for line in (
                ("adds", rest, rest, factor),
                *([("mul", rest, rest, dst)] if factor != "1.0" else []),
            )
        ),
        ("mul", dst, rest, turns),
    ]


def _sign_of_parity(room: str, turns: str) -> list[Line]:
    """Make 1 of even numbers and -1 of odd ones."""
    return [
        ("muls", room, turns, "0.5"),
        *_round(room, room),
        ("muls", room, room, "-2.0"),
        ("add", turns, turns, room),
        ("abs", turns, turns),
        ("muls", turns, turns, "-2.0"),
        ("adds", turns, turns, "1.0"),
    ]


FORMULAS: dict[str, Callable[..., list[Line]]] = {
    "tanh": _tanh,
    "erf": _erf,
    "round": _round,
    "sin": _sin,
    "cos": _cos,
}
"""By function: what computes it, given the buffers of the result, of the argument, and room to work in."""

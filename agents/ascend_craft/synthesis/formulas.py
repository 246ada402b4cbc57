"""Functions that no instruction has, as lists of instructions."""

from __future__ import annotations

from collections.abc import Callable

Line = tuple[str, ...]
"""An instruction without its count: name, buffer that it writes, operands."""

# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: |error| <= 1.5e-7
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911


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


FORMULAS: dict[str, Callable[..., list[Line]]] = {"tanh": _tanh, "erf": _erf}
"""By function: what computes it, given the buffers of the result, of the argument, and room to work in."""

TEMPORARIES = {"tanh": 1, "erf": 2}
"""Buffers of room to work in."""

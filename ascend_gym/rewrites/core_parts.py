"""Rules about kernels with the part of a core as a constant, as Matmul objects of constant shapes have it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_gym.rewrites.constants import Constant, constants_of, names_core_count
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule

_PART = re.compile(r"single_?core_?([mn])", re.IGNORECASE)
_MOST_CORES = 48
_LEAST_PART = 16  # rows and columns of the smallest piece that the cube unit takes
_SPREAD = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "more cores, each with a smaller part of the result"
)


@rule(Family.TILING, Side.BOTH, _SPREAD, inverse="core_parts")
def core_parts(view: View) -> Iterator[Site]:
    """The host has the number of cores as a constant, the kernel the rows or columns of the part of each.

    Their product stays. Parts stay multiples of the block of one instruction (``baseM`` for ``singleCoreM``),
    where the kernel has it as a constant too. Assumption: the host cuts the work in the same order.
    """
    cores = [each for each in _fixed(view.host) if names_core_count(each) and each.literal]
    if len(cores) != 1:
        return
    for part in _fixed(view.kernel):
        match = _PART.fullmatch(part.name)
        if match is not None and part.literal:
            choices = tuple(_choices(cores[0], part, _base_of(view, match[1])))
            if choices:
                yield Site(part.label, choices)


RULES: tuple[Rule, ...] = (core_parts,)
REWINDS: tuple[Rule, ...] = ()


def has_part_of_core(view: View) -> bool:
    """Return whether the kernel has the part of a core as a constant."""
    return any(_PART.match(each.name) for each in _fixed(view.kernel))


def _fixed(files: list[File]) -> list[Constant]:
    return [each for file in files for each in constants_of(file) if each.is_fixed]


def _base_of(view: View, letter: str) -> int:
    """Return the rows (``m``) or columns (``n``) of the block of one instruction."""
    named = [each.literal for each in _fixed(view.kernel) if each.name.lower() == f"base{letter.lower()}"]
    return next((base for base in named if base), _LEAST_PART)


def _choices(cores: Constant, part: Constant, base: int) -> Iterator[Choice]:
    """Yield more cores with smaller parts, the most first, then fewer with larger ones."""
    present, size = cores.literal or 1, part.literal or 1
    for factor in range(min(_MOST_CORES // present, size // base), 1, -1):
        if size % (factor * base) == 0:
            yield _choice(cores, part, present * factor, size // factor, forward=True)
    for factor in range(2, present + 1):
        if present % factor == 0:
            yield _choice(cores, part, present // factor, size * factor, forward=False)


def _choice(cores: Constant, part: Constant, count: int, size: int, *, forward: bool) -> Choice:
    label = f"{cores.name}: {cores.literal} -> {count} and {part.name}: {part.literal} -> {size}"
    edits = (cores.replaced(cores.with_literal(count)), part.replaced(part.with_literal(size)))
    return Choice(label, edits, forward)

"""Rules about how the work is divided: lengths and starts of tiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tree_sitter import Node

from ascend_gym.rewrites.constants import (
    Constant,
    constants_of,
    names_alignment,
    names_parts,
    names_reserve,
    names_tile,
    replacement,
    scaled_choices,
)
from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    FileEdit,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    rule,
)
from ascend_gym.rewrites.syntax import Edit

_TILE_FACTORS = tuple(map(Fraction, ("2", "4", "8", "1/2", "1/4", "1/8")))
_SMALLER_FACTORS = tuple(map(Fraction, ("1/2", "1/4", "2", "4")))
_ALIGNMENTS_BYTES = (512, 256, 128, 64, 32)
_FEWEST_RESERVED = 128  # bytes; smaller figures count blocks or buffers
_UB_CALL = "GetCoreMemSize"
_UB_KIND = re.compile(r"(?:\w+::)*CoreMemType::UB")
_VARIABLE = re.compile(r"\w+(?:(?:\.|->)\w+)*")
_UB_HALVES = (4, 8, 3, 16)  # 2 / n of UB
_ALL_HALVES = 2
_UB_SHARE = r"{0} = {0} \* 2 / (\d+) / 512 \* 512;"

_FEWER_LARGER_TILES = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.SCALAR, Pipe.VECTOR),
    "larger tiles: longer bursts, and start-up costs of copies and instructions paid less often",
)
_MORE_SMALLER_TILES = Effect(
    (Pipe.MTE2, Pipe.MTE3), "more and smaller tiles: copies in, computing and copies out overlap"
)
_ALIGNED_COPIES = Effect(
    (Pipe.MTE2, Pipe.MTE3), "copies that begin on the 512-byte grid of global memory run at full bandwidth"
)


@rule(Family.TILING, Side.TILING, _FEWER_LARGER_TILES, inverse="tile_size")
def tile_size(view: View) -> Iterator[Site]:
    """An integer of the host side is named like a tile length or a share of UB.

    Assumption: dependent values are computed from it, and the kernel gets it through tiling data.
    """
    shared = _shared_names(view, names_tile)
    for constant in _named(view.host, names_tile):
        if constant.name not in shared:
            yield from _scaling_site([constant], _TILE_FACTORS)


@rule(Family.TILING, Side.KERNEL, _FEWER_LARGER_TILES, inverse="kernel_tile_size")
def kernel_tile_size(view: View) -> Iterator[Site]:
    """A kernel constant is named like a tile length, and the host has none with that name and value."""
    shared = _shared_names(view, names_tile)
    for constant in _named(view.kernel, names_tile):
        if constant.is_fixed and constant.name not in shared and constant.literal is not None:
            yield from _scaling_site([constant], _TILE_FACTORS)


@rule(Family.TILING, Side.BOTH, _FEWER_LARGER_TILES, inverse="shared_tile_size")
def shared_tile_size(view: View) -> Iterator[Site]:
    """Host and kernel define a tile length of the same name and value; both change together."""
    for constants in _shared_names(view, names_tile).values():
        yield from _scaling_site(constants, _TILE_FACTORS)


@rule(Family.TILING, Side.TILING, _ALIGNED_COPIES, inverse="tile_alignment")
def tile_alignment(view: View) -> Iterator[Site]:
    """The host computes a tile length, in elements or in blocks of 32 bytes, from other quantities.

    If it is rounded down to whole 512 bytes, all tiles have the alignment of the first. Assumption: a tile
    has at least 512 bytes, and later values are computed from the rounded length.
    """
    for constant in _named(view.host, names_tile):
        if not constant.is_arithmetic and not names_parts(constant):
            yield _rounding_site(constant)


@rule(Family.TILING, Side.TILING, _ALIGNED_COPIES, inverse="split_alignment")
def split_alignment(view: View) -> Iterator[Site]:
    """An integer of the host is named like the alignment of the shares of cores and tiles, and is 32 to 512.

    Assumption: it is used for rounding, and the kernel gets the results through tiling data.
    """
    for constant in _named(view.host, names_alignment):
        present = constant.literal or 0
        choices = tuple(
            replacement([constant], constant.with_literal(size), forward=size > present)
            for size in _ALIGNMENTS_BYTES
            if size != present
        )
        if present in _ALIGNMENTS_BYTES:
            yield Site(constant.label, choices)


@rule(Family.TILING, Side.TILING, _FEWER_LARGER_TILES, inverse="ub_reserve")
def ub_reserve(view: View) -> Iterator[Site]:
    """An integer of the host is named like a part of UB that is kept free.

    A smaller reserve leaves more space for tiles. Assumption: the kernel does not need all of it.
    """
    for constant in _named(view.host, names_reserve):
        choices = []
        for factor in _SMALLER_FACTORS:
            value = (constant.literal or 0) * factor
            if value >= _FEWEST_RESERVED and value.denominator == 1:
                text = constant.with_literal(int(value))
                choices.append(replacement([constant], text, forward=factor < 1))
        if choices:
            yield Site(constant.label, tuple(choices))


@rule(
    Family.TILING,
    Side.TILING,
    _MORE_SMALLER_TILES,
    inverse="ub_share",
    examples=(
        (
            "void f() {\n  p.GetCoreMemSize(CoreMemType::UB, size);\n}\n",
            "void f() {\n  p.GetCoreMemSize(CoreMemType::UB, size);\n  size = size * 2 / 4 / 512 * 512;\n}\n",
        ),
    ),
)
def ub_share(view: View) -> Iterator[Site]:
    """Variables get the size of UB from the platform, by statements of their own.

    Part of UB is used, so that a core has several tiles and the copies of one overlap with computing another.
    Assumption: tiles are cut by these variables. An existing share can be changed or removed.
    """
    asked = [
        _UbSize(file, call.statement, call.values[1])
        for file in view.host
        for call in file.source.calls
        if call.name == _UB_CALL
        and len(call.values) == 2
        and _UB_KIND.fullmatch(call.values[0])
        and call.statement is not None
        and _VARIABLE.fullmatch(call.values[1])
    ]
    if asked:
        present = asked[0].halves
        choices = tuple(
            Choice(
                f"{asked[0].variable}: {_told_share(present)} -> {_told_share(halves)}",
                tuple(edit for each in asked for edit in each.set_to(halves)),
                forward=halves > present,
            )
            for halves in (*_UB_HALVES, _ALL_HALVES)
            if halves != present
        )
        yield Site(asked[0].label, choices)


RULES: tuple[Rule, ...] = (
    tile_size,
    kernel_tile_size,
    shared_tile_size,
    tile_alignment,
    split_alignment,
    ub_reserve,
    ub_share,
)
REWINDS: tuple[Rule, ...] = ()


def _named(files: list[File], means: Callable[[Constant], bool]) -> Iterator[Constant]:
    for file in files:
        yield from (constant for constant in constants_of(file) if means(constant))


def _shared_names(view: View, means: Callable[[Constant], bool]) -> dict[str, list[Constant]]:
    """Return the fixed literal constants that host and kernel define with equal values, by name."""
    by_name: dict[str, list[Constant]] = defaultdict(list)
    for constant in [*_named(view.host, means), *_named(view.kernel, means)]:
        if constant.is_fixed and constant.literal is not None:
            by_name[constant.name].append(constant)
    host_paths = {file.path for file in view.host}
    return {
        name: constants
        for name, constants in by_name.items()
        if len({constant.literal for constant in constants}) == 1
        and 0 < sum(constant.file.path in host_paths for constant in constants) < len(constants)
    }


def _scaling_site(constants: list[Constant], factors: tuple[Fraction, ...]) -> Iterator[Site]:
    choices = tuple(scaled_choices(constants, factors))
    if choices:
        yield Site(" and ".join(constant.label for constant in constants), choices)


@dataclass(frozen=True)
class _UbSize:
    """A variable that gets the size of UB in a statement, and the share of it that the next one takes."""

    file: File
    statement: Node
    variable: str

    @property
    def label(self) -> str:
        return self.file.label(self.statement.start_byte, self.file.source.text_of(self.statement))

    @property
    def halves(self) -> int:
        divided = self._divided
        return int(divided[1]) if divided else _ALL_HALVES

    def set_to(self, halves: int) -> list[FileEdit]:
        """Return the edit that sets the share; none where it is that already."""
        line = (
            f"{self.variable} = {self.variable} * 2 / {halves} / 512 * 512;" if halves > _ALL_HALVES else ""
        )
        following = self.statement.next_named_sibling
        if halves == self.halves:
            return []
        if not self._divided or following is None:
            return [self.file.edit(self.file.source.insertion_after(self.statement, line))]
        begin = following.start_byte if line else self.statement.end_byte
        return [self.file.edit(Edit(begin, following.end_byte, line))]

    @property
    def _divided(self) -> re.Match[str] | None:
        following = self.statement.next_named_sibling
        text = self.file.source.text_of(following) if following is not None else ""
        return re.fullmatch(_UB_SHARE.format(re.escape(self.variable)), text)


def _told_share(halves: int) -> str:
    return f"2/{halves} of UB" if halves > _ALL_HALVES else "all of UB"


def _rounding_site(constant: Constant) -> Site:
    """Return the site that rounds a computed tile length down, or removes such rounding."""
    in_blocks = "block" in constant.words and "num" in constant.words
    rounding = f" / {16 if in_blocks else 512} * {16 if in_blocks else 512}"
    text, wrapped = constant.value_text, _rounded_operand(constant.value_node)
    if text.endswith(f"){rounding}") and wrapped is not None:
        plain = constant.file.source.text_of(wrapped.named_children[0])
        return Site(constant.label, (replacement([constant], plain, forward=False),))
    return Site(constant.label, (replacement([constant], f"({text}){rounding}", forward=True),))


def _rounded_operand(product: Node) -> Node | None:
    """Return ``(a)`` if the product is ``(a) / n * n``; else ``None``."""
    quotient = product.child_by_field_name("left")
    operand = quotient.child_by_field_name("left") if quotient is not None else None
    return operand if operand is not None and operand.type == "parenthesized_expression" else None

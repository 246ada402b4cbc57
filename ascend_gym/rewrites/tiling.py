"""Rules about how the work is cut: tile sizes and the number of cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

from tree_sitter import Node

from ascend_gym.rewrites.constants import (
    Constant,
    constants_of,
    names_core_count,
    names_tile,
    replacement,
    scaled_choices,
)
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Edit, ancestor

_TILE_FACTORS = tuple(map(Fraction, ("2", "4", "8", "1/2", "1/4", "1/8")))
_CORE_COUNTS = (20, 24, 40, 48)  # cube and vector cores of the 910B family
_CORE_CALLS = ("SetBlockDim", "SetNumBlocks")
_PLATFORM_HEADER = "tiling/platform/platform_ascendc.h"

_FEWER_LARGER_TILES = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.SCALAR, Pipe.VECTOR),
    "larger tiles: longer bursts, and start-up costs of copies and instructions paid less often",
)
_MORE_CORES = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "work spread over the cores that the chip has"
)


@rule(Family.TILING, Side.TILING, _FEWER_LARGER_TILES, inverse="tile_size")
def tile_size(view: View) -> Iterator[Site]:
    """An integer of the host side is named like a tile length or a share of UB.

    Taken for granted: what depends on it is computed from it, and the kernel learns it through tiling data.
    """
    shared = _shared_names(view, names_tile)
    for constant in _named(view.host, names_tile):
        if constant.name not in shared:
            yield from _scaling_site([constant], _TILE_FACTORS)


@rule(Family.TILING, Side.KERNEL, _FEWER_LARGER_TILES, inverse="kernel_tile_size")
def kernel_tile_size(view: View) -> Iterator[Site]:
    """A constant of the kernel is named like a tile length, and the host has none of that name and value."""
    shared = _shared_names(view, names_tile)
    for constant in _named(view.kernel, names_tile):
        if constant.is_fixed and constant.name not in shared and constant.literal is not None:
            yield from _scaling_site([constant], _TILE_FACTORS)


@rule(Family.TILING, Side.BOTH, _FEWER_LARGER_TILES, inverse="shared_tile_size")
def shared_tile_size(view: View) -> Iterator[Site]:
    """Host and kernel define a tile length of the same name and value; both change together."""
    for constants in _shared_names(view, names_tile).values():
        yield from _scaling_site(constants, _TILE_FACTORS)


@rule(Family.TILING, Side.TILING, _MORE_CORES)
def block_dim(view: View) -> Iterator[Site]:
    """The number of cores is an integer literal: a constant named so, or the argument of SetBlockDim.

    Taken for granted: what each core does follows from that number.
    """
    for constant in [*_named(view.host, names_core_count), *_block_dim_literals(view)]:
        present = constant.literal or 0
        counts = sorted({*_CORE_COUNTS, present * 2, present // 2} - {0, present}, key=_by_promise(present))
        choices = (
            replacement([constant], constant.with_literal(count), forward=count > present) for count in counts
        )
        yield Site(constant.label, tuple(choices))


@rule(Family.TILING, Side.TILING, _MORE_CORES)
def block_dim_from_platform(view: View) -> Iterator[Site]:
    """A const or constexpr number of cores is used in one function, which has the tiling context.

    A local variable of the same name then shadows it with the vector cores of the chip at hand.
    """
    for constant in _named(view.host, names_core_count):
        function = _only_user(constant)
        if constant.is_fixed and constant.type_text and function is not None:
            edits = [_shadowing(constant, function)]
            if _PLATFORM_HEADER.encode() not in constant.file.source.data:
                edits.append(Edit(0, 0, f'#include "{_PLATFORM_HEADER}"\n'))
            file_edits = tuple(constant.file.edit(edit) for edit in edits)
            yield Site(constant.label, (Choice(f"{constant.name}: cores of the platform", file_edits),))


RULES: tuple[Rule, ...] = (tile_size, kernel_tile_size, shared_tile_size, block_dim, block_dim_from_platform)
REWINDS: tuple[Rule, ...] = ()


def _named(files: list[File], means: Callable[[Constant], bool]) -> Iterator[Constant]:
    for file in files:
        yield from (constant for constant in constants_of(file) if means(constant))


def _shared_names(view: View, means: Callable[[Constant], bool]) -> dict[str, list[Constant]]:
    """Return, by name, the fixed literal constants that host and kernel define with one value."""
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


def _by_promise(present: int) -> Callable[[int], tuple[bool, int]]:
    """Order core counts: more than at present first, and those nearest to all vector cores before others."""
    return lambda count: (count <= present, abs(count - max(_CORE_COUNTS)))


def _block_dim_literals(view: View) -> Iterator[Constant]:
    for file in view.host:
        for call in file.source.calls:
            if call.name in _CORE_CALLS and len(call.arguments) == 1:
                text = file.source.text_of(call.arguments[0])
                constant = Constant(file, "block_dim", call.arguments[0], text, False, "")
                if names_core_count(constant):
                    yield constant


def _only_user(constant: Constant) -> Node | None:
    """Return the function that holds every use of a constant, if one does and it has the context."""
    source = constant.file.source
    uses = [
        node
        for node in source.nodes("identifier")
        if source.text_of(node) == constant.name and node.end_byte > constant.value_node.end_byte
    ]
    functions = {ancestor(node, "function_definition") for node in uses}
    function = functions.pop() if len(functions) == 1 else None
    if function is None or ancestor(constant.value_node, "function_definition") is not None:
        return None
    declarator = function.child_by_field_name("declarator")
    has_context = declarator is not None and "TilingContext*context" in source.bare(declarator)
    return function if has_context and function.child_by_field_name("body") is not None else None


def _shadowing(constant: Constant, function: Node) -> Edit:
    body = function.child_by_field_name("body")
    at = body.start_byte + 1 if body is not None else function.end_byte
    count = "platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv()"
    return Edit(at, at, f"\n    const {constant.type_text} {constant.name} = {count};")

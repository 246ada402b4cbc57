"""The rule about how many units of work a core takes at least: fewer cores start where there are few."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Source, ancestor, statements_of

CORE_NAME = re.compile(r"[\w.>-]*(?:core|block_?dim)\w*", re.IGNORECASE)
_PLATFORM = re.compile(r"\bGetCoreNum\w*\s*\(")
FEWER_LAUNCHES = Effect((Pipe.SCALAR,), "fewer blocks to start one after another where each has little to do")

_UNITS_PER_CORE = (256, 1024, 64, 4096, 16)  # of 32 bytes mostly: 8 KB, 32 KB, 2 KB, 128 KB, 512 B
_LESS = {"<": ("left", "right"), "<=": ("left", "right"), ">": ("right", "left"), ">=": ("right", "left")}


@rule(Family.TILING, Side.TILING, FEWER_LAUNCHES, inverse="least_core_work")
def least_core_work(view: View) -> Iterator[Site]:
    """The number of cores is the smaller of itself and a number of units.

    It is written ``cores < n ? cores : n``, ``min(cores, n)``, or as an ``if`` that compares the two and
    returns or assigns the smaller. With n divided, rounding up, each core gets several units, and fewer cores
    start if there are few.
    """
    for file in view.host:
        for kind, mentions in _UNITS_IN.items():
            for node in file.source.nodes(kind):
                units = mentions(file.source, node)
                if units and not _asks_platform(file.source, units[0]):
                    yield _units_site(file, units)


def _units_of_conditional(source: Source, conditional: Node) -> list[Node]:
    """Return both mentions of n in ``cores < n ? cores : n``, or in the same the other way round."""
    sides = _compared(source, conditional.child_by_field_name("condition"))
    branches = [conditional.child_by_field_name(field) for field in ("consequence", "alternative")]
    if sides is None or None in branches:
        return []
    smaller, larger = (source.bare(side) for side in sides)
    if [source.bare(branch) for branch in branches if branch is not None] != [smaller, larger]:
        return []
    at = 1 if _is_of_cores(source, sides[0]) else 0
    known = _is_of_cores(source, sides[1 - at]) and not sides[at].type.endswith("literal")
    return [node for node in (sides[at], branches[at]) if node is not None] if known else []


def _units_of_branch(source: Source, branch: Node) -> list[Node]:
    """Return both mentions of n in ``if (n < cores) return n;`` or ``cores = n;``."""
    sides = _compared(source, branch.child_by_field_name("condition"))
    body = branch.child_by_field_name("consequence")
    steps = statements_of(body) if body is not None and body.type == "compound_statement" else [body]
    if sides is None or len(steps) != 1 or steps[0] is None or not _is_of_cores(source, sides[1]):
        return []
    units, cores = sides
    value = steps[0].named_children[0] if steps[0].named_children else None
    if steps[0].type == "expression_statement" and value is not None:
        target = value.child_by_field_name("left")
        value = value.child_by_field_name("right")
        if target is None or source.bare(target) != source.bare(cores):
            return []
    elif steps[0].type != "return_statement":
        return []
    same = value is not None and source.bare(value) == source.bare(units)
    return [units, value] if same and value is not None and not units.type.endswith("literal") else []


def _units_of_min(source: Source, node: Node) -> list[Node]:
    """Return n in ``min(cores, n)``."""
    call = source.call_of(node)
    if call is None or call.name != "min" or len(call.arguments) != 2:
        return []
    others = [each for each in call.arguments if not _is_of_cores(source, each)]
    limited = others[0].type not in ("number_literal", "initializer_list") if len(others) == 1 else False
    return others if limited and ancestor(node, "function_definition") is not None else []


_UNITS_IN: dict[str, Callable[[Source, Node], list[Node]]] = {
    "conditional_expression": _units_of_conditional,
    "if_statement": _units_of_branch,
    "call_expression": _units_of_min,
}


def _compared(source: Source, condition: Node | None) -> tuple[Node, Node] | None:
    """Return what a comparison takes for smaller, and what for larger."""
    while condition is not None and condition.type in ("parenthesized_expression", "condition_clause"):
        condition = condition.named_children[0]
    operator = condition.child_by_field_name("operator") if condition is not None else None
    if condition is None or operator is None or condition.type != "binary_expression":
        return None
    fields = _LESS.get(source.text_of(operator))
    sides = [condition.child_by_field_name(field) for field in fields] if fields else []
    found = [side for side in sides if side is not None]
    return (found[0], found[1]) if len(found) == 2 else None


def _is_of_cores(source: Source, node: Node) -> bool:
    return CORE_NAME.fullmatch(source.bare(node)) is not None


def _asks_platform(source: Source, node: Node) -> bool:
    """Say whether a value comes from the platform, so that it counts cores and no work."""
    return _PLATFORM.search(source.text_of(node)) is not None


def _units_site(file: File, units: list[Node]) -> Site:
    text = file.source.text_of(units[0])
    divided = re.fullmatch(r"\((.*) \+ (\d+)\) / (\d+)", text, re.DOTALL)
    if divided and int(divided[2]) != int(divided[3]) - 1:  # does not round up
        divided = None
    plain, present = (divided[1], int(divided[3])) if divided else (text, 1)
    base = plain if re.fullmatch(r"[\w.>/() -]+", plain) else f"({plain})"
    texts = [(f"({base} + {each - 1}) / {each}", True) for each in _UNITS_PER_CORE if each != present]
    texts += [(plain, False)] if divided else []
    choices = []
    for new, ahead in texts:
        edits = tuple(file.replaced(node, new) for node in units)
        choices.append(Choice(f"{text} -> {new}", edits, forward=ahead))
    return Site(file.label(units[0].start_byte, f"at most {text} cores"), tuple(choices))

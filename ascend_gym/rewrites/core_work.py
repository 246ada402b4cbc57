"""Minimum work per core: fewer blocks for small cases, all cores for large ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.cores import FEWER_LAUNCHES, PLATFORM_CALLS
from ascend_gym.rewrites.rule import Choice, Family, File, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call, Edit, ancestor

_ELEMENTS = (8192, 2048, 32768)  # of the first input, for each core
_HEADER = "<algorithm>"
_LIMIT = "static_cast<uint32_t>(std::min<int64_t>("
_VALUES = (
    "init_declarator",
    "assignment_expression",
    "argument_list",
    "return_statement",
    "field_initializer",
)
_LIMITED = re.compile(
    r"(\(\*?\w+->GetInputShape\(0\)->GetStorageShape\(\)\.GetShapeSize\(\) / )(\d+)( \+ 1\))"
)


@rule(Family.TILING, Side.TILING, FEWER_LAUNCHES, inverse="core_work")
def core_work(view: View) -> Iterator[Site]:
    """A value is the platform's number of cores, in a function that has the tiling context.

    The number of cores is limited by the elements of the first input, in thousands. Assumption: the work is
    divided by that value, and grows with the first input. An existing limit can be changed or removed.
    """
    for file in view.host:
        for call in file.source.calls:
            if call.is_method and call.name in PLATFORM_CALLS and not call.arguments:
                site = _site(file, call)
                if site is not None:
                    yield site


RULES: tuple[Rule, ...] = (core_work,)
REWINDS: tuple[Rule, ...] = ()


def _site(file: File, call: Call) -> Site | None:
    parent, text = call.node.parent, file.source.text_of(call.node)
    label = file.label(call.node.start_byte, text)
    limit = _limit_around(file, call.node)
    if limit is not None:
        return Site(label, tuple(_moves(file, limit, call.node)))
    context = _context_of(file, call.node)
    if context is None or parent is None or parent.type not in _VALUES:
        return None
    header = [] if _HEADER in file.source.text else [file.edit(Edit(0, 0, f"#include {_HEADER}\n"))]
    choices = []
    for elements in _ELEMENTS:
        size = f"{context}->GetInputShape(0)->GetStorageShape().GetShapeSize()"
        limited = f"{_LIMIT}{text}, ({size} / {elements} + 1)))"
        edit = file.edit(Edit(call.node.start_byte, call.node.end_byte, limited))
        choices.append(Choice(f"a core for each {elements} elements", (*header, edit)))
    return Site(label, tuple(choices))


def _context_of(file: File, node: Node) -> str | None:
    """Return the pointer to the tiling context from which the enclosing function gets the platform."""
    function = ancestor(node, "function_definition")
    calls = file.source.calls_within(function) if function is not None else []
    named = {
        call.callee.partition("->")[0]
        for call in calls
        if call.name == "GetPlatformInfo" and "->" in call.callee
    }
    asks_shape = any(call.name in ("GetInputShape", "GetInputTensor") for call in calls)
    return named.pop() if len(named) == 1 and asks_shape else None


def _limit_around(file: File, node: Node) -> Node | None:
    """Return the call that limits a number of cores in the form that ``core_work`` writes."""
    smaller = ancestor(node, "call_expression")
    outer = ancestor(smaller, "call_expression") if smaller is not None else None
    text = file.source.text_of(outer) if outer is not None else ""
    return outer if text.startswith(_LIMIT) and _LIMITED.search(text) else None


def _moves(file: File, limit: Node, cores: Node) -> Iterator[Choice]:
    """Yield other limits, larger pieces first, and the inverse: all cores."""
    text = file.source.text_of(limit)
    match = _LIMITED.search(text)
    present = int(match[2]) if match is not None else 0
    for elements in _ELEMENTS:
        if elements != present:
            moved = _LIMITED.sub(rf"\g<1>{elements}\g<3>", text)
            edit = file.edit(Edit(limit.start_byte, limit.end_byte, moved))
            yield Choice(f"a core for each {elements} elements", (edit,))
    edit = file.edit(Edit(limit.start_byte, limit.end_byte, file.source.text_of(cores)))
    yield Choice("all cores", (edit,), forward=False)

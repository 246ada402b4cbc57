"""Reductions by blocks of 32 bytes first, the cheapest reduction of the vector unit; and the inverse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    one_and_all,
    rule,
)
from ascend_gym.rewrites.statements import declaration_of
from ascend_gym.rewrites.syntax import Call, Edit
from ascend_gym.rewrites.vector import element_of, is_name, texts_of

_REDUCTIONS = {"ReduceSum": "Sum", "ReduceMax": "Max", "ReduceMin": "Min"}
_ROOM = (
    " * 16"  # of a work buffer that held one or two values for each 64 elements, so that it holds 8 and more
)
_BUFFER_OF = re.compile(r"(?:this->)?(\w+)\.Get(?:<.*>)?\(\)")
_NAMES = ("blockRepeats", "blockRest", "blockParts", "blockValues")
_BRANCH = f"if({_NAMES[0]}>=8&&{_NAMES[0]}<256){{"
_CHEAPER = Effect(
    (Pipe.VECTOR,), "reductions by blocks of 32 bytes, of which one takes a cycle where others take seven"
)


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER, inverse="whole_reduction")
def block_reduction(view: View) -> Iterator[Site]:
    """``ReduceSum``, ``ReduceMax`` or ``ReduceMin`` over a number of floats, with a work tensor of a TBuf.

    From 512 elements on, groups of 8 are first reduced to one element each in the work tensor, whose
    buffer is enlarged. Assumption: the work tensor has the size that the call requires, one or two values
    per 64 elements. The order of additions changes.
    """
    for file in view.kernel:
        sites = [site for call in file.source.calls if (site := _site(file, call)) is not None]
        yield from one_and_all(sites, "reductions")


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER)
def whole_reduction(view: View) -> Iterator[Site]:
    """Blocks are reduced first. Undoes ``block_reduction``, except for the size of the work buffer."""
    for file in view.kernel:
        for call in file.source.calls:
            block = _block_around(file, call)
            if block is not None and _reduces_floats(file, call):
                texts = texts_of(file, call)
                if file.source.text_of(block).split() == " ".join(_lines(call, texts)).split():
                    edit = file.replaced(block, _as_before(call, texts))
                    label = file.label(call.node.start_byte, file.source.text_of(call.node))
                    yield Site(label, (Choice("reduce all at once", (edit,), forward=False),))


RULES: tuple[Rule, ...] = (block_reduction,)
REWINDS: tuple[Rule, ...] = (whole_reduction,)


def _site(file: File, call: Call) -> Site | None:
    """Return the site of a reduction that is not by blocks yet, or ``None``."""
    if call.statement is None or not _reduces_floats(file, call) or _block_around(file, call) is not None:
        return None
    growth = _growth(file, call)
    if growth is None or any(name in value for value in call.values for name in _NAMES):
        return None
    text = f"\n{file.source.indent_of(call.statement)}".join(_lines(call, texts_of(file, call)))
    edit = Edit(call.statement.start_byte, call.statement.end_byte, text)
    edits = tuple(file.edit(each) for each in (edit, *growth))
    label = file.label(call.node.start_byte, file.source.text_of(call.node))
    return Site(label, (Choice(f"{call.name} by blocks first", edits),))


def _reduces_floats(file: File, call: Call) -> bool:
    """Return whether a call reduces a number of floats to their sum or extreme, with a work tensor."""
    if call.name not in _REDUCTIONS or len(call.values) != 4 or call.is_method or call.statement is None:
        return False
    target, source, work, _ = call.values
    floats = call.template == "<float>" or any(_is_of_floats(file, call, each) for each in (target, source))
    return floats and "," not in call.template and work not in (target, source) and target != source


def _is_of_floats(file: File, call: Call, tensor: str) -> bool:
    if is_name(tensor):
        return element_of(file.source, tensor, call.node) == "float"
    return tensor.endswith(".Get<float>()")


def _growth(file: File, call: Call) -> list[Edit] | None:
    """Return the edit that enlarges the work buffer, empty if large enough; ``None`` if unknown."""
    work = call.values[2]
    declared = declaration_of(file.source, work, call.node) if is_name(work) else None
    match = _BUFFER_OF.fullmatch(file.source.bare(declared.value) if declared is not None else work)
    if match is None:
        return None
    made = [
        other
        for other in file.source.calls
        if other.name == "InitBuffer" and other.values[0].removeprefix("this->") == match[1]
    ]
    if len(made) != 1 or len(made[0].arguments) != 2:
        return None
    size = made[0].arguments[1]
    text = file.source.text_of(size)
    return [] if text.endswith(f"){_ROOM}") else [Edit(size.start_byte, size.end_byte, f"({text}){_ROOM}")]


def _block_around(file: File, call: Call) -> Node | None:
    """Return the block that ``block_reduction`` made around a call, which is its other branch."""
    branch = call.statement.parent if call.statement is not None else None
    clause = branch.parent if branch is not None else None
    whole = clause.parent if clause is not None and clause.type == "else_clause" else None
    outer = whole.parent if whole is not None and whole.type == "if_statement" else None
    if whole is None or outer is None or outer.type != "compound_statement":
        return None
    return outer if file.source.bare(whole).startswith(_BRANCH) else None


def _as_before(call: Call, texts: list[str]) -> str:
    return f"{call.callee}{call.template}({', '.join(texts)});"


def _lines(call: Call, texts: list[str]) -> tuple[str, ...]:
    target, source, work, count = texts
    repeats, rest, parts, values = _NAMES
    kind = _REDUCTIONS[call.name]
    by_block, whole = f"{call.named('BlockReduce')}{kind}<float>", f"{call.named('WholeReduce')}{kind}<float>"
    order = "" if kind == "Sum" else f", {call.named('ReduceOrder')}::ORDER_ONLY_VALUE"
    tail = f"{whole}({parts}[{repeats} * 8], {values}[{repeats} * 64], {rest}, 1, 1, 1, 8{order});"
    again = f"{parts}, {parts}[{repeats} * 8 + 8], {repeats} * 8 + ({rest} > 0 ? 1 : 0)"
    return (
        "{",
        f"    const uint32_t {repeats} = ({count}) / 64;",
        f"    const uint32_t {rest} = ({count}) % 64;",
        f"    if ({repeats} >= 8 && {repeats} < 256) {{",
        f"        auto {parts} = {work};",
        f"        auto {values} = {source};",
        f"        {by_block}({parts}, {values}, {repeats}, 64, 1, 1, 8);",
        f"        if ({rest} > 0) {{",
        f"            {tail}",
        "        }",
        f"        {call.named('PipeBarrier')}<PIPE_V>();",
        f"        {call.callee}<float>({target}, {again});",
        "    } else {",
        f"        {_as_before(call, texts)}",
        "    }",
        "}",
    )

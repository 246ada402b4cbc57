"""One vector instruction for all elements in place of many for a few each; and the inverse rewrites."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import CountingLoop, counting_loops, fresh_name, names_in
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import BARRIERS, is_dead_after
from ascend_gym.rewrites.syntax import Call
from ascend_gym.rewrites.vector import (
    is_name,
    site_of,
    tensor_positions,
    texts_of,
    vector_calls,
    way_back,
)

_PIECE = 256  # elements: at least 256 bytes, and a multiple of the 32 bytes that addresses need
_FOLDABLE = 128  # elements: two repeats of float
_WORTH_FOLDING = 1024  # elements: below, an instruction more costs as much as the reduction saves
_TENSOR = re.compile(r"([A-Za-z_][\w.>()<:-]*)\[(.+)\]")
_MEMBER = re.compile(r"(?:\w+(?:->|\.))*\w+")
_LONGER = Effect((Pipe.VECTOR, Pipe.SCALAR), "start-up costs of vector instructions paid once")
_TREE = Effect((Pipe.VECTOR,), "halves are added by fast instructions; little is left to the slow reduction")


@rule(Family.COMPUTE, Side.KERNEL, _LONGER, inverse="pieces")
def whole_call(view: View) -> Iterator[Site]:
    """A for loop makes one vector call per row, or piece, of tensors with contiguous rows.

    Rows are ``count`` elements apart and all full, or only the last piece is shorter.
    """
    for file in view.kernel:
        calls = {call.statement.id: call for call in vector_calls(file) if call.statement is not None}
        for loop in counting_loops(file):
            steps = [step for step in loop.steps if not _is_barrier(file, step)]
            call = calls.get(steps[0].id) if len(steps) == 1 else None
            arguments = _whole(loop, call) if call is not None else None
            if call is not None and arguments is not None:
                text = f"{call.callee}{call.template}({', '.join(arguments)});"
                edit = file.replaced(loop.node, text)
                yield Site(loop.label(), (Choice(text, (edit,)),))


@rule(Family.COMPUTE, Side.KERNEL, _LONGER)
def pieces(view: View) -> Iterator[Site]:
    """A vector call on plain tensors. Undoes ``whole_call``: 256 elements at a time."""
    for file in view.kernel:
        for call in vector_calls(file):
            if all(is_name(call.values[at]) for at in tensor_positions(call)):
                index = fresh_name(file.source, "piece")
                yield site_of(file, call, _in_pieces(file, call, index))


@rule(Family.COMPUTE, Side.KERNEL, _TREE, inverse="flat_reduction")
def reduction_tree(view: View) -> Iterator[Site]:
    """``ReduceSum`` over a number of elements of a plain tensor that is not used afterwards.

    While the number is above 1024 and a multiple of 128, the second half is added to the first; this changes
    the order of additions.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if call.name != "ReduceSum" or len(call.values) != 4 or call.is_method or call.statement is None:
                continue
            source = call.values[1]
            plain = is_name(source) and source != call.values[0] and "," not in call.template
            if plain and is_dead_after(file, source, call):
                yield _tree_site(file, call)


@rule(Family.COMPUTE, Side.KERNEL, _TREE)
def flat_reduction(view: View) -> Iterator[Site]:
    """Halves of a tensor are added before ``ReduceSum``. Undoes ``reduction_tree``."""
    for file in view.kernel:
        for call in file.source.calls:
            block = call.statement.parent if call.name == "ReduceSum" and call.statement is not None else None
            if block is None or len(call.values) != 4:
                continue
            match = re.match(r"\{\s*uint32_t (\w+) = (.+);\n", file.source.text_of(block))
            if match is None or match[1] != call.values[3]:
                continue
            target, source, work, _ = texts_of(file, call)
            lines = _tree_lines(file, call, match[1], match[2])
            if file.source.text_of(block).split() == " ".join(lines).split():
                text = f"{call.callee}{call.template}({target}, {source}, {work}, {match[2]});"
                edit = file.replaced(block, text)
                yield site_of(file, call, Choice("reduce all at once", (edit,), forward=False))


RULES: tuple[Rule, ...] = (whole_call, reduction_tree)
REWINDS: tuple[Rule, ...] = (pieces, flat_reduction)


def _is_barrier(file: File, step: Node) -> bool:
    call = file.source.call_of(step)
    return call is not None and call.name in BARRIERS


def _whole(loop: CountingLoop, call: Call) -> list[str] | None:
    """Return the arguments of the call for all rows; ``None`` if rows are not contiguous."""
    texts, count = texts_of(loop.file, call), call.values[-1]
    bound = loop.file.source.bare(loop.bound)
    if loop.start != "0" or loop.index in names_in(bound):
        return None
    if loop.step == "1":
        offsets, total = _row_offsets(loop.index, count), f"({loop.bound_text}) * ({texts[-1]})"
    elif count in _piece_counts(loop.index, bound, loop.step):
        offsets, total = {loop.index}, loop.bound_text
    else:
        return None
    tensors = tensor_positions(call)
    for at in range(len(texts) - 1):
        if at in tensors:
            begin = _row_begin(texts[at], call.values[at], offsets)
            if begin is None:
                return None
            texts[at] = begin
        elif loop.index in names_in(texts[at]) or "GetValue" in texts[at]:
            return None
    return [*texts[:-1], total] if loop.index not in names_in(total) else None


def _row_offsets(index: str, count: str) -> set[str]:
    forms = {count, f"({count})"}
    return {form for part in forms for form in (f"{index}*{part}", f"{part}*{index}")}


def _piece_counts(index: str, bound: str, step: str) -> set[str]:
    """Return the possible texts of a piece's length: the step, but at most the remainder."""
    rest = f"{bound}-{index}"
    return {f"{rest}<{step}?{rest}:{step}", f"({rest})<{step}?({rest}):{step}"}


def _row_begin(text: str, bare: str, offsets: set[str]) -> str | None:
    """Return the tensor that ``tensor[offset]`` denotes in the first iteration."""
    match = _TENSOR.fullmatch(bare)
    if match is None:
        return None
    if match[2] in offsets:
        return text[: text.index("[")]
    for offset in offsets:
        if match[2].endswith(f"+{offset}") and "?" not in match[2]:
            return f"{text[: text.index('[')]}[{match[2].removesuffix(f'+{offset}')}]"
    return None


def _in_pieces(file: File, call: Call, index: str) -> Choice:
    texts = texts_of(file, call)
    count = texts[-1] if _MEMBER.fullmatch(texts[-1]) else f"({texts[-1]})"
    for at in tensor_positions(call):
        texts[at] = f"{texts[at]}[{index}]"
    rest = f"{count} - {index}"
    arguments = ", ".join([*texts[:-1], f"{rest} < {_PIECE} ? {rest} : {_PIECE}"])
    return way_back(
        file,
        call,
        f"{_PIECE} elements at a time",
        f"for (uint32_t {index} = 0; {index} < {count}; {index} += {_PIECE}) {{",
        f"    {call.callee}{call.template}({arguments});",
        "}",
    )


def _tree_site(file: File, call: Call) -> Site:
    statement = call.statement if call.statement is not None else call.node
    left = fresh_name(file.source, "left")
    lines = _tree_lines(file, call, left, texts_of(file, call)[3])
    text = f"\n{file.source.indent_of(statement)}".join(lines)
    edit = file.replaced(statement, text)
    return site_of(file, call, Choice("add halves first", (edit,)))


def _tree_lines(file: File, call: Call, left: str, count: str) -> tuple[str, ...]:
    target, source, work, _ = texts_of(file, call)
    add, template = call.named("Add"), call.template
    return (
        "{",
        f"    uint32_t {left} = {count};",
        f"    for (; {left} >= {_WORTH_FOLDING} && {left} % {_FOLDABLE} == 0; {left} /= 2) {{",
        f"        {add}{template}({source}, {source}, {source}[{left} / 2], {left} / 2);",
        "    }",
        f"    {call.callee}{template}({target}, {source}, {work}, {left});",
        "}",
    )

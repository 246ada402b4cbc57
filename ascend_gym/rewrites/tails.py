"""Loop tails: a last iteration written out after a loop, or folded into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import CountingLoop, counting_loops, jumps, names_in, with_index
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Edit, Source, is_inside, statements_of

_SIMPLE = ("identifier", "field_expression", "call_expression", "parenthesized_expression")


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    Effect((Pipe.SCALAR, Pipe.MTE2, Pipe.MTE3), "the last pass overlaps with the one before; less code"),
    inverse="tail_splitting",
)
def loop_tail_folding(view: View) -> Iterator[Site]:
    """A loop up to n - 1 is followed by assignments and then by its own body for i = n - 1.

    Assumption: n is at least 1, and the body does not change the inputs of the assignments.
    """
    for file in view.kernel:
        for loop in file.source.nodes("for_statement"):
            folded = _folded(file, loop)
            if folded is not None:
                yield folded


@rule(Family.PIPELINING, Side.KERNEL, Effect((Pipe.SCALAR,), "less code"))
def tail_splitting(view: View) -> Iterator[Site]:
    """A for loop steps by one over calls that depend on its index, and contains nothing else.

    Undoes ``loop_tail_folding``: the last iteration is written out. Assumption: there is at least one.
    """
    for file in view.kernel:
        for loop in counting_loops(file):
            if loop.step == "1" and _is_plain(loop):
                yield _split(loop)


RULES: tuple[Rule, ...] = (loop_tail_folding,)
REWINDS: tuple[Rule, ...] = (tail_splitting,)


def _is_plain(loop: CountingLoop) -> bool:
    """Return whether a loop only contains calls, the first of which depends on the index."""
    kinds = {step.type for step in loop.steps}
    source = loop.file.source
    bound_calls = any(is_inside(call.node, loop.bound) for call in source.calls)
    depends = bool(loop.steps) and loop.index in names_in(source.text_of(loop.steps[0]))
    return kinds <= {"expression_statement"} and depends and not bound_calls and not jumps(source, loop.body)


def _split(loop: CountingLoop) -> Site:
    source = loop.file.source
    bound = loop.bound_text if loop.bound.type in _SIMPLE else f"({loop.bound_text})"
    tail = [with_index(source.text_of(step), loop.index, f"({bound} - 1)") for step in loop.steps]
    edits = (
        Edit(loop.bound.start_byte, loop.bound.end_byte, f"{bound} - 1"),
        source.insertion_after(loop.node, *tail),
    )
    choice = Choice("write the last pass out", tuple(loop.file.edit(edit) for edit in edits), forward=False)
    return Site(loop.label(), (choice,))


def _folded(file: File, loop: Node) -> Site | None:
    """Return the site that folds the tail after ``loop`` into it, if there is such a tail."""
    source = file.source
    header = _counting_header(file, loop)
    body = loop.child_by_field_name("body")
    if header is None or body is None or body.type != "compound_statement" or loop.parent is None:
        return None
    steps = statements_of(body)
    siblings = statements_of(loop.parent)
    at = next(i for i, statement in enumerate(siblings) if statement.id == loop.id)
    after = siblings[at + 1 :]
    changes = _leading_assignments(after)
    tail = after[len(changes) : len(changes) + len(steps)]
    passes = [_marked(source.bare(step), header.index) for step in steps]
    if not steps or [_marked(source.bare(step), source.bare(header.limit)) for step in tail] != passes:
        return None
    edits = [Edit(header.limit.start_byte, header.limit.end_byte, source.text_of(header.bound))]
    if changes:
        edits.append(_guarded_changes(source, header, body, changes))
    edits += [source.removal(statement) for statement in (*changes, *tail)]
    label = file.label(loop.start_byte, f"loop to {source.text_of(header.limit)} and its tail")
    return Site(label, (Choice("fold the tail into the loop", tuple(file.edit(edit) for edit in edits)),))


def _marked(bare: str, index: str) -> str:
    """Return code without white space, with ``@`` in place of ``index`` and brackets around it."""
    bare = re.sub(rf"(?<![\w.>]){re.escape(index)}(?!\w)", "@", bare)
    return re.sub(r"(?<![\w>])\(@\)", "@", bare)


def _guarded_changes(source: Source, header: _Header, body: Node, changes: list[Node]) -> Edit:
    """Return the edit that makes the tail's assignments at the start of the last iteration."""
    indent = source.indent_of(statements_of(body)[0])
    inner = "".join(f"\n{indent}    {source.text_of(change)}" for change in changes)
    text = f"\n{indent}if ({header.index} == {source.text_of(header.limit)}) {{{inner}\n{indent}}}"
    return Edit(body.start_byte + 1, body.start_byte + 1, text)


@dataclass(frozen=True)
class _Header:
    """``for (...; index < bound - 1; ...)``; ``limit`` is the complete ``bound - 1``."""

    index: str
    bound: Node
    limit: Node


def _counting_header(file: File, loop: Node) -> _Header | None:
    """Return the header of a loop that ends one before its bound, or ``None``."""
    condition = loop.child_by_field_name("condition")
    if condition is None or condition.type != "binary_expression":
        return None
    operator = condition.child_by_field_name("operator")
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    if operator is None or left is None or right is None or right.type != "binary_expression":
        return None
    bound, one = right.child_by_field_name("left"), right.child_by_field_name("right")
    minus = right.child_by_field_name("operator")
    if bound is None or one is None or minus is None:
        return None
    text = file.source.text_of
    fits = (text(operator), text(minus), text(one), left.type) == ("<", "-", "1", "identifier")
    return _Header(text(left), bound, right) if fits else None


def _leading_assignments(statements: list[Node]) -> list[Node]:
    leading = []
    for statement in statements:
        inner = statement.named_children[0] if statement.named_children else None
        if statement.type != "expression_statement" or inner is None or inner.type != "assignment_expression":
            break
        leading.append(statement)
    return leading

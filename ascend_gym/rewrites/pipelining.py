"""Rules about overlap: how many buffers a queue has, which barriers stand between pipes, tails of loops."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.constants import Constant, constants_of, names_buffer_count
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
from ascend_gym.rewrites.statements import BARRIERS
from ascend_gym.rewrites.syntax import Call, Edit, Source, statements_of

_DOUBLE = 2
_BUFFER_COUNTS = (_DOUBLE, 3, 1, 4)
_NARROWER = ("PIPE_V", "PIPE_MTE3", "PIPE_MTE2")

_OVERLAP = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR), "copies of one tile overlap with computing on another; takes more UB"
)
_LESS_WAITING = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "pipes stop waiting where nothing depends on it"
)


@rule(Family.PIPELINING, Side.KERNEL, _OVERLAP, inverse="buffer_count")
def buffer_count(view: View) -> Iterator[Site]:
    """A constant of the kernel is named like the number of buffers of its queues, and is 1 to 4."""
    for file in view.kernel:
        for constant in constants_of(file):
            if constant.is_fixed and names_buffer_count(constant):
                yield _counting_site([constant])


@rule(Family.PIPELINING, Side.BOTH, _OVERLAP, inverse="shared_buffer_count")
def shared_buffer_count(view: View) -> Iterator[Site]:
    """Host and kernel both have a constant named like a number of buffers, of the same words and value.

    Taken for granted: the host cuts UB by it, so that it has to be the kernel's.
    """
    groups: dict[str, list[list[Constant]]] = defaultdict(lambda: [[], []])
    for side, files in enumerate((view.host, view.kernel)):
        for file in files:
            for constant in constants_of(file):
                if constant.is_fixed and names_buffer_count(constant):
                    groups["_".join((*constant.words, constant.value_text))][side].append(constant)
    for host, kernel in groups.values():
        if host and kernel:
            yield _counting_site([*host, *kernel])


@rule(Family.PIPELINING, Side.KERNEL, _OVERLAP, inverse="queue_buffers")
def queue_buffers(view: View) -> Iterator[Site]:
    """``InitBuffer(queue, n, bytes)`` has a literal n of 1 or 2; the queue's depth follows if it is n too."""
    for file in view.kernel:
        depths = _queue_depths(file)
        for present in ("1", "2"):
            sites = [
                _queue_site(file, call, depths)
                for call in file.source.calls
                if call.name == "InitBuffer" and len(call.values) == 3 and call.values[1] == present
            ]
            yield from one_and_all(sites, f"queues with {present} of {file.path}")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING)
def full_barrier_removal(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_ALL>`` stands as a statement.

    Taken for granted: queues, events or automatic synchronisation order what depends on each other.
    """
    yield from _barrier_removals(view, "PIPE_ALL")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING)
def full_barrier_narrowing(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_ALL>`` stands as a statement, and what depends across it is within one pipe."""
    for file in view.kernel:
        sites = [_narrowing(file, call) for call in _barriers(file, "PIPE_ALL")]
        yield from one_and_all(sites, f"barriers of {file.path} to PIPE_V")


@rule(Family.PIPELINING, Side.KERNEL, Effect((Pipe.VECTOR,), "vector instructions follow without a gap"))
def vector_barrier_removal(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_V>`` stands as a statement, and synchronisation is automatic or not needed."""
    yield from _barrier_removals(view, "PIPE_V")


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    Effect((Pipe.SCALAR, Pipe.MTE2, Pipe.MTE3), "the last pass overlaps with the one before; less code"),
)
def loop_tail_folding(view: View) -> Iterator[Site]:
    """A loop up to n - 1 is followed by assignments and then by its own body for i = n - 1.

    Taken for granted: n is at least 1 and the body does not change what the assignments depend on.
    """
    for file in view.kernel:
        for loop in file.source.nodes("for_statement"):
            folded = _folded(file, loop)
            if folded is not None:
                yield folded


RULES: tuple[Rule, ...] = (
    buffer_count,
    shared_buffer_count,
    queue_buffers,
    full_barrier_removal,
    full_barrier_narrowing,
    vector_barrier_removal,
    loop_tail_folding,
)
REWINDS: tuple[Rule, ...] = ()


def _counting_site(constants: list[Constant]) -> Site:
    """Return the site that changes a number of buffers: a second one helps, further ones hardly."""
    present = constants[0].literal or 0
    choices = []
    for count in _BUFFER_COUNTS:
        if count != present:
            edits = tuple(constant.replaced(constant.with_literal(count)) for constant in constants)
            label = f"{constants[0].name}: {present} -> {count}"
            choices.append(Choice(label, edits, forward=present < count <= _DOUBLE))
    return Site(" and ".join(constant.label for constant in constants), tuple(choices))


def _queue_depths(file: File) -> dict[str, Node]:
    """Return, by queue name, the literal depth in ``TQue<position, depth>``."""
    depths: dict[str, Node] = {}
    for declaration in file.source.nodes("field_declaration"):
        name, kind = declaration.child_by_field_name("declarator"), declaration.child_by_field_name("type")
        if name is None or kind is None or not re.search(r"\bTQue(Bind)?<", file.source.text_of(kind)):
            continue
        literals = [child for child in _template_arguments(kind) if child.type == "number_literal"]
        if literals:
            depths[file.source.text_of(name)] = literals[0]
    return depths


def _template_arguments(kind: Node) -> list[Node]:
    template = kind if kind.type == "template_type" else kind.child_by_field_name("name")
    arguments = template.child_by_field_name("arguments") if template is not None else None
    return list(arguments.named_children) if arguments is not None else []


def _queue_site(file: File, call: Call, depths: dict[str, Node]) -> Site:
    count = call.arguments[1]
    present, wanted = call.values[1], "2" if call.values[1] == "1" else "1"
    nodes = [count]
    depth = depths.get(call.values[0])
    if depth is not None and file.source.text_of(depth) == present:
        nodes.append(depth)
    edits = tuple(file.edit(Edit(node.start_byte, node.end_byte, wanted)) for node in nodes)
    label = file.label(call.node.start_byte, f"{call.values[0]} has {present}")
    return Site(label, (Choice(f"{present} -> {wanted} buffers", edits, forward=wanted == "2"),))


def _barriers(file: File, pipe: str) -> Iterator[Call]:
    for call in file.source.calls:
        waits_for = call.template.strip("<> ") or (call.values[0] if call.values else "")
        if call.name in BARRIERS and waits_for == pipe and call.statement is not None:
            yield call


def _barrier_removals(view: View, pipe: str) -> Iterator[Site]:
    for file in view.kernel:
        sites = []
        for call in _barriers(file, pipe):
            statement = call.statement if call.statement is not None else call.node
            edit = file.edit(file.source.removal(statement))
            label = file.label(call.node.start_byte, f"{call.name} {pipe}")
            sites.append(Site(label, (Choice("remove", (edit,)),)))
        yield from one_and_all(sites, f"{pipe} barriers of {file.path}")


def _narrowing(file: File, call: Call) -> Site:
    at = call.node.start_byte + file.source.data[call.node.start_byte : call.node.end_byte].index(b"PIPE_ALL")
    choices = tuple(
        Choice(f"PIPE_ALL -> {pipe}", (file.edit(Edit(at, at + len("PIPE_ALL"), pipe)),))
        for pipe in _NARROWER
    )
    return Site(file.label(call.node.start_byte, f"{call.name} PIPE_ALL"), choices)


def _folded(file: File, loop: Node) -> Site | None:
    """Return the site that folds the tail behind ``loop`` into it, if there is such a tail."""
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
    """Return code without white space with ``@`` in place of ``index`` and of brackets around it alone."""
    bare = re.sub(rf"(?<![\w.>]){re.escape(index)}(?!\w)", "@", bare)
    return re.sub(r"(?<![\w>])\(@\)", "@", bare)


def _guarded_changes(source: Source, header: _Header, body: Node, changes: list[Node]) -> Edit:
    """Return the edit that makes the tail's assignments at the start of the last pass."""
    indent = source.indent_of(statements_of(body)[0])
    inner = "".join(f"\n{indent}    {source.text_of(change)}" for change in changes)
    text = f"\n{indent}if ({header.index} == {source.text_of(header.limit)}) {{{inner}\n{indent}}}"
    return Edit(body.start_byte + 1, body.start_byte + 1, text)


@dataclass(frozen=True)
class _Header:
    """``for (...; index < bound - 1; ...)``; ``limit`` is all of ``bound - 1``."""

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

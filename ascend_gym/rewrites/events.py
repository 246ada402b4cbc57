"""Events between pipes: fewer of them, and later waits of the scalar unit; and the inverse rewrites."""

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
from ascend_gym.rewrites.statements import INSTRUCTIONS
from ascend_gym.rewrites.syntax import Call, siblings_after, siblings_before
from ascend_gym.rewrites.vector import element_of, is_vector_call

_SETS = {"SetFlag": "WaitFlag", "set_flag": "wait_flag"}
_SETS_AND_WAITS = ("SetFlag", "WaitFlag")
_LESS_WAITING = Effect(
    (Pipe.SCALAR, Pipe.VECTOR, Pipe.MTE2, Pipe.MTE3), "pipes stop waiting where nothing depends on it"
)
_BETWEEN_OTHERS = re.compile(r"HardEvent::(?!S_)\w+_(?!S\b)\w+")  # no scalar unit on either side
_ISSUES_AHEAD = Effect((Pipe.SCALAR, Pipe.VECTOR), "the scalar unit issues more before it waits")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING, inverse="event_insertion")
def event_removal(view: View) -> Iterator[Site]:
    """A ``SetFlag`` is followed by the ``WaitFlag`` of the same event.

    Assumption: queues, other events or automatic synchronisation order all dependent instructions. Automatic
    synchronisation orders vector instructions with each other and the scalar unit with other pipes, so an
    event between two other pipes is hardly ever needless.
    """
    for file in view.kernel:
        sites = []
        for first, second in _event_pairs(file):
            edits = tuple(file.edit(file.source.removal(statement)) for statement in (first, second))
            label = file.label(first.start_byte, file.source.text_of(first))
            forward = _BETWEEN_OTHERS.search(label) is None
            sites.append(Site(label, (Choice("remove with its wait", edits, forward),)))
        yield from one_and_all(sites, f"events of {file.path}")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING)
def event_insertion(view: View) -> Iterator[Site]:
    """A vector instruction, or a copy from or to a tensor of known type, is a statement.

    Undoes ``event_removal``: the scalar unit waits for it, with an event that queues do not use.
    """
    for file in view.kernel:
        sites = []
        for call in file.source.calls:
            pipe, statement = _pipe_of(file, call), call.statement
            if not pipe or statement is None or statement.parent is None:
                continue
            if statement.parent.type != "compound_statement":
                continue
            scope = call.callee.removesuffix(call.name)
            flags = [f"{scope}{name}<{scope}HardEvent::{pipe}_S>(EVENT_ID0);" for name in _SETS_AND_WAITS]
            edit = file.edit(file.source.insertion_after(statement, *flags))
            label = file.label(statement.start_byte, file.source.text_of(call.node))
            sites.append(Site(label, (Choice("wait for it", (edit,), forward=False),)))
        yield from one_and_all(sites, f"instructions of {file.path}")


@rule(Family.PIPELINING, Side.KERNEL, _ISSUES_AHEAD, inverse="scalar_wait_earlier")
def scalar_wait_later(view: View) -> Iterator[Site]:
    """The scalar unit waits for another pipe before copies or vector instructions that do not need it.

    Their arguments must not be read from tensors.
    """
    for file in view.kernel:
        for call in _scalar_waits(file):
            statement = call.statement
            crossed = _crossed(file, statement) if statement is not None else []
            if statement is not None and crossed:
                yield _moved(file, statement, crossed[-1], forward=True)


@rule(Family.PIPELINING, Side.KERNEL, _ISSUES_AHEAD)
def scalar_wait_earlier(view: View) -> Iterator[Site]:
    """There are instructions between a ``SetFlag`` and the scalar unit's ``WaitFlag``.

    Undoes ``scalar_wait_later``.
    """
    for file in view.kernel:
        for call in _scalar_waits(file):
            statement = call.statement
            earlier = siblings_before(statement) if statement is not None else []
            sets = [node for node in earlier if _is_set_for(file, node, call)]
            between = [node for node in earlier if sets and node.start_byte > sets[-1].start_byte]
            if statement is not None and between and all(_issues_only(file, node) for node in between):
                yield _moved(file, statement, sets[-1], forward=False)


RULES: tuple[Rule, ...] = (event_removal, scalar_wait_later)
REWINDS: tuple[Rule, ...] = (event_insertion, scalar_wait_earlier)


def _pipe_of(file: File, call: Call) -> str:
    """Return the pipe of a call; empty if it has none of the known pipes or is unknown."""
    if is_vector_call(call):
        return "V"
    if call.name not in ("DataCopy", "DataCopyPad") or call.is_method or len(call.values) < 3:
        return ""
    local = [bool(element_of(file.source, re.split(r"\W", value)[0], call.node)) for value in call.values[:2]]
    return {(True, False): "MTE2", (False, True): "MTE3"}.get((local[0], local[1]), "")


def _event_pairs(file: File) -> Iterator[tuple[Node, Node]]:
    for call in file.source.calls:
        after = siblings_after(call.statement)[:1] if call.statement is not None else []
        wait = file.source.call_of(after[0]) if after else None
        is_pair = wait is not None and _SETS.get(call.name) == wait.name and _event(wait) == _event(call)
        if is_pair and call.statement is not None:
            yield call.statement, after[0]


def _event(call: Call) -> tuple[str, ...]:
    return ("".join(call.template.split()), *call.values)


def _scalar_waits(file: File) -> Iterator[Call]:
    for call in file.source.calls:
        target = call.template.strip("<> ") if call.name == "WaitFlag" else "".join(call.values[1:2])
        if call.name in _SETS.values() and target.endswith("_S") and call.statement is not None:
            yield call


def _crossed(file: File, statement: Node) -> list[Node]:
    """Return the statements directly after one that only issue instructions."""
    crossed: list[Node] = []
    for node in siblings_after(statement):
        if not _issues_only(file, node):
            break
        crossed.append(node)
    return crossed


def _issues_only(file: File, statement: Node) -> bool:
    call = file.source.call_of(statement)
    text = file.source.text_of(statement)
    issues = call is not None and not call.is_method and call.name in INSTRUCTIONS - {"ReduceSum"}
    return issues and "GetValue" not in text and "SetValue" not in text and "Reduce" not in text


def _is_set_for(file: File, statement: Node, wait: Call) -> bool:
    call = file.source.call_of(statement)
    return call is not None and _SETS.get(call.name) == wait.name and _event(call) == _event(wait)


def _moved(file: File, statement: Node, behind: Node, *, forward: bool) -> Site:
    text = file.source.text_of(statement)
    edits = (file.source.removal(statement), file.source.insertion_after(behind, text))
    choice = Choice(
        "wait later" if forward else "wait at once", tuple(file.edit(edit) for edit in edits), forward
    )
    return Site(file.label(statement.start_byte, text), (choice,))

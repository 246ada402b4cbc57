"""Barriers between pipes: fewer and narrower ones, moved out of loops; and the inverse rewrites."""

from __future__ import annotations

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
from ascend_gym.rewrites.statements import BARRIERS, INSTRUCTIONS
from ascend_gym.rewrites.syntax import Call, Edit, siblings_after, siblings_before, statements_of
from ascend_gym.rewrites.vector import vector_calls

_NARROWER = ("PIPE_V", "PIPE_MTE3", "PIPE_MTE2")
_LESS_WAITING = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.SCALAR), "pipes stop waiting where nothing depends on it"
)
_NO_GAPS = Effect((Pipe.VECTOR,), "vector instructions follow without a gap")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING, inverse="full_barrier_insertion")
def full_barrier_removal(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_ALL>`` is a statement.

    Assumption: queues, events or automatic synchronisation order all dependent instructions.
    """
    yield from _barrier_removals(view, "PIPE_ALL")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING, inverse="barrier_widening")
def full_barrier_narrowing(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_ALL>`` is a statement, and all dependencies across it are within one pipe."""
    for file in view.kernel:
        sites = [_repiped(file, call, "PIPE_ALL", _NARROWER) for call in _barriers(file, ("PIPE_ALL",))]
        yield from one_and_all(sites, f"barriers of {file.path} to PIPE_V")


@rule(Family.PIPELINING, Side.KERNEL, _NO_GAPS, inverse="vector_barrier_insertion")
def vector_barrier_removal(view: View) -> Iterator[Site]:
    """A ``PipeBarrier<PIPE_V>`` is a statement, and synchronisation is automatic or unnecessary."""
    yield from _barrier_removals(view, "PIPE_V")


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    Effect((Pipe.VECTOR, Pipe.SCALAR), "waiting once behind a loop, not in each of its passes"),
    inverse="barrier_sinking",
)
def barrier_hoisting(view: View) -> Iterator[Site]:
    """The body of a for loop ends in a barrier, which can be moved after the loop.

    Assumption: iterations are independent, or queues, events or automatic
    synchronisation order them.
    """
    for file in view.kernel:
        for call in _barriers(file):
            loop = _loop_that_ends_in(call)
            if loop is not None and call.statement is not None:
                text = file.source.text_of(call.statement)
                edits = (file.source.removal(call.statement), file.source.insertion_after(loop, text))
                yield _site(file, call, "move behind the loop", edits)


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING)
def full_barrier_insertion(view: View) -> Iterator[Site]:
    """A copy or vector instruction is not followed by a full barrier. Undoes ``full_barrier_removal``."""
    for file in view.kernel:
        calls = (call for call in file.source.calls if call.name in INSTRUCTIONS and not call.is_method)
        yield from _insertions(file, calls, "PIPE_ALL")


@rule(Family.PIPELINING, Side.KERNEL, _NO_GAPS)
def vector_barrier_insertion(view: View) -> Iterator[Site]:
    """A vector instruction is not followed by a barrier. Undoes ``vector_barrier_removal``."""
    for file in view.kernel:
        yield from _insertions(file, vector_calls(file), "PIPE_V")


@rule(Family.PIPELINING, Side.KERNEL, _LESS_WAITING)
def barrier_widening(view: View) -> Iterator[Site]:
    """A barrier of one pipe is a statement. Undoes ``full_barrier_narrowing``."""
    for file in view.kernel:
        sites = [
            _repiped(file, call, pipe, ("PIPE_ALL",), forward=False)
            for pipe in _NARROWER
            for call in _barriers(file, (pipe,))
        ]
        yield from one_and_all(sites, f"narrow barriers of {file.path}")


@rule(Family.PIPELINING, Side.KERNEL, _NO_GAPS)
def barrier_sinking(view: View) -> Iterator[Site]:
    """A barrier directly follows a for loop. Undoes ``barrier_hoisting``."""
    for file in view.kernel:
        for call in _barriers(file):
            last = _last_of_loop_before(call)
            if last is not None and call.statement is not None:
                text = file.source.text_of(call.statement)
                edits = (file.source.insertion_after(last, text), file.source.removal(call.statement))
                yield _site(file, call, "move into the loop", edits, forward=False)


RULES: tuple[Rule, ...] = (
    full_barrier_removal,
    full_barrier_narrowing,
    vector_barrier_removal,
    barrier_hoisting,
)
REWINDS: tuple[Rule, ...] = (
    full_barrier_insertion,
    vector_barrier_insertion,
    barrier_widening,
    barrier_sinking,
)


def _pipe_of(call: Call) -> str:
    return call.template.strip("<> ") or (call.values[0] if call.values else "")


def _barriers(file: File, pipes: tuple[str, ...] = ("PIPE_ALL", *_NARROWER)) -> Iterator[Call]:
    for call in file.source.calls:
        if call.name in BARRIERS and _pipe_of(call) in pipes and call.statement is not None:
            yield call


def _site(file: File, call: Call, label: str, edits: tuple[Edit, ...], *, forward: bool = True) -> Site:
    choice = Choice(label, tuple(file.edit(edit) for edit in edits), forward)
    return Site(file.label(call.node.start_byte, f"{call.name} {_pipe_of(call)}"), (choice,))


def _barrier_removals(view: View, pipe: str) -> Iterator[Site]:
    for file in view.kernel:
        sites = []
        for call in _barriers(file, (pipe,)):
            statement = call.statement if call.statement is not None else call.node
            sites.append(_site(file, call, "remove", (file.source.removal(statement),)))
        yield from one_and_all(sites, f"{pipe} barriers of {file.path}")


def _repiped(file: File, call: Call, present: str, others: tuple[str, ...], *, forward: bool = True) -> Site:
    """Return the site that changes the pipes of a barrier.

    Args:
        file: source file.
        call: barrier.
        present: its present pipe.
        others: alternative pipes.
        forward: whether the change is expected to help.
    """
    at = call.node.start_byte + file.source.data[call.node.start_byte : call.node.end_byte].index(
        present.encode()
    )
    choices = tuple(
        Choice(f"{present} -> {pipe}", (file.edit(Edit(at, at + len(present), pipe)),), forward)
        for pipe in others
    )
    return Site(file.label(call.node.start_byte, f"{call.name} {present}"), choices)


def _insertions(file: File, calls: Iterator[Call], pipe: str) -> Iterator[Site]:
    """Yield the sites that insert a barrier after calls that are not followed by one."""
    known = {call.statement.id for call in _barriers(file) if call.statement is not None}
    full = {call.statement.id for call in _barriers(file, ("PIPE_ALL",)) if call.statement is not None}
    waited = full if pipe == "PIPE_ALL" else known
    sites = []
    for call in calls:
        statement = call.statement
        if statement is None or statement.parent is None or statement.parent.type != "compound_statement":
            continue
        if waited.isdisjoint(node.id for node in siblings_after(statement)[:1]):
            text = f"{call.named('PipeBarrier')}<{pipe}>();"
            edit = file.edit(file.source.insertion_after(statement, text))
            label = file.label(statement.start_byte, file.source.text_of(call.node))
            sites.append(Site(label, (Choice(f"{pipe} barrier behind it", (edit,), forward=False),)))
    yield from one_and_all(sites, f"instructions of {file.path} with a {pipe} barrier")


def _loop_that_ends_in(call: Call) -> Node | None:
    """Return the for loop whose body ends with the call, after at least one other statement."""
    block = call.statement.parent if call.statement is not None else None
    loop = block.parent if block is not None and block.type == "compound_statement" else None
    if loop is None or block is None or loop.type != "for_statement" or _is_alone(loop):
        return None
    steps = statements_of(block)
    return loop if len(steps) > 1 and steps[-1] == call.statement else None


def _last_of_loop_before(call: Call) -> Node | None:
    """Return the last statement in the body of the for loop directly before a barrier."""
    before = siblings_before(call.statement) if call.statement is not None else []
    body = before[-1].child_by_field_name("body") if before and before[-1].type == "for_statement" else None
    steps = statements_of(body) if body is not None and body.type == "compound_statement" else []
    return steps[-1] if steps and steps[-1].type == "expression_statement" else None


def _is_alone(statement: Node) -> bool:
    return statement.parent is None or statement.parent.type != "compound_statement"

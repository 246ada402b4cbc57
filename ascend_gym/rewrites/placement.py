"""Where a tensor is taken from its queue and given back: late and early, so that pipes wait less."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import jumps
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import BARRIERS, INSTRUCTIONS, argument_of, declaration_of, mentions
from ascend_gym.rewrites.syntax import Edit, is_inside, siblings_after, siblings_before
from ascend_gym.rewrites.vector import is_vector_call

_TAKEN = re.compile(r"(?P<queue>[\w>.-]+?)\.(?:template)?(?P<call>AllocTensor|DeQue)(?:<.*>)?\(\)")
_METHODS = frozenset(
    {"AllocTensor", "DeQue", "EnQue", "FreeTensor", "Get", "GetValue", "ReinterpretCast", "GetSize"}
)
_CROSSABLE = ("declaration", "expression_statement", "for_statement", "if_statement")
_LATER_WAIT = Effect(
    (Pipe.VECTOR, Pipe.MTE2, Pipe.MTE3), "instructions that do not need the tensor go ahead of the wait"
)
_EARLIER_SIGNAL = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR), "the pipe that waits for the tensor starts sooner"
)


@rule(Family.PIPELINING, Side.KERNEL, _LATER_WAIT, inverse="early_acquire")
def late_acquire(view: View) -> Iterator[Site]:
    """A tensor is taken from its queue before vector instructions that do not use it.

    The statements that are crossed must not touch the queue, nor call functions of the kernel.
    """
    for file, declaration, name, queue in _acquisitions(view):
        crossed = _free_of(file, siblings_after(declaration), (name, queue))
        if any(_works(file, node) for node in crossed):
            text = file.source.text_of(declaration)
            edits = (file.source.removal(declaration), file.source.insertion_after(crossed[-1], text))
            yield _site(file, declaration, "take it when it is used", edits)


@rule(Family.PIPELINING, Side.KERNEL, _LATER_WAIT)
def early_acquire(view: View) -> Iterator[Site]:
    """A tensor is taken from its queue after vector instructions that do not touch the queue.

    Undoes ``late_acquire``: it is taken as early as its block allows.
    """
    for file, declaration, name, queue in _acquisitions(view):
        crossed = _free_of(file, siblings_before(declaration)[::-1], (name, queue))
        for first in (node for node in crossed if _works(file, node)):
            text = file.source.text_of(declaration)
            edits = (file.source.insertion_before(first, text), file.source.removal(declaration))
            yield _site(file, declaration, "take it early", edits, forward=False)


@rule(Family.PIPELINING, Side.KERNEL, _EARLIER_SIGNAL, inverse="late_release")
def early_release(view: View) -> Iterator[Site]:
    """A tensor is freed, or put into its queue, after vector instructions or copies that do not use it.

    The statements that are crossed must not touch the queue, nor call functions of the kernel.
    """
    for file, statement, name, queue in _releases(view):
        crossed = _free_of(file, siblings_before(statement)[::-1], (name, queue))
        if any(_works(file, node) for node in crossed):
            text = file.source.text_of(statement)
            edits = (file.source.insertion_before(crossed[-1], text), file.source.removal(statement))
            yield _site(file, statement, "release it after its last use", edits)


@rule(Family.PIPELINING, Side.KERNEL, _EARLIER_SIGNAL)
def late_release(view: View) -> Iterator[Site]:
    """A tensor is freed, or put into its queue, before vector instructions that do not touch the queue.

    Undoes ``early_release``.
    """
    for file, statement, name, queue in _releases(view):
        crossed = _free_of(file, siblings_after(statement), (name, queue))
        for last in (node for node in crossed if _works(file, node)):
            text = file.source.text_of(statement)
            edits = (file.source.removal(statement), file.source.insertion_after(last, text))
            yield _site(file, statement, "release it late", edits, forward=False)


RULES: tuple[Rule, ...] = (late_acquire, early_release)
REWINDS: tuple[Rule, ...] = (early_acquire, late_release)


def _acquisitions(view: View) -> Iterator[tuple[File, Node, str, str]]:
    """Yield the declarations of tensors taken from a queue, with the tensor's and the queue's name."""
    for file in view.kernel:
        for declarator in file.source.nodes("init_declarator"):
            name, value = (declarator.child_by_field_name(field) for field in ("declarator", "value"))
            declaration = declarator.parent
            if name is None or declaration is None or value is None or value.type != "call_expression":
                continue
            taken = _TAKEN.fullmatch(file.source.bare(value))
            if taken is None:
                continue
            if len(declaration.children_by_field_name("declarator")) == 1:
                yield file, declaration, file.source.text_of(name), _last_name(taken["queue"])


def _releases(view: View) -> Iterator[tuple[File, Node, str, str]]:
    """Yield the statements that free or enqueue a tensor, with the tensor's and the queue's name."""
    for file in view.kernel:
        for call in file.source.calls:
            if call.name in ("FreeTensor", "EnQue") and call.is_method and call.statement is not None:
                queue = _last_name(call.callee.removesuffix(f".{call.name}"))
                if len(call.values) == 1 and _has_one_name(file, call.values[0], call.node):
                    yield file, call.statement, call.values[0], queue


def _has_one_name(file: File, name: str, use: Node) -> bool:
    """Return whether a tensor is a local variable without an alias in its function."""
    declared = declaration_of(file.source, name, use)
    if declared is None:
        return False
    uses = mentions(file.source, name, declared.function)
    return all(is_inside(node, declared.declaration) or argument_of(file.source, node) for node in uses)


def _last_name(expression: str) -> str:
    return re.split(r"[.>]", expression)[-1]


def _free_of(file: File, statements: list[Node], names: tuple[str, ...]) -> list[Node]:
    """Return the leading statements that mention none of the names and have no hidden effects."""
    found: list[Node] = []
    for node in statements:
        text = file.source.text_of(node)
        if node.type not in _CROSSABLE or jumps(file.source, node) or not _is_known(file, node):
            break
        if any(re.search(rf"\b{name}\b", text) for name in names):
            break
        found.append(node)
    return found


def _is_known(file: File, statement: Node) -> bool:
    """Return whether a statement only calls instructions, barriers, casts and methods of tensors."""
    return all(
        call.name in _METHODS or call.name in INSTRUCTIONS | BARRIERS or call.name.endswith("_cast")
        for call in file.source.calls_within(statement)
    )


def _works(file: File, statement: Node) -> bool:
    """Return whether a statement issues an instruction."""
    return any(
        call.statement is not None and (call.name in ("DataCopy", "DataCopyPad") or is_vector_call(call))
        for call in file.source.calls_within(statement)
    )


def _site(file: File, statement: Node, label: str, edits: tuple[Edit, ...], *, forward: bool = True) -> Site:
    choice = Choice(label, tuple(file.edit(edit) for edit in edits), forward)
    return Site(file.label(statement.start_byte, file.source.text_of(statement)), (choice,))

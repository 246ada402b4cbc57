"""Counting for loops: their parts, and the names that their bodies may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.rule import File
from ascend_gym.rewrites.syntax import Source, is_inside, statements_of

_NAME = re.compile(r"[A-Za-z_]\w*")
_CHANGES = (
    ("declaration", "declarator"),
    ("assignment_expression", "left"),
    ("update_expression", "argument"),
    ("pointer_expression", "argument"),
)
_JUMPS = ("break_statement", "continue_statement", "return_statement", "goto_statement", "labeled_statement")


@dataclass(frozen=True)
class CountingLoop:
    """``for (type index = start; index < bound; index += step)``.

    Attributes:
        file: source file.
        node: for statement.
        index: name of the variable.
        type_text: its type.
        start: its first value, without white space.
        bound: exclusive upper bound, without white space.
        step: increment, without white space; ``1`` for ``index++``.
        body: compound statement.
    """

    file: File
    node: Node
    index: str
    type_text: str
    start: str
    bound: Node
    step: str
    body: Node

    @property
    def bound_text(self) -> str:
        """The bound as it is written."""
        return self.file.source.text_of(self.bound)

    @property
    def steps(self) -> list[Node]:
        """The statements of the body."""
        return statements_of(self.body)

    def label(self) -> str:
        """File, line and header."""
        header = self.file.source.data[self.node.start_byte : self.body.start_byte].decode()
        return self.file.label(self.node.start_byte, " ".join(header.split()))


def counting_loops(file: File) -> Iterator[CountingLoop]:
    """Yield the counting for loops of a file that are in a statement list."""
    for node in file.source.nodes("for_statement"):
        loop = _read(file, node)
        if loop is not None and node.parent is not None and node.parent.type == "compound_statement":
            yield loop


def changed_names(source: Source, within: Node) -> set[str]:
    """Return the names that a node declares, assigns to, or takes the address of."""
    changed: set[str] = set()
    for kind, field in _CHANGES:
        for node in source.nodes(kind):
            if is_inside(node, within):
                for target in node.children_by_field_name(field):
                    named = target.child_by_field_name("declarator")
                    changed |= names_in(source.text_of(named if named is not None else target))
    return changed


def names_in(text: str) -> set[str]:
    """Return the identifiers in a piece of code."""
    return set(_NAME.findall(text))


def jumps(source: Source, within: Node) -> bool:
    """Return whether a node contains a statement that leaves it, or an iteration, early."""
    return any(is_inside(node, within) for kind in _JUMPS for node in source.nodes(kind))


def fresh_name(source: Source, wish: str) -> str:
    """Return the first of ``wish``, ``wish2`` and so on that the file does not contain."""
    name, number = wish, 1
    while name in source.words:
        number += 1
        name = f"{wish}{number}"
    return name


def with_index(code: str, index: str, value: str) -> str:
    """Return code with ``value`` in place of the variable ``index``."""
    return re.sub(rf"(?<![\w.>]){re.escape(index)}\b", value, code)


def _read(file: File, node: Node) -> CountingLoop | None:
    text, bare = file.source.text_of, file.source.bare
    declaration, condition, update, body = (
        node.child_by_field_name(field) for field in ("initializer", "condition", "update", "body")
    )
    if declaration is None or condition is None or update is None or body is None:
        return None
    if declaration.type != "declaration" or body.type != "compound_statement":
        return None
    kind, started = (declaration.child_by_field_name(field) for field in ("type", "declarator"))
    if kind is None or started is None or started.type != "init_declarator":
        return None
    name, start = (started.child_by_field_name(field) for field in ("declarator", "value"))
    if name is None or start is None or condition.type != "binary_expression":
        return None
    index = text(name)
    left, operator, bound = (condition.child_by_field_name(field) for field in ("left", "operator", "right"))
    step = _step(bare(update), index)
    if left is None or operator is None or bound is None or step is None:
        return None
    if (text(left), text(operator)) != (index, "<") or index in changed_names(file.source, body):
        return None
    return CountingLoop(file, node, index, text(kind), bare(start), bound, step, body)


def _step(update: str, index: str) -> str | None:
    """Return the increment of an update without white space."""
    if update in (f"{index}++", f"++{index}"):
        return "1"
    prefix = f"{index}+="
    return update.removeprefix(prefix) if update.startswith(prefix) else None

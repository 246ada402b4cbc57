"""Ascend C sources as syntax trees, and edits as byte splices on the original text.

The grammar covers standard C++ only, so qualifiers and launch brackets of Ascend C are replaced by
blanks of equal length before parsing. Byte offsets of the tree are therefore valid in the original text,
to which every edit is applied.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_cpp.language())
_QUALIFIERS = re.compile(
    rb"\b__(?:aicore|global|gm|ubuf|cbuf|ca|cb|cc|fbuf|biasbuf|ssbuf|kfc_workspace|host_aicore|simd_vf|mix"
    rb"|inout_pipe|aiv|aic|cube|vector|simt_vf|simd_callee)__\b(?:\((?:MTE[123]|[A-Z])\))?"
)
_LAUNCH = re.compile(rb"<<<.*?>>>", re.DOTALL)
_TEMPLATE = re.compile(r"(?<=[.>:])\s*template\s+")
_BARE_CONDITION = re.compile(rb"\bASCEND_IS_(?:AIV|AIC|NOT_AIV|NOT_AIC)\b")


@dataclass(frozen=True)
class Edit:
    """Replace the bytes [start_byte, end_byte) of a text by ``text``."""

    start_byte: int
    end_byte: int
    text: str


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with all edits applied; other bytes are unchanged.

    Raises:
        ValueError: two edits overlap, or one is outside the text.
    """
    data = text.encode()
    parts: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start_byte, edit.end_byte)):
        if not position <= edit.start_byte <= edit.end_byte <= len(data):
            raise ValueError(f"edit {edit} overlaps another one or leaves the text of {len(data)} bytes")
        parts += [data[position : edit.start_byte], edit.text.encode()]
        position = edit.end_byte
    return b"".join([*parts, data[position:]]).decode()


class Source:
    """A parsed source file; use ``parse`` to get one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self._tree = Parser(_LANGUAGE).parse(_parsable(self.data))

    @property
    def root(self) -> Node:
        """The root of the tree."""
        return self._tree.root_node

    def nodes(self, kind: str) -> list[Node]:
        """Return all nodes of one kind, in source order."""
        return self._by_kind[kind]

    def text_of(self, node: Node) -> str:
        """Return the original text of a node."""
        return self.data[node.start_byte : node.end_byte].decode()

    def bare(self, node: Node) -> str:
        """Return the text of a node without white space and comments, for comparisons."""
        if node.type == "comment":
            return ""
        if node.child_count == 0:
            return self.text_of(node)
        return "".join(self.bare(child) for child in node.children)

    def line_of(self, byte: int) -> int:
        """Return the one-based line of a byte offset."""
        return bisect_right(self._line_starts, byte)

    def indent_of(self, node: Node) -> str:
        """Return the blanks before a node if it begins its line, else an empty string."""
        start = self._line_starts[self.line_of(node.start_byte) - 1]
        before = self.data[start : node.start_byte].decode()
        return before if not before.strip() else ""

    def removal(self, statement: Node) -> Edit:
        """Return the edit that removes a statement, including its line if only a comment would remain."""
        if statement.parent is None or statement.parent.type not in _STATEMENT_LISTS:
            return Edit(statement.start_byte, statement.end_byte, ";")
        start = self._line_starts[self.line_of(statement.start_byte) - 1]
        line_end = self.data.find(b"\n", statement.end_byte)
        line_end = len(self.data) if line_end < 0 else line_end
        before, after = self.data[start : statement.start_byte], self.data[statement.end_byte : line_end]
        if before.strip() or (after.strip() and not after.strip().startswith(b"//")):
            return Edit(statement.start_byte, statement.end_byte, "")
        return Edit(start, min(line_end + 1, len(self.data)), "")

    def insertion_after(self, statement: Node, *lines: str) -> Edit:
        """Return the edit that inserts lines after a statement and its comment, with the same indentation."""
        line_end = self.data.find(b"\n", statement.end_byte)
        line_end = len(self.data) if line_end < 0 else line_end
        after = self.data[statement.end_byte : line_end].strip()
        at = line_end if not after or after.startswith(b"//") else statement.end_byte
        return Edit(at, at, "".join(f"\n{self.indent_of(statement)}{line}" for line in lines))

    def insertion_before(self, statement: Node, *lines: str) -> Edit:
        """Return the edit that inserts lines before a statement, with the same indentation."""
        text = "".join(f"{line}\n{self.indent_of(statement)}" for line in lines)
        return Edit(statement.start_byte, statement.start_byte, text)

    @cached_property
    def calls(self) -> list[Call]:
        """All calls of named functions and methods, in source order."""
        found = (_read_call(self, node) for node in self.nodes("call_expression"))
        return [call for call in found if call is not None]

    def calls_within(self, node: Node) -> list[Call]:
        """Return the calls inside a node, in source order."""
        first = bisect_left(self._call_starts, node.start_byte)
        last = bisect_left(self._call_starts, node.end_byte)
        return [call for call in self.calls[first:last] if is_inside(call.node, node)]

    def call_of(self, node: Node) -> Call | None:
        """Return the call that makes up a node (an expression or a whole statement)."""
        return self._call_by_node.get(node.id)

    def identifiers(self, name: str) -> list[Node]:
        """Return the identifiers with a name, in source order."""
        return self._identifiers.get(name, [])

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the text, including comments."""
        return frozenset(re.findall(r"\w+", self.text))

    @cached_property
    def _identifiers(self) -> dict[str, list[Node]]:
        by_name: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes("identifier"):
            by_name[self.text_of(node)].append(node)
        return by_name

    @cached_property
    def _call_starts(self) -> list[int]:
        return [call.node.start_byte for call in self.calls]

    @cached_property
    def _call_by_node(self) -> dict[int, Call]:
        statements = {call.statement.id: call for call in self.calls if call.statement is not None}
        return {**{call.node.id: call for call in self.calls}, **statements}

    @cached_property
    def _by_kind(self) -> dict[str, list[Node]]:
        by_kind: dict[str, list[Node]] = defaultdict(list)
        for node in _walk(self.root):
            by_kind[node.type].append(node)
        return by_kind

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(rb"\n", self.data))]


_STATEMENT_LISTS = frozenset(
    {"compound_statement", "case_statement", "translation_unit", "field_declaration_list"}
)


@dataclass(frozen=True)
class Call:
    """A call: ``AscendC::Muls<float>(a, b, c, n)`` or ``pipe.InitBuffer(q, 1, n)``.

    Attributes:
        name: last name of the callee, without scope, object and template arguments.
        callee: text of the callee up to and including ``name``, without the word ``template``:
            ``AscendC::Muls``, ``pipe.InitBuffer``.
        template: template arguments with their brackets; empty if there are none.
        is_method: whether it is called on an object.
        arguments: argument nodes.
        values: their texts without white space.
        node: call expression.
        statement: expression statement that consists of this call; ``None`` if the result is used.
    """

    name: str
    callee: str
    template: str
    is_method: bool
    arguments: tuple[Node, ...]
    values: tuple[str, ...]
    node: Node
    statement: Node | None

    def named(self, name: str) -> str:
        """Return a callee in the same scope with another name: ``AscendC::Muls`` -> ``AscendC::Axpy``."""
        return self.callee.removesuffix(self.name) + name


@lru_cache(maxsize=256)
def parse(text: str) -> Source:
    """Return the parsed ``text``; cached."""
    return Source(text)


def ancestor(node: Node, kind: str) -> Node | None:
    """Return the nearest node of ``kind`` around ``node``, or ``None``."""
    above = node.parent
    while above is not None and above.type != kind:
        above = above.parent
    return above


def statements_of(block: Node) -> list[Node]:
    """Return the statements of a compound statement without its comments."""
    return [child for child in block.named_children if child.type != "comment"]


def siblings_after(statement: Node) -> list[Node]:
    """Return the statements after one in its block; empty if it is not in a compound statement."""
    if statement.parent is None or statement.parent.type != "compound_statement":
        return []
    return [other for other in statements_of(statement.parent) if other.start_byte >= statement.end_byte]


def siblings_before(statement: Node) -> list[Node]:
    """Return the statements before one in its block; empty if it is not in a compound statement."""
    if statement.parent is None or statement.parent.type != "compound_statement":
        return []
    return [other for other in statements_of(statement.parent) if other.end_byte <= statement.start_byte]


def is_inside(inner: Node, outer: Node) -> bool:
    """Return whether a node lies within another one."""
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _parsable(data: bytes) -> bytes:
    def blank(match: re.Match[bytes]) -> bytes:
        return re.sub(rb"[^\n]", b" ", match[0])

    data = _LAUNCH.sub(blank, _QUALIFIERS.sub(blank, data))
    return _BARE_CONDITION.sub(lambda match: b"(" + match[0][1:-1] + b")", data)


def _walk(root: Node) -> Iterator[Node]:
    cursor = root.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def _read_call(source: Source, node: Node) -> Call | None:
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        return None
    named = _last_name(function)
    if named is None:
        return None
    name, template = named
    arguments = tuple(child for child in listed.named_children if child.type != "comment")
    parent = node.parent
    return Call(
        name=source.text_of(name),
        callee=_TEMPLATE.sub("", source.data[function.start_byte : name.end_byte].decode()),
        template=source.text_of(template) if template else "",
        is_method=function.type == "field_expression",
        arguments=arguments,
        values=tuple(source.bare(argument) for argument in arguments),
        node=node,
        statement=parent if parent is not None and parent.type == "expression_statement" else None,
    )


def _last_name(function: Node) -> tuple[Node, Node | None] | None:
    """Return the name node of a callee and its template arguments."""
    if function.type in ("identifier", "field_identifier"):
        return function, None
    if function.type == "dependent_name":  # ``queue.template DeQue<T>``
        return _last_name(function.named_children[-1]) if function.named_children else None
    if function.type in ("template_function", "template_method"):
        name, template = function.child_by_field_name("name"), function.child_by_field_name("arguments")
        return (name, template) if name is not None else None
    inner = function.child_by_field_name("field" if function.type == "field_expression" else "name")
    return _last_name(inner) if inner is not None else None

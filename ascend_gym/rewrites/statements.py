"""What rules about vector code ask of a function: pairs of calls, and whether a value is still needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.rule import File
from ascend_gym.rewrites.syntax import Call, Edit, Source, ancestor, statements_of

BARRIERS = frozenset({"PipeBarrier", "pipe_barrier"})


@dataclass(frozen=True)
class CallPair:
    """Two call statements that follow each other, with nothing but barriers between them."""

    file: File
    first: Call
    second: Call
    between: tuple[Node, ...]

    @property
    def label(self) -> str:
        """File, line and the two calls."""
        return self.file.label(self.first.node.start_byte, f"{self.first.name} then {self.second.name}")

    def fused(self, text: str) -> list[Edit]:
        """Return the edits that put one statement in the place of both and of what is between them."""
        source, second = self.file.source, self.second.node
        gone = [node for node in (self.first.statement, *self.between) if node is not None]
        return [*(source.removal(node) for node in gone), Edit(second.start_byte, second.end_byte, text)]


def call_pairs(file: File) -> Iterator[CallPair]:
    """Yield every pair of call statements of a file, in the order of the text."""
    calls = {call.statement.id: call for call in file.source.calls if call.statement is not None}
    for block in file.source.nodes("compound_statement"):
        first: Call | None = None
        between: list[Node] = []
        for statement in statements_of(block):
            call = calls.get(statement.id)
            if call is not None and call.name in BARRIERS:
                between.append(statement)
                continue
            if call is not None and first is not None:
                yield CallPair(file, first, call, tuple(between))
            first, between = call, []


@dataclass(frozen=True)
class LocalTensorDeclaration:
    """A tensor variable that a function declares: ``LocalTensor<float> t = tmpBuf.Get<float>();``.

    Attributes:
        name: the variable.
        type_text: its declared type, without white space.
        buffer: the TBuf that it looks at; empty for tensors of a queue.
        declaration: the declaration statement.
        function: the function that declares it.
    """

    name: str
    type_text: str
    buffer: str
    declaration: Node
    function: Node


def local_tensors(source: Source, inside: Node) -> dict[str, LocalTensorDeclaration]:
    """Return the initialised variables of the function around ``inside``, by name."""
    function = ancestor(inside, "function_definition")
    found: dict[str, LocalTensorDeclaration] = {}
    for node in source.nodes("init_declarator") if function is not None else ():
        name, value, declaration = (
            node.child_by_field_name("declarator"),
            node.child_by_field_name("value"),
            node.parent,
        )
        if function is None or name is None or value is None or declaration is None:
            continue
        if function.start_byte <= node.start_byte < function.end_byte:
            kind = declaration.child_by_field_name("type")
            text = source.bare(value)
            buffer = text.partition(".Get")[0] if ".Get<" in text or ".Get(" in text else ""
            type_text = source.bare(kind) if kind is not None else ""
            declared = LocalTensorDeclaration(source.text_of(name), type_text, buffer, declaration, function)
            found[declared.name] = declared
    return found


def mentions(source: Source, name: str, within: Node) -> list[Node]:
    """Return the identifiers ``name`` inside a node, in the order of the text."""
    return [
        node
        for node in source.nodes("identifier")
        if within.start_byte <= node.start_byte < within.end_byte and source.text_of(node) == name
    ]


def is_dead_after(file: File, name: str, statement: Node) -> bool:
    """Say whether the tensor variable ``name`` is not read after ``statement``.

    Only a variable that is declared in the same function is known well enough: not a parameter, not a
    member, and not a view of a buffer that other functions look at too. What comes next must write it
    (as first argument of a call) or free it. Earlier code of an enclosing loop is not looked at.
    """
    tensor = local_tensors(file.source, statement).get(name)
    if tensor is None or (tensor.buffer and _looked_at_elsewhere(file.source, tensor)):
        return False
    for node in mentions(file.source, name, tensor.function):
        if node.start_byte >= statement.end_byte:
            call = _call_around(file.source, node)
            if call is None or call.name != "FreeTensor":
                return call is not None and _only_writes(call, name)
    return True


def _looked_at_elsewhere(source: Source, tensor: LocalTensorDeclaration) -> bool:
    function = tensor.function
    return any(
        call.callee == f"{tensor.buffer}.Get"
        and not function.start_byte <= call.node.start_byte < function.end_byte
        for call in source.calls
    )


def _call_around(source: Source, node: Node) -> Call | None:
    arguments = node.parent
    while arguments is not None and arguments.type in ("subscript_expression", "subscript_argument_list"):
        arguments = arguments.parent
    if arguments is None or arguments.type != "argument_list" or arguments.parent is None:
        return None
    around = arguments.parent
    return next((call for call in source.calls if call.node.id == around.id), None)


def _only_writes(call: Call, name: str) -> bool:
    return (
        not call.is_method and len(call.values) > 1 and call.values[0] == name and name not in call.values[1:]
    )

"""Queries about functions for rules on vector code: pairs of calls, and liveness of values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.core.calls import elementwise_calls, known_calls
from ascend_gym.rewrites.rule import File
from ascend_gym.rewrites.syntax import Call, Edit, Source, ancestor, is_inside, statements_of

BARRIERS = frozenset({"PipeBarrier", "pipe_barrier"})
ACCUMULATING_CALLS = frozenset(name for call in known_calls() if call.reads_dst for name in call.names)
"""Element-wise calls that read their first argument, too."""

WRITING_CALLS = elementwise_calls() - ACCUMULATING_CALLS | {"Cast", "DataCopy", "Duplicate"}
"""Calls that write their first argument, read the others, and end in the number of elements."""

INSTRUCTIONS = elementwise_calls() | {
    *("Brcb", "Cast", "Compare", "CreateVecIndex", "DataCopy", "DataCopyPad", "Duplicate", "Gather"),
    *("ReduceMax", "ReduceMin", "ReduceSum", "Select", "WholeReduceMax", "WholeReduceSum"),
}
"""Calls that issue a copy or a vector instruction."""

_DECLARATOR_PARTS = ("init_declarator", "reference_declarator", "pointer_declarator", "array_declarator")
_DECLARATIONS = ("declaration", "parameter_declaration", "optional_parameter_declaration", "for_range_loop")
_LOOPS = ("for_statement", "for_range_loop", "while_statement", "do_statement")
_SCOPES = (*_LOOPS, "compound_statement", "if_statement", "switch_statement", "lambda_expression")


@dataclass(frozen=True)
class CallPair:
    """Two consecutive call statements, with only barriers between them."""

    file: File
    first: Call
    second: Call
    between: tuple[Node, ...]

    @property
    def label(self) -> str:
        """File, line and the two calls."""
        return self.file.label(self.first.node.start_byte, f"{self.first.name} then {self.second.name}")

    def fused(self, text: str) -> list[Edit]:
        """Return the edits that replace both statements, and everything between them, by one."""
        source, second = self.file.source, self.second.node
        gone = [node for node in (self.first.statement, *self.between) if node is not None]
        return [*(source.removal(node) for node in gone), Edit(second.start_byte, second.end_byte, text)]


def call_pairs(file: File) -> Iterator[CallPair]:
    """Yield every pair of call statements of a file, in source order."""
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
class LocalDeclaration:
    """An initialised variable of a function: ``LocalTensor<float> t = tmpBuf.Get<float>();``.

    Attributes:
        name: variable.
        type_text: declared type, without white space.
        value: initialiser.
        buffer: TBuf that it is a view of; empty for tensors of a queue and for other variables.
        declaration: declaration statement.
        scope: block, loop or function in which the name means this variable.
        function: function that declares it.
    """

    name: str
    type_text: str
    value: Node
    buffer: str
    declaration: Node
    scope: Node
    function: Node


def declaration_of(source: Source, name: str, use: Node) -> LocalDeclaration | None:
    """Return the declaration of ``name`` visible at ``use``; ``None`` unless local and initialised."""
    function = ancestor(use, "function_definition")
    if function is None:
        return None
    visible = [
        (declarator, scope)
        for declarator, scope in _declarators(source, name, function)
        if declarator.start_byte < use.start_byte and is_inside(use, scope)
    ]
    if not visible:
        return None
    declarator, scope = visible[-1]
    named, value = (declarator.child_by_field_name(field) for field in ("declarator", "value"))
    statement = declarator.parent
    if named is None or named.type != "identifier" or value is None or statement is None:
        return None
    kind = statement.child_by_field_name("type")
    bare = source.bare(value)
    buffer = bare.partition(".Get")[0].removeprefix("this->") if ".Get<" in bare or ".Get(" in bare else ""
    type_text = source.bare(kind) if kind is not None else ""
    return LocalDeclaration(name, type_text, value, buffer, statement, scope, function)


def mentions(source: Source, name: str, within: Node) -> list[Node]:
    """Return the identifiers ``name`` inside a node, in source order."""
    return [
        node for node in source.identifiers(name) if within.start_byte <= node.start_byte < within.end_byte
    ]


def argument_of(source: Source, mention: Node) -> Call | None:
    """Return the call statement that has ``mention``, or an element of it, as an argument."""
    around = mention.parent
    while around is not None and around.type in ("subscript_expression", "subscript_argument_list"):
        if around.type == "subscript_expression" and not _is_first(mention, around):
            return None
        around = around.parent
    if around is None or around.type != "argument_list" or around.parent is None:
        return None
    call = source.call_of(around.parent)
    return call if call is not None and call.statement is not None else None


def is_dead_after(file: File, name: str, call: Call) -> bool:
    """Return whether the tensor variable ``name`` is not read after the statement ``call``.

    Only certain variables are known well enough: those that the function takes from a queue or as the only
    view of a buffer, without an alias, and that do not outlive an iteration of the loop around the call. The
    next use must free the variable, or write at least as many of its elements in the same statement list.
    """
    statement = call.statement
    tensor = declaration_of(file.source, name, call.node)
    if tensor is None or statement is None or not _owns_its_data(file.source, tensor):
        return False
    loop = _loop_around(statement)
    if loop is not None and not is_inside(tensor.declaration, loop):
        return False
    uses = [
        (use, argument_of(file.source, use))
        for use in mentions(file.source, name, tensor.scope)
        if not is_inside(use, tensor.declaration)
    ]
    if any(other is None and not _reads_element(file.source, use) for use, other in uses):
        return False
    for use, other in uses:
        if use.start_byte >= statement.end_byte and (other is None or other.name != "FreeTensor"):
            return other is not None and _overwrites(other, name, call)
    return True


def _declarators(source: Source, name: str, function: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the declarators of ``name`` in a function with their scopes, in source order."""
    for mention in mentions(source, name, function):
        node, parent = mention, mention.parent
        while parent is not None and parent.type in _DECLARATOR_PARTS and _declares(parent, node):
            node, parent = parent, parent.parent
        if parent is None or parent.type not in _DECLARATIONS or not _declares(parent, node):
            continue
        scope = parent.parent
        while scope is not None and scope.type not in _SCOPES:
            scope = scope.parent
        yield node, scope if scope is not None else function


def _declares(parent: Node, node: Node) -> bool:
    """Return whether ``node`` is the declared name in ``parent``, and not its type, value or array size."""
    if parent.type == "reference_declarator":
        return True
    return any(child.id == node.id for child in parent.children_by_field_name("declarator"))


def _is_first(mention: Node, subscript: Node) -> bool:
    return subscript.start_byte == mention.start_byte


def _loop_around(node: Node) -> Node | None:
    above = node.parent
    while above is not None and above.type not in _LOOPS:
        above = above.parent
    return above


def _owns_its_data(source: Source, tensor: LocalDeclaration) -> bool:
    """Return whether no other variable is a view of ``tensor``'s data, as far as other functions show."""
    made_by = [call for call in source.calls if is_inside(call.node, tensor.value) and call.is_method]
    if len(made_by) != 1 or made_by[0].name not in ("AllocTensor", "DeQue", "Get"):
        return False
    views = [
        call
        for call in source.calls
        if call.is_method
        and call.name.startswith("Get")
        and call.callee.removeprefix("this->").startswith(f"{tensor.buffer}.")
    ]
    return not tensor.buffer or len(views) == 1


def _reads_element(source: Source, mention: Node) -> bool:
    holder = mention.parent
    field = holder.child_by_field_name("field") if holder is not None else None
    return field is not None and source.text_of(field) in ("GetValue", "SetValue")


def _overwrites(call: Call, name: str, before: Call) -> bool:
    """Return whether ``call`` always runs if ``before`` does, and writes as many elements of ``name``."""
    if call.statement is None or before.statement is None or call.name not in WRITING_CALLS or call.is_method:
        return False
    same_list = call.statement.parent == before.statement.parent
    reads_it = any(name in re.findall(r"\w+", value) for value in call.values[1:])
    return same_list and call.values[0] == name and call.values[-1] == before.values[-1] and not reads_it


def free_tensors(file: File, call: Call) -> list[str]:
    """Return the local tensors that a statement could overwrite: declared before it, not used after it."""
    function = ancestor(call.node, "function_definition")
    operands = {name for value in call.values for name in re.findall(r"\w+", value)}
    if function is None:
        return []
    named = dict.fromkeys(
        file.source.text_of(declarator)
        for node in file.source.nodes("init_declarator")
        if is_inside(node, function) and node.end_byte < call.node.start_byte
        if (declarator := node.child_by_field_name("declarator")) is not None
    )
    return [name for name in named if name not in operands and is_dead_after(file, name, call)]

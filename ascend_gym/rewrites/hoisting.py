"""Loop-invariant code motion of fills and element reads; and the inverse rewrites."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import changed_names, names_in
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import ACCUMULATING_CALLS, BARRIERS, WRITING_CALLS, argument_of, mentions
from ascend_gym.rewrites.syntax import Call, Source, is_inside, siblings_after, siblings_before, statements_of
from ascend_gym.rewrites.vector import element_of, is_counted

_BUFFER = re.compile(r"([A-Za-z_]\w*)(?:\[.*\])?")
_HARMLESS_CALLS = WRITING_CALLS | ACCUMULATING_CALLS | BARRIERS | {"DataCopyPad"}
_ELEMENT = re.compile(r"(\w+)\.GetValue\(")
_FILLED_ONCE = Effect((Pipe.VECTOR,), "an invariant buffer filled once, not in each pass")
_READ_ONCE = Effect((Pipe.SCALAR,), "an invariant element read once, not in each pass")


@rule(Family.COMPUTE, Side.KERNEL, _FILLED_ONCE, inverse="duplicate_sinking")
def hoisted_duplicate(view: View) -> Iterator[Site]:
    """The body of a for loop fills a buffer by ``Duplicate`` with loop-invariant arguments.

    Nothing else in the loop may write that buffer, read it earlier, or declare or change what the call uses;
    nor may the loop call functions that could.
    """
    for file in view.kernel:
        for call in file.source.calls:
            fills = call.name == "Duplicate" and is_counted(call, 3)
            loop = _enclosing_loop(call.statement) if fills else None
            if loop is not None and call.statement is not None and _is_invariant(file.source, call, loop):
                yield _hoist(file, call.statement, loop)


@rule(Family.COMPUTE, Side.KERNEL, _FILLED_ONCE)
def duplicate_sinking(view: View) -> Iterator[Site]:
    """A ``Duplicate`` directly precedes a for loop that does not change the buffer.

    Undoes ``hoisted_duplicate``.
    """
    for file in view.kernel:
        for call in file.source.calls:
            fills = call.name == "Duplicate" and is_counted(call, 3)
            first = _first_of_loop_behind(call.statement) if fills else None
            if first is not None and call.statement is not None:
                loop = siblings_after(call.statement)[0]
                if _is_invariant(file.source, call, loop):
                    yield _sink(file, call.statement, first)


@rule(Family.COMPUTE, Side.KERNEL, _READ_ONCE, inverse="element_sinking")
def hoisted_element(view: View) -> Iterator[Site]:
    """The body of a for loop begins by reading an element of a tensor into a variable with ``GetValue``.

    It must be loop-invariant, and the loop must not mention that tensor again, nor call
    functions that could change it. The variable's name must be unused in the block around the loop.
    """
    for file in view.kernel:
        for declaration in file.source.nodes("declaration"):
            loop = _enclosing_loop(declaration)
            if loop is not None and _reads_invariant_element(file.source, declaration, loop):
                yield _hoist(file, declaration, loop)


@rule(Family.COMPUTE, Side.KERNEL, _READ_ONCE)
def element_sinking(view: View) -> Iterator[Site]:
    """An element of a tensor is read into a variable directly before the only for loop that uses it.

    Undoes ``hoisted_element``.
    """
    for file in view.kernel:
        for declaration in file.source.nodes("declaration"):
            first, name = _first_of_loop_behind(declaration), _declared_element(file.source, declaration)
            if first is not None and name is not None and declaration.parent is not None:
                loop = siblings_after(declaration)[0]
                uses = mentions(file.source, name[0], declaration.parent)
                if all(is_inside(use, loop) or is_inside(use, declaration) for use in uses):
                    yield _sink(file, declaration, first)


RULES: tuple[Rule, ...] = (hoisted_duplicate, hoisted_element)
REWINDS: tuple[Rule, ...] = (duplicate_sinking, element_sinking)


def _enclosing_loop(statement: Node | None) -> Node | None:
    """Return the for statement in a statement list whose body contains the statement."""
    block = statement.parent if statement is not None else None
    loop = block.parent if block is not None and block.type == "compound_statement" else None
    if loop is None or loop.type != "for_statement" or loop.parent is None:
        return None
    return loop if loop.parent.type == "compound_statement" else None


def _first_of_loop_behind(statement: Node | None) -> Node | None:
    """Return the first statement in the body of the for loop directly after a statement."""
    after = siblings_after(statement) if statement is not None else []
    body = after[0].child_by_field_name("body") if after and after[0].type == "for_statement" else None
    steps = statements_of(body) if body is not None and body.type == "compound_statement" else []
    return steps[0] if steps else None


def _is_invariant(source: Source, call: Call, loop: Node) -> bool:
    buffer = _BUFFER.fullmatch(call.values[0])
    used = {name for value in call.values for name in names_in(value)}
    if buffer is None or used & changed_names(source, loop):
        return False
    return _others_keep(source, call.node, loop, buffer[1], used) and all(
        argument_of(source, mention) is not None and mention.start_byte >= call.node.start_byte
        for mention in mentions(source, buffer[1], loop)
    )


def _others_keep(source: Source, node: Node, loop: Node, buffer: str, used: set[str]) -> bool:
    others = [
        other for other in source.calls if is_inside(other.node, loop) and not is_inside(other.node, node)
    ]
    return all(_keeps(other, buffer, used) for other in others)


def _keeps(other: Call, buffer: str, used: set[str]) -> bool:
    """Return whether a call leaves the buffer and the arguments of the fill unchanged."""
    named = {name for value in other.values for name in names_in(value)}
    if other.is_method:
        return not named & used and next(iter(re.findall(r"\w+", other.callee)), "") != buffer
    if other.name.endswith("_cast"):
        return True
    written = re.findall(r"\w+", other.values[0].partition("[")[0]) if other.values else []
    return other.name in _HARMLESS_CALLS and buffer not in written


def _declared_element(source: Source, declaration: Node) -> tuple[str, str] | None:
    """Return the variable that a statement declares as an element of a tensor, and the tensor."""
    declarators = declaration.children_by_field_name("declarator")
    declared = declarators[0] if len(declarators) == 1 else None
    if declared is None or declared.type != "init_declarator":
        return None
    name, value = (declared.child_by_field_name(field) for field in ("declarator", "value"))
    read = _ELEMENT.search(source.bare(value)) if value is not None else None
    if name is None or name.type != "identifier" or read is None:
        return None
    is_tensor = bool(element_of(source, read[1], declaration))
    return (source.text_of(name), read[1]) if is_tensor else None


def _reads_invariant_element(source: Source, declaration: Node, loop: Node) -> bool:
    declared = _declared_element(source, declaration)
    if declared is None or siblings_before(declaration):
        return False
    name, tensor = declared
    if loop.parent is None or any(not is_inside(node, loop) for node in mentions(source, name, loop.parent)):
        return False
    used = names_in(source.text_of(declaration)) - {name}
    calls = [call for call in source.calls if is_inside(call.node, declaration)]
    plain = all(call.name == "GetValue" or call.name.endswith("_cast") for call in calls)
    again = [node for node in mentions(source, tensor, loop) if not is_inside(node, declaration)]
    steps = [node for node in mentions(source, name, loop) if not is_inside(node, declaration)]
    changed = changed_names(source, loop)
    unchanged = not used & changed and not any(_is_assigned(node) for node in steps)
    return plain and not again and unchanged and _others_keep(source, declaration, loop, tensor, used)


def _is_assigned(mention: Node) -> bool:
    parent = mention.parent
    if parent is None:
        return False
    if parent.type in ("update_expression", "pointer_expression"):
        return True
    return parent.type == "assignment_expression" and parent.child_by_field_name("left") == mention


def _hoist(file: File, statement: Node, loop: Node) -> Site:
    text = file.source.text_of(statement)
    edits = (file.source.insertion_before(loop, text), file.source.removal(statement))
    label = file.label(statement.start_byte, text.rstrip(";"))
    return Site(label, (Choice("move before the loop", tuple(file.edit(edit) for edit in edits)),))


def _sink(file: File, statement: Node, first: Node) -> Site:
    text = file.source.text_of(statement)
    edits = (file.source.removal(statement), file.source.insertion_before(first, text))
    label = file.label(statement.start_byte, text.rstrip(";"))
    moved = Choice("move into the loop", tuple(file.edit(edit) for edit in edits), forward=False)
    return Site(label, (moved,))

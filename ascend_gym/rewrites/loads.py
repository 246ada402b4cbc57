"""Functions that copy a tile in and wait for it, split so that the next tile is requested in time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import (
    CountingLoop,
    changed_names,
    counting_loops,
    jumps,
    names_in,
    with_index,
)
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call, Edit, is_inside, statements_of

_AHEAD = "Ahead"
_LABEL = "copy the next tile in while this one is computed"
_ENQUEUED = re.compile(r"(?:this->)?(\w+)\.EnQue(?:<.*>)?\((\w+)\);")
_DECLARED = re.compile(r"(?:AscendC::)?LocalTensor<.+>")
_EARLIER = Effect(
    (Pipe.MTE2, Pipe.SCALAR),
    "the next tile is on its way while this one is computed, and not asked for after it",
)


@dataclass(frozen=True)
class _Load:
    """A function that puts a tensor into a queue and takes it out again.

    Attributes:
        file: source file.
        function: its definition.
        name: its name.
        queue: queue.
        enqueued: statement that puts the tensor in.
        dequeued: following statement, which takes it out.
        declaration: type and name of the tensor.
    """

    file: File
    function: Node
    name: str
    queue: str
    enqueued: Node
    dequeued: Node
    declaration: str

    @property
    def body(self) -> Node:
        """Statements of the function."""
        body = self.function.child_by_field_name("body")
        return body if body is not None else self.function


@rule(Family.PIPELINING, Side.KERNEL, _EARLIER, inverse="load_in_place")
def load_ahead(view: View) -> Iterator[Site]:
    """A function copies a tile into a queue and takes it out at once; a for loop begins with a call of it.

    The function is split, unless it is already. In the loop, the copy of the next iteration follows the wait
    for the current one's. No other function called in the loop may use that queue, and none may assign to a
    member.
    """
    for file in view.kernel:
        for load in _loads(file):
            calls = [call for call in file.source.calls if call.name == load.name]
            loops = [loop for loop in counting_loops(file) if _begins_with(loop, load, calls)]
            if loops and all(call.statement is not None for call in calls):
                yield _site(load, calls, loops)
        yield from (site for loop in counting_loops(file) if (site := _ahead_again(loop)) is not None)


@rule(Family.PIPELINING, Side.KERNEL, _EARLIER)
def load_in_place(view: View) -> Iterator[Site]:
    """A function ``LoadAhead`` copies a tile in for a function ``Load``, as ``load_ahead`` writes them.

    Undoes ``load_ahead`` in the loop: the copy of an iteration is issued in that iteration.
    """
    for file in view.kernel:
        for loop in counting_loops(file):
            site = _in_place(loop)
            if site is not None:
                yield site


RULES: tuple[Rule, ...] = (load_ahead,)
REWINDS: tuple[Rule, ...] = (load_in_place,)


def _loads(file: File) -> Iterator[_Load]:
    for function in file.source.nodes("function_definition"):
        body, name = function.child_by_field_name("body"), _name_of(file, function)
        steps = statements_of(body) if body is not None else []
        for enqueued, dequeued in pairwise(steps):
            load = _load_of(file, function, name, enqueued, dequeued)
            if load is not None and f"{name}{_AHEAD}" not in file.source.words:
                yield load


def _load_of(file: File, function: Node, name: str, enqueued: Node, dequeued: Node) -> _Load | None:
    source = file.source
    match = _ENQUEUED.fullmatch(source.bare(enqueued))
    is_template = function.parent is not None and function.parent.type == "template_declaration"
    if match is None or is_template or jumps(source, function):
        return None
    queue, tensor = match[1], match[2]
    taken = rf"(?:.*>)?{tensor}=(?:this->)?{queue}\.DeQue(?:<.*>)?\(\);"
    declared = _declared(file, function, tensor)
    if re.fullmatch(taken, source.bare(dequeued)) is None or declared is None:
        return None
    head = [each for each in source.nodes("declaration") if is_inside(each, function)]
    own = {
        word for each in head if each.end_byte <= enqueued.start_byte for word in _declared_names(file, each)
    }
    rest = source.data[dequeued.end_byte : function.end_byte].decode()
    if (own - {tensor}) & names_in(rest) or source.text_of(function).count(".DeQue") != 1:
        return None
    return _Load(file, function, name, queue, enqueued, dequeued, declared)


def _declared(file: File, function: Node, tensor: str) -> str | None:
    """Return type and name of a local tensor that a function declares exactly once; else ``None``."""
    found = [
        kind
        for node in file.source.nodes("declaration")
        if is_inside(node, function) and tensor in _declared_names(file, node)
        if (kind := node.child_by_field_name("type")) is not None
    ]
    text = file.source.text_of(found[0]) if len(found) == 1 else ""
    return f"{text} {tensor}" if _DECLARED.fullmatch("".join(text.split())) else None


def _declared_names(file: File, declaration: Node) -> set[str]:
    names = set()
    for declarator in declaration.children_by_field_name("declarator"):
        named = declarator.child_by_field_name("declarator")
        names.add(file.source.text_of(named if named is not None else declarator))
    return names


def _name_of(file: File, function: Node) -> str:
    declarator = function.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return file.source.text_of(name) if name is not None else ""


def _begins_with(loop: CountingLoop, load: _Load, calls: list[Call]) -> bool:
    """Return whether a loop begins with a call of the load and nothing in it prevents the rewrite."""
    source = loop.file.source
    within = [call for call in calls if is_inside(call.node, loop.body)]
    _, statement, rest = _parts(loop)
    first = source.call_of(statement) if statement is not None else None
    alone = len(within) == 1 and first is not None and first.node.id == within[0].node.id
    return alone and bool(rest) and _leaves_alone(loop, load.queue, {load.name})


def _leaves_alone(loop: CountingLoop, queue: str, but: set[str]) -> bool:
    """Return whether a loop has no early exit, assigns no member, and only ``but`` use a queue."""
    source = loop.file.source
    called = _reached(loop.file, {call.name for call in source.calls_within(loop.body) if not call.is_method})
    others = [function for name, function in called if name not in but]
    uses_queue = any(queue in names_in(source.text_of(function)) for function in others)
    own_only = all(_assigns_own_only(loop.file, function) for _, function in called)
    return own_only and not uses_queue and not jumps(source, loop.body)


def _parts(loop: CountingLoop) -> tuple[list[Node], Node | None, list[Node]]:
    """Return the declarations at the start of a loop, the statement after them, and the rest."""
    steps = loop.steps
    count = next((at for at, step in enumerate(steps) if step.type != "declaration"), len(steps))
    return steps[:count], steps[count] if count < len(steps) else None, steps[count + 1 :]


def _reached(file: File, names: set[str]) -> list[tuple[str, Node]]:
    """Return the functions of a file that are called, directly or indirectly, by these names."""
    known = {_name_of(file, each): each for each in file.source.nodes("function_definition")}
    reached: dict[str, Node] = {}
    left = list(names)
    while left:
        name = left.pop()
        if name in known and name not in reached:
            reached[name] = known[name]
            left += [call.name for call in file.source.calls_within(known[name]) if not call.is_method]
    return list(reached.items())


def _assigns_own_only(file: File, function: Node) -> bool:
    source = file.source
    own = {
        name
        for kind in ("declaration", "parameter_declaration", "optional_parameter_declaration")
        for node in source.nodes(kind)
        if is_inside(node, function)
        for name in names_in(source.text_of(node))
    }
    return changed_names(source, function) <= own


def _site(load: _Load, calls: list[Call], loops: list[CountingLoop]) -> Site:
    source, edits = load.file.source, [*_taken_apart(load)]
    for loop in loops:
        declarations, statement, _ = _parts(loop)
        first = [source.text_of(each) for each in declarations]
        if statement is not None:
            ahead = source.text_of(statement).replace(load.name, f"{load.name}{_AHEAD}", 1)
            begin = _guarded(loop, [*first, ahead], loop.start)
            following = _guarded(loop, [*first, ahead], f"({loop.index} + {loop.step})")
            edits += [
                source.insertion_before(loop.node, *begin),
                source.insertion_after(statement, *following),
            ]
    in_loops = [call for call in calls if any(is_inside(call.node, loop.body) for loop in loops)]
    for call in calls:
        if call not in in_loops and call.statement is not None:
            ahead = source.text_of(call.statement).replace(load.name, f"{load.name}{_AHEAD}", 1)
            edits.append(source.insertion_before(call.statement, ahead))
    label = load.file.label(load.function.start_byte, f"{load.name} and {len(loops)} loops")
    return Site(label, (Choice(_LABEL, tuple(map(load.file.edit, edits))),))


def _taken_apart(load: _Load) -> Iterator[Edit]:
    """Yield the edits that split a function into one that copies in and one that waits."""
    source, body = load.file.source, load.body
    begin = source.data.rfind(b"\n", 0, load.function.start_byte) + 1  # qualifiers are no part of the tree
    end = load.dequeued.end_byte
    signature = source.data[begin : body.start_byte].decode()
    indent = signature[: len(signature) - len(signature.lstrip())]
    value = source.text_of(load.dequeued).partition("=")[2].strip()
    head = source.data[body.start_byte : load.enqueued.end_byte].decode()
    renamed = re.sub(rf"\b{load.name}\b", f"{load.name}{_AHEAD}", signature, count=1)
    inner = source.indent_of(load.dequeued)
    text = f"{renamed}{head}\n{indent}}}\n\n{signature}{{\n{inner}{load.declaration} = {value}"
    yield Edit(begin, end, text)


def _guarded(loop: CountingLoop, statements: list[str], value: str) -> list[str]:
    lines = [with_index(each, loop.index, value) for each in statements]
    return [f"if ({value} < {loop.bound_text}) {{", *(f"    {line}" for line in lines), "}"]


def _ahead_again(loop: CountingLoop) -> Site | None:
    """Return the site of a loop that begins with ``LoadAhead(x)`` and ``Load(x)``, else ``None``."""
    source = loop.file.source
    declarations, statement, rest = _parts(loop)
    waits = source.call_of(rest[0]) if len(rest) > 1 else None
    if statement is None or waits is None:
        return None
    ahead = source.text_of(statement)
    if ahead != source.text_of(rest[0]).replace(waits.name, f"{waits.name}{_AHEAD}", 1):
        return None
    known = {_name_of(loop.file, each): each for each in source.nodes("function_definition")}
    taken = re.search(r"(\w+)\.DeQue", source.text_of(known[waits.name])) if waits.name in known else None
    if taken is None or not _leaves_alone(loop, taken[1], {waits.name, f"{waits.name}{_AHEAD}"}):
        return None
    if sum(call.name == waits.name for call in source.calls_within(loop.body)) != 1:
        return None
    lines = [*(source.text_of(each) for each in declarations), ahead]
    edits = (
        source.removal(statement),
        source.insertion_before(loop.node, *_guarded(loop, lines, loop.start)),
        source.insertion_after(rest[0], *_guarded(loop, lines, f"({loop.index} + {loop.step})")),
    )
    return Site(loop.label(), (Choice(_LABEL, tuple(map(loop.file.edit, edits))),))


def _in_place(loop: CountingLoop) -> Site | None:
    """Return the site that issues the copy of an iteration in that iteration; ``None`` for other loops."""
    source = loop.file.source
    _, statement, rest = _parts(loop)
    call = source.call_of(statement) if statement is not None else None
    above = loop.node.prev_named_sibling
    if call is None or statement is None or not rest or above is None:
        return None
    ahead = f"{call.name}{_AHEAD}"
    following = f"if (({loop.index} + {loop.step}) < {loop.bound_text})"
    begins = source.text_of(above).startswith(f"if ({loop.start} < {loop.bound_text})")
    if not begins or not source.text_of(rest[0]).startswith(following):
        return None
    if any(ahead not in names_in(source.text_of(node)) for node in (above, rest[0])):
        return None
    edits = (
        source.removal(above),
        source.removal(rest[0]),
        source.insertion_before(statement, source.text_of(statement).replace(call.name, ahead, 1)),
    )
    choice = Choice("copy in when needed", tuple(map(loop.file.edit, edits)), forward=False)
    return Site(loop.label(), (choice,))

"""Buffers that are copied out and filled again, handed over by their queue and not by an event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    FileEdit,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    one_and_all,
    rule,
)
from ascend_gym.rewrites.statements import mentions
from ascend_gym.rewrites.syntax import Call, Edit, ancestor, siblings_after, siblings_before

_METHODS = ("AllocTensor", "EnQue", "DeQue", "FreeTensor")
_COPY_OUT = re.compile(r"<(?:\w+::)*MTE3_MTE2>")
_COMPUTED = re.compile(r"<(?:\w+::)*V_MTE3>")
_QUEUE_TYPE = re.compile(
    r"((?:\w+::)*)TQue(?:<\s*((?:\w+::)*)(VECIN|VECOUT)|Bind<\s*(?:\w+::)*VECIN,\s*(?:\w+::)*(VECOUT))\s*,"
)
_OVERLAPPING_COPIES = Effect((Pipe.MTE2, Pipe.MTE3), "the next tile is copied in while one is copied out")


@dataclass(frozen=True)
class _Queue:
    """A queue of a kernel.

    Attributes:
        name: its name.
        position: ``VECIN``, or ``VECOUT`` where copies out hand its buffers over.
        api: what is written before names of the interface, as in ``AscendC::``.
        scope: what is written before the position, as in ``QuePosition::``.
        file: source file of its declaration.
        type_node: the type in its declaration.
    """

    name: str
    position: str
    api: str
    scope: str
    file: File
    type_node: Node


@rule(
    Family.PIPELINING,
    Side.KERNEL,
    _OVERLAPPING_COPIES,
    inverse="copy_out_waiting",
)
def copy_out_wait(view: View) -> Iterator[Site]:
    """A tensor is freed directly behind a ``SetFlag`` and ``WaitFlag`` of ``MTE3_MTE2``, which go.

    All copies into UB wait there for the copy out of this one buffer. Nothing is copied into the buffers of
    a VECOUT queue. A VECIN queue becomes a ``TQueBind`` to VECOUT, whose buffers wait for their own copy out
    when they are allocated again. Each tensor of that queue has to be freed behind such an event, or before a
    wait for the vector unit by copies out, which it is then freed behind. Assumption: the event is there for
    that buffer alone, and what was copied out is not copied in again.
    """
    sites = []
    for queue in _queues(view):
        edits = _handed_over(view, queue)
        if edits:
            label = queue.file.label(queue.type_node.start_byte, f"{queue.name} is copied out of")
            sites.append(Site(label, (Choice("its buffers wait for their own copies", tuple(edits)),)))
    yield from one_and_all(sites, "queues that are copied out of")


@rule(Family.PIPELINING, Side.KERNEL, _OVERLAPPING_COPIES)
def copy_out_waiting(view: View) -> Iterator[Site]:
    """A tensor of a VECOUT queue, or of one bound to copies out, is freed.

    Undoes ``copy_out_wait``, but for the kind of the queue: all copies in wait for those out.
    """
    for queue in _queues(view):
        for file in view.kernel if queue.position == "VECOUT" else ():
            for call in _calls_on(file, queue.name):
                frees = call.name == "FreeTensor" and call.statement is not None
                if frees and call.statement is not None and not _events_before(file, call):
                    yield _waiting(file, call.statement, queue.api)


RULES: tuple[Rule, ...] = (copy_out_wait,)
REWINDS: tuple[Rule, ...] = (copy_out_waiting,)


def _queues(view: View) -> Iterator[_Queue]:
    """Yield the queues that are declared once, each alone."""
    found: dict[str, list[_Queue | None]] = {}
    for file in view.kernel:
        for node in file.source.nodes("field_declaration"):
            kind, names = node.child_by_field_name("type"), node.children_by_field_name("declarator")
            match = _QUEUE_TYPE.match(file.source.text_of(kind)) if kind is not None else None
            for named in names:
                name = file.source.text_of(named)
                queue = _read(name, match, file, kind) if match and kind and len(names) == 1 else None
                found.setdefault(name, []).append(queue)
    for queues in found.values():
        if len(queues) == 1 and queues[0] is not None:
            yield queues[0]


def _read(name: str, match: re.Match[str], file: File, kind: Node) -> _Queue:
    return _Queue(name, match[3] or match[4], match[1], match[2] or "", file, kind)


def _handed_over(view: View, queue: _Queue) -> list[FileEdit]:
    """Return the edits that take away the events behind copies out of a queue; empty if they cannot go."""
    edits: list[FileEdit] = []
    waits = 0
    for file in view.kernel:
        for call in _calls_on(file, queue.name):
            if call.name == "FreeTensor":
                events = _events_before(file, call)
                waits += bool(events)
                edits += [file.edit(file.source.removal(node)) for node in events]
                if not events and queue.position == "VECIN":
                    moved = _freed_later(file, call)
                    if not moved:
                        return []
                    edits += moved
            elif queue.position == "VECIN" and call.name in ("EnQue", "DeQue"):
                edits.append(_staged(file, call, queue.scope))
    if queue.position == "VECOUT":
        return edits
    return [*edits, _bound(queue)] if waits and _is_used_plainly(view, queue) else []


def _calls_on(file: File, queue: str) -> list[Call]:
    return [call for call in file.source.calls if call.is_method and _object_of(file, call) == queue]


def _object_of(file: File, call: Call) -> str:
    """Return the last name of the object that a method is called on."""
    function = call.node.child_by_field_name("function")
    target = function.child_by_field_name("argument") if function is not None else None
    return re.split(r"::|\.|->", file.source.bare(target))[-1] if target is not None else ""


def _is_used_plainly(view: View, queue: _Queue) -> bool:
    """Return whether a queue is only initialised and used by its methods, in the forms that are rewritten."""
    for file in view.kernel:
        for call in _calls_on(file, queue.name):
            listed = call.name == "DeQue" and (call.values or not call.template or "," in call.template)
            if call.name not in _METHODS or listed or (call.name == "EnQue" and "," in call.template):
                return False
        calls = len(_calls_on(file, queue.name))
        fills = [call for call in file.source.calls if call.name == "InitBuffer" and call.values]
        named = sum(re.split(r"::|\.|->", call.values[0])[-1] == queue.name for call in fills)
        words = re.findall(rf"\b{queue.name}\b", without_comments(file.source.text))
        if len(words) != calls + named + (file.path == queue.file.path):
            return False
    return True


def _events_before(file: File, free: Call) -> list[Node]:
    """Return the event that holds copies into UB up until those out are done, directly before a call."""
    before = siblings_before(free.statement)[::-1] if free.statement is not None else []
    calls = [file.source.call_of(node) for node in before[:2]]
    if len(calls) < 2 or calls[0] is None or calls[1] is None:
        return []
    wait, start = calls[0], calls[1]
    is_pair = (wait.name, start.name) == ("WaitFlag", "SetFlag") and wait.values == start.values
    if not is_pair or not all(_COPY_OUT.fullmatch("".join(call.template.split())) for call in (wait, start)):
        return []
    return [*before[:2], *_only_declared_for(file, before[2:3], wait.values[0])]


def _only_declared_for(file: File, statements: list[Node], name: str) -> list[Node]:
    """Return the declaration of an event that nothing else uses."""
    function = ancestor(statements[0], "function_definition") if statements else None
    if function is None or statements[0].type != "declaration" or not name.isidentifier():
        return []
    block = statements[0].parent
    declared = mentions(file.source, name, statements[0])
    used = mentions(file.source, name, block) if block is not None else []
    return statements if len(declared) == 1 and len(used) == 3 else []


def _freed_later(file: File, free: Call) -> list[FileEdit]:
    """Return the edits that free a tensor behind the next wait for the vector unit by copies out."""
    statement = free.statement
    if statement is None:
        return []
    for node in siblings_after(statement):
        call = file.source.call_of(node)
        if (
            call is not None
            and call.name == "WaitFlag"
            and _COMPUTED.fullmatch("".join(call.template.split()))
        ):
            text = file.source.text_of(statement)
            edits = (file.source.removal(statement), file.source.insertion_after(node, text))
            return [file.edit(edit) for edit in edits]
        if node.type not in ("declaration", "expression_statement"):
            return []
    return []


def _staged(file: File, call: Call, scope: str) -> FileEdit:
    """Return the edit that names the stage of EnQue and DeQue: from global memory to vectors."""
    function, listed = call.node.child_by_field_name("function"), call.node.child_by_field_name("arguments")
    target = function.child_by_field_name("argument") if function is not None else None
    begin = target.end_byte if target is not None else call.node.start_byte
    end = listed.start_byte if listed is not None else call.node.end_byte
    arrow = "->" if file.source.data[begin:end].lstrip().startswith(b"->") else "."
    element = f", {call.template[1:-1].strip()}" if call.template else ""
    text = f"{arrow}template {call.name}<{scope}GM, {scope}VECIN{element}>"
    return file.edit(Edit(begin, end, text))


def _bound(queue: _Queue) -> FileEdit:
    """Return the edit of a declaration that binds the queue to copies out."""
    text = queue.file.source.text_of(queue.type_node)
    bound = _QUEUE_TYPE.sub(r"\1TQueBind<\2VECIN, \2VECOUT,", text, count=1)
    return queue.file.replaced(queue.type_node, bound)


def _waiting(file: File, statement: Node, api: str) -> Site:
    """Return the site that lets copies in wait for those out before a tensor is freed."""
    event = f"{api}HardEvent::MTE3_MTE2"
    number = f"static_cast<event_t>(GetTPipePtr()->FetchEventID({event}))"
    flags = [f"{api}{name}<{event}>({number});" for name in ("SetFlag", "WaitFlag")]
    edit = file.edit(file.source.insertion_before(statement, *flags))
    label = file.label(statement.start_byte, file.source.text_of(statement))
    return Site(label, (Choice("all copies in wait", (edit,), forward=False),))

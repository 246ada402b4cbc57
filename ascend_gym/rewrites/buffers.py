"""Numbers of buffers of queues."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ascend_gym.rewrites.constants import Constant, constants_of, names_buffer_count
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
from ascend_gym.rewrites.syntax import Call, Source

_DOUBLE = 2
_BUFFER_COUNTS = (_DOUBLE, 3, 1, 4)
_OVERLAP = Effect(
    (Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR), "copies of one tile overlap with computing on another; takes more UB"
)


@rule(Family.PIPELINING, Side.KERNEL, _OVERLAP, inverse="buffer_count")
def buffer_count(view: View) -> Iterator[Site]:
    """A kernel constant is named like the number of buffers of its queues, with a value of 1 to 4."""
    for file in view.kernel:
        for constant in constants_of(file):
            if constant.is_fixed and names_buffer_count(constant):
                yield _counting_site([constant])


@rule(Family.PIPELINING, Side.BOTH, _OVERLAP, inverse="shared_buffer_count")
def shared_buffer_count(view: View) -> Iterator[Site]:
    """Host and kernel both have a constant named like a number of buffers, with equal words and value.

    Assumption: the host divides UB by it, so it must equal the kernel's.
    """
    groups: dict[str, list[list[Constant]]] = defaultdict(lambda: [[], []])
    for side, files in enumerate((view.host, view.kernel)):
        for file in files:
            for constant in constants_of(file):
                if constant.is_fixed and names_buffer_count(constant):
                    groups["_".join((*constant.words, constant.value_text))][side].append(constant)
    for host, kernel in groups.values():
        if host and kernel:
            yield _counting_site([*host, *kernel])


@rule(Family.PIPELINING, Side.KERNEL, _OVERLAP, inverse="queue_buffers")
def queue_buffers(view: View) -> Iterator[Site]:
    """``InitBuffer(queue, n, bytes)`` has a literal n of 1 or 2; a queue depth of n is changed, too."""
    for file in view.kernel:
        depths = queue_depths([file])
        for present in ("1", "2"):
            sites = [
                _queue_site(file, call, depths)
                for call in file.source.calls
                if call.name == "InitBuffer" and len(call.values) == 3 and call.values[1] == present
            ]
            yield from one_and_all(sites, f"queues with {present} of {file.path}")


RULES: tuple[Rule, ...] = (buffer_count, shared_buffer_count, queue_buffers)
REWINDS: tuple[Rule, ...] = ()


def _counting_site(constants: list[Constant]) -> Site:
    """Return the site that changes a number of buffers: a second one helps, further ones hardly do."""
    present = constants[0].literal or 0
    choices = []
    for count in _BUFFER_COUNTS:
        if count != present:
            edits = tuple(constant.replaced(constant.with_literal(count)) for constant in constants)
            label = f"{constants[0].name}: {present} -> {count}"
            choices.append(Choice(label, edits, forward=present < count <= _DOUBLE))
    return Site(" and ".join(constant.label for constant in constants), tuple(choices))


@dataclass(frozen=True)
class QueueDepth:
    """The depth of a queue that is a member, as in ``TQue<position, depth>``.

    Attributes:
        file: source file.
        owner: name of the class.
        queue: name of the member.
        node: syntax node of the depth.
    """

    file: File
    owner: str
    queue: str
    node: Node

    @property
    def text(self) -> str:
        """The depth as it is written: a number or a name."""
        return self.file.source.bare(self.node)


def queue_depths(files: Iterable[File]) -> list[QueueDepth]:
    """Return the depth of each queue that is declared as a member."""
    depths = []
    for file in files:
        for declaration in file.source.nodes("field_declaration"):
            name, kind = (
                declaration.child_by_field_name("declarator"),
                declaration.child_by_field_name("type"),
            )
            queue = re.search(r"\bTQue(Bind)?<", file.source.text_of(kind)) if kind is not None else None
            if name is None or kind is None or queue is None:
                continue
            arguments = _template_arguments(kind)
            at = 2 if queue[1] else 1
            if len(arguments) > at:
                owner = class_around(file.source, declaration)
                depths.append(QueueDepth(file, owner, file.source.text_of(name), arguments[at]))
    return depths


def depths_of(depths: Iterable[QueueDepth], owner: str, queue: str) -> list[QueueDepth]:
    """Return the depths of a queue that a class uses; of all with its name where a base class declares it."""
    named = [depth for depth in depths if depth.queue == queue.removeprefix("this->")]
    return [depth for depth in named if depth.owner == owner] or named


def class_around(source: Source, node: Node) -> str:
    """Return the name of the class that code is in, also in ``K<T>::F() {}``; empty where there is none."""
    above: Node | None = node
    while above is not None:
        name = None
        if above.type in ("class_specifier", "struct_specifier"):
            name = above.child_by_field_name("name")
        elif above.type == "function_definition":
            name = _scope_of(above)
        if name is not None:
            return source.bare(name).partition("<")[0]
        above = above.parent
    return ""


def _scope_of(function: Node) -> Node | None:
    """Return what stands before the last ``::`` in the name of a function."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "qualified_identifier":
        declarator = declarator.child_by_field_name("declarator")
    return declarator.child_by_field_name("scope") if declarator is not None else None


def _template_arguments(kind: Node) -> list[Node]:
    template = kind if kind.type == "template_type" else kind.child_by_field_name("name")
    arguments = template.child_by_field_name("arguments") if template is not None else None
    return list(arguments.named_children) if arguments is not None else []


def _queue_site(file: File, call: Call, depths: list[QueueDepth]) -> Site:
    count = call.arguments[1]
    present, wanted = call.values[1], "2" if call.values[1] == "1" else "1"
    own = depths_of(depths, class_around(file.source, call.node), call.values[0])
    nodes = [count, *(depth.node for depth in own if depth.text == present)]
    edits = tuple(file.replaced(node, wanted) for node in nodes)
    label = file.label(call.node.start_byte, f"{call.values[0]} has {present}")
    return Site(label, (Choice(f"{present} -> {wanted} buffers", edits, forward=wanted == "2"),))

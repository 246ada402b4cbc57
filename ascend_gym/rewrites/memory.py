"""Rules about UB: less of it in use, so that tiles can be larger."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import LocalDeclaration, declaration_of, mentions
from ascend_gym.rewrites.syntax import Call, Edit, Source

_ELEMENTWISE = re.compile("Muls|Adds|Maxs|Mins|Exp|Ln|Sqrt|Rsqrt|Abs|Relu|Reciprocal|LeakyRelu|Not")


@rule(
    Family.MEMORY,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "a buffer less in UB: room for larger tiles, fewer bank conflicts"),
)
def in_place_compute(view: View) -> Iterator[Site]:
    """A temporary of a TBuf is first written element by element from a tensor that is then only freed.

    Both are declared in the function with the same type, and the buffer is used for nothing else: the
    temporary takes the place of its source, and the buffer goes.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if _ELEMENTWISE.fullmatch(call.name) and not call.is_method and len(call.values) in (3, 4):
                yield from _in_place(file, call)


RULES: tuple[Rule, ...] = (in_place_compute,)
REWINDS: tuple[Rule, ...] = ()


def _in_place(file: File, call: Call) -> Iterator[Site]:
    temporary, source = (declaration_of(file.source, name, call.node) for name in call.values[:2])
    if temporary is None or source is None or temporary.type_text != source.type_text:
        return
    buffer_edits = _buffer_removal(file.source, temporary)
    if not temporary.buffer or temporary.name == source.name or buffer_edits is None:
        return
    uses = mentions(file.source, temporary.name, temporary.scope)
    written_first = min(use.start_byte for use in uses if use.start_byte > temporary.declaration.end_byte)
    if not _only_freed(file.source, source, call, max(use.start_byte for use in uses)):
        return
    if written_first < call.node.start_byte:
        return
    edits = [
        file.source.removal(temporary.declaration),
        *buffer_edits,
        *(
            Edit(use.start_byte, use.end_byte, source.name)
            for use in uses
            if use.start_byte > temporary.declaration.end_byte
        ),
    ]
    label = file.label(call.node.start_byte, f"{temporary.name} takes the place of {source.name}")
    choice = Choice(f"compute in place, drop {temporary.buffer}", tuple(file.edit(edit) for edit in edits))
    yield Site(label, (choice,))


def _only_freed(source: Source, tensor: LocalDeclaration, call: Call, last_use: int) -> bool:
    """Say whether ``tensor`` is not used after ``call`` but for being freed, and that after ``last_use``."""
    freed = {
        other.node.start_byte: other
        for other in source.calls
        if other.name == "FreeTensor" and other.values == (tensor.name,)
    }
    for use in mentions(source, tensor.name, tensor.function):
        if use.start_byte < call.node.end_byte:
            continue
        inside_free = any(
            other.node.start_byte <= use.start_byte < other.node.end_byte for other in freed.values()
        )
        if not inside_free or use.start_byte < last_use:
            return False
    return True


def _buffer_removal(source: Source, temporary: LocalDeclaration) -> list[Edit] | None:
    """Return the edits that remove the temporary's TBuf; ``None`` if it is used for anything else.

    What may be left of it are its declaration, one InitBuffer and the one Get.
    """
    owner = temporary.buffer
    inits = [
        call
        for call in source.calls
        if call.name == "InitBuffer" and call.values[:1] in ((owner,), (f"this->{owner}",))
    ]
    declared = [
        node
        for node in source.nodes("field_declaration")
        if _declares(source, node, owner) and "TBuf" in source.text_of(node)
    ]
    seen = [*source.nodes("identifier"), *source.nodes("field_identifier")]
    count = sum(source.text_of(node) == owner for node in seen)
    if len(inits) != 1 or len(declared) != 1 or count != 3 or inits[0].statement is None:
        return None
    return [source.removal(inits[0].statement), source.removal(declared[0])]


def _declares(source: Source, declaration: Node, name: str) -> bool:
    declarator = declaration.child_by_field_name("declarator")
    return declarator is not None and source.text_of(declarator) == name

"""Rules about UB: less use of it, so that tiles can be larger, and banks of one vector instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tree_sitter import Node

from ascend_gym.rewrites.loop_headers import fresh_name
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
from ascend_gym.rewrites.statements import LocalDeclaration, argument_of, declaration_of, mentions
from ascend_gym.rewrites.syntax import Call, Edit, Source, statements_of

_ELEMENTWISE = re.compile("Muls|Adds|Maxs|Mins|Exp|Ln|Sqrt|Rsqrt|Abs|Relu|Reciprocal|LeakyRelu|Not")


_LESS_UB = Effect((Pipe.VECTOR,), "a buffer less in UB: room for larger tiles, fewer bank conflicts")

_PADDING_BYTES = 256  # half of the 16 bank groups of 32 bytes
_INIT_ARITIES = (2, 3)  # of a TBuf, of a queue
_FEWEST_IN_RUN = 3
_SIMPLE = (
    "binary_expression",
    "call_expression",
    "field_expression",
    "identifier",
    "number_literal",
    "parenthesized_expression",
)
_LOOSE = frozenset({"<<", ">>", "&", "|", "^", "<", ">", "==", "&&", "||"})


@rule(Family.MEMORY, Side.KERNEL, _LESS_UB, inverse="separate_result")
def in_place_compute(view: View) -> Iterator[Site]:
    """A temporary of a TBuf is first written element by element from a tensor that is then only freed.

    Both are declared in the function with the same type. The source tensor replaces the temporary, and a
    buffer without other uses is removed. Assumption: the buffer's contents are not read afterwards.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if _is_elementwise(call):
                yield from _in_place(file, call)


@rule(Family.MEMORY, Side.KERNEL, _LESS_UB)
def separate_result(view: View) -> Iterator[Site]:
    """A tensor from a queue of the class is computed in place, element by element, and later freed.

    A buffer of the queue's size takes the result and replaces the tensor from there on.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if _is_elementwise(call) and call.values[0] == call.values[1]:
                yield from _separate(file, call)


def _is_elementwise(call: Call) -> bool:
    return _ELEMENTWISE.fullmatch(call.name) is not None and not call.is_method and len(call.values) in (3, 4)


def _in_place(file: File, call: Call) -> Iterator[Site]:
    temporary, source = (declaration_of(file.source, name, call.node) for name in call.values[:2])
    if temporary is None or source is None or temporary.type_text != source.type_text:
        return
    if not temporary.buffer or temporary.name == source.name:
        return
    buffer_edits = _buffer_removal(file.source, temporary)
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
    what = f"compute in place, drop {temporary.buffer}" if buffer_edits else "compute in place"
    choice = Choice(what, tuple(file.edit(edit) for edit in edits))
    yield Site(label, (choice,))


def _only_freed(source: Source, tensor: LocalDeclaration, call: Call, last_use: int) -> bool:
    """Return whether ``tensor`` is not used after ``call`` except for being freed after ``last_use``."""
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


def _buffer_removal(source: Source, temporary: LocalDeclaration) -> list[Edit]:
    """Return the edits that remove the temporary's TBuf; empty if it has other uses.

    It may only have its declaration, one InitBuffer and one Get.
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
        return []
    return [source.removal(inits[0].statement), source.removal(declared[0])]


def _separate(file: File, call: Call) -> Iterator[Site]:
    """Yield the site that gives the result of an instruction a separate buffer."""
    source, tensor = file.source, declaration_of(file.source, call.values[0], call.node)
    queue = _queue_of(source, tensor) if tensor is not None and tensor.declaration != call.statement else None
    if tensor is None or queue is None or call.statement is None:
        return
    later = [
        use
        for use in mentions(source, tensor.name, tensor.scope)
        if use.start_byte >= call.statement.end_byte and not _is_freed(source, use)
    ]
    kind = tensor.declaration.child_by_field_name("type")
    if kind is None or not later:
        return
    name = fresh_name(source, f"{tensor.name}Result")
    size = source.text_of(queue.init.arguments[-1])
    element = tensor.type_text.partition("<")[2]
    get = f"{source.text_of(kind)} {name} = {name}Buf.Get<{element}();"
    edits = [
        source.insertion_after(queue.statement, f"{queue.init.callee}({name}Buf, {size});"),
        source.insertion_after(queue.declaration, f"AscendC::TBuf<AscendC::TPosition::VECCALC> {name}Buf;"),
        source.insertion_before(call.statement, get),
        *(Edit(use.start_byte, use.end_byte, name) for use in (call.arguments[0], *later)),
    ]
    label = file.label(call.node.start_byte, source.text_of(call.node))
    choice = Choice(f"into {name}Buf", tuple(file.edit(edit) for edit in edits), forward=False)
    yield Site(label, (choice,))


@dataclass(frozen=True)
class _Queue:
    """A queue of the class: its declaration, and its only InitBuffer, a statement."""

    declaration: Node
    init: Call
    statement: Node


def _queue_of(source: Source, tensor: LocalDeclaration) -> _Queue | None:
    """Return the queue of a variable's tensor, if it is a member that is initialised once."""
    taken = re.fullmatch(r"(?:this->)?(\w+)\.DeQue<\w+>\(\)", source.bare(tensor.value))
    if taken is None or "Tensor<" not in tensor.type_text:
        return None
    inits = [
        call
        for call in source.calls
        if call.name == "InitBuffer" and call.values[:1] in ((taken[1],), (f"this->{taken[1]}",))
    ]
    fields = [node for node in source.nodes("field_declaration") if _declares(source, node, taken[1])]
    if len(inits) != 1 or inits[0].statement is None or len(fields) != 1:
        return None
    return _Queue(fields[0], inits[0], inits[0].statement)


def _is_freed(source: Source, use: Node) -> bool:
    call = argument_of(source, use)
    return call is not None and call.name == "FreeTensor"


def _declares(source: Source, declaration: Node, name: str) -> bool:
    declarator = declaration.child_by_field_name("declarator")
    return declarator is not None and source.text_of(declarator) == name


@rule(
    Family.MEMORY,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "operands in different bank groups: no cycles lost to conflicts"),
    inverse="bank_padding",
)
def bank_padding(view: View) -> Iterator[Site]:
    """``InitBuffer`` gives a queue or TBuf a number of bytes; 256 more shift every later buffer.

    Buffers of one vector instruction that begin at equal addresses modulo 512 bytes share bank groups.
    Assumption: UB has enough room.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if call.name == "InitBuffer" and call.is_method and len(call.arguments) in _INIT_ARITIES:
                yield from _padding_site(file, call)


@rule(
    Family.MEMORY,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "operands in other banks: fewer cycles lost to conflicts"),
    inverse="buffer_order",
    examples=(
        (
            "pipe.InitBuffer(a, 1, n);\npipe.InitBuffer(b, 1, n);\npipe.InitBuffer(c, n);",
            "pipe.InitBuffer(c, n);\npipe.InitBuffer(a, 1, n);\npipe.InitBuffer(b, 1, n);",
        ),
    ),
)
def buffer_order(view: View) -> Iterator[Site]:
    """Three or more ``InitBuffer`` calls of one pipe follow each other; UB is handed out in their order.

    Another order moves the buffers to other banks, and takes no more room. Assumption: the arguments have no
    side effects.
    """
    for file in view.kernel:
        sites = [_order_site(file, run) for run in _runs_of_inits(file.source)]
        yield from one_and_all(sites, f"runs of InitBuffer in {file.path}")


RULES: tuple[Rule, ...] = (in_place_compute, bank_padding, buffer_order)
REWINDS: tuple[Rule, ...] = (separate_result,)


def _runs_of_inits(source: Source) -> Iterator[list[Node]]:
    """Yield the statements of each run of ``InitBuffer`` calls of the same pipe, at least three."""
    inits = {
        call.statement.id: call
        for call in source.calls
        if call.name == "InitBuffer" and call.statement is not None and len(call.arguments) in _INIT_ARITIES
    }
    for block in source.nodes("compound_statement"):
        for callee, run in groupby(statements_of(block), lambda node: _callee_of(inits.get(node.id))):
            statements = list(run)
            if callee and len(statements) >= _FEWEST_IN_RUN:
                yield statements


def _callee_of(init: Call | None) -> str:
    return init.callee if init is not None else ""


def _order_site(file: File, statements: Sequence[Node]) -> Site:
    """Return the site at a run of statements: the last ones come first, or all in reverse."""
    count = len(statements)
    ahead = [count - 2, 0, count - 1]  # 0: all in reverse
    choices = []
    texts = [file.source.text_of(node) for node in statements]
    for moved in dict.fromkeys((*ahead, 2, 1)):
        order = [*range(count - moved, count), *range(count - moved)] if moved else range(count)[::-1]
        edits = tuple(
            file.replaced(node, texts[at])
            for node, at in zip(statements, order, strict=True)
            if file.source.text_of(node) != texts[at]
        )
        if edits:
            label = f"the last {moved} first" if moved else "in reverse"
            choices.append(Choice(label, edits, forward=moved in ahead))
    return Site(file.label(statements[0].start_byte, f"{count} InitBuffer"), tuple(choices))


def _padding_site(file: File, call: Call) -> Iterator[Site]:
    size = call.arguments[-1]
    label = file.label(call.node.start_byte, f"{call.values[0]} of {file.source.text_of(size)} bytes")
    padded = _padded_operand(file, size)
    if padded is not None:
        edit = file.edit(Edit(padded.end_byte, size.end_byte, ""))
        yield Site(label, (Choice("no padding", (edit,), forward=False),))
    elif size.type in _SIMPLE and not _is_loose(file, size):
        edit = file.edit(Edit(size.end_byte, size.end_byte, f" + {_PADDING_BYTES}"))
        yield Site(label, (Choice(f"{_PADDING_BYTES} bytes of padding", (edit,)),))


def _padded_operand(file: File, size: Node) -> Node | None:
    """Return n if the size is ``n + 256``."""
    operator, right = size.child_by_field_name("operator"), size.child_by_field_name("right")
    if size.type != "binary_expression" or operator is None or right is None:
        return None
    added = (file.source.text_of(operator), file.source.text_of(right))
    return size.child_by_field_name("left") if added == ("+", str(_PADDING_BYTES)) else None


def _is_loose(file: File, size: Node) -> bool:
    """Return whether an operator in the size has lower precedence than addition."""
    operator = size.child_by_field_name("operator")
    return operator is not None and file.source.text_of(operator) in _LOOSE

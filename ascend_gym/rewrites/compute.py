"""Rules about vector arithmetic: fewer instructions for the same values.

Calls are matched in their form for the first ``count`` elements; forms with masks and repeats are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

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
    rule,
)
from ascend_gym.rewrites.statements import (
    BARRIERS,
    WRITING_CALLS,
    CallPair,
    argument_of,
    call_pairs,
    is_dead_after,
    mentions,
)
from ascend_gym.rewrites.syntax import Call, Edit, Source

_FEWER_INSTRUCTIONS = Effect((Pipe.VECTOR,), "one vector instruction instead of two")
_CHEAPER_INSTRUCTION = Effect((Pipe.VECTOR,), "a cheaper vector instruction, and one buffer less to fill")
_NUMBER = r"([+-]?(?:\d+\.?\d*|\.\d+))f?"
_NAME = re.compile(r"[A-Za-z_]\w*")
_BUFFER = re.compile(r"([A-Za-z_]\w*)(?:\[.*\])?")
_CHANGES = (
    ("declaration", "declarator"),
    ("assignment_expression", "left"),
    ("update_expression", "argument"),
    ("pointer_expression", "argument"),
)
_PLAIN_NUMBER = re.compile(_NUMBER)
_INTEGER = re.compile(r"[+-]?\w*\d[\dxXuUlL']*")
_LITERAL = re.compile(rf"(?:\(\w+\))?{_NUMBER}|(?:static_cast<\w+>|[A-Za-z_]\w*)\({_NUMBER}\)")
_NEUTRAL = {"Adds": 0.0, "Muls": 1.0}
_SCALAR_FORMS = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_RELU_FORMS = {"Add": "AddRelu", "Sub": "SubRelu"}
_TWO_TYPES = frozenset({"Axpy", "MulAddDst"})
_HARMLESS_CALLS = WRITING_CALLS | BARRIERS | {"Axpy", "MulAddDst", "FusedMulAdd", "DataCopyPad"}


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def axpy(view: View) -> Iterator[Site]:
    """``Muls(t, a, s)`` is followed by ``Add(d, d, t)``, and t is not needed afterwards: d += a * s."""
    for pair in _pairs(view, "Muls", ("Add",)):
        target = _accumulates(pair)
        if target is not None and target != pair.first.values[0] and _temporary_dies(pair):
            arguments = [target, *_texts(pair.file, pair.first)[1:]]
            yield from _fusion(pair, "Axpy", arguments)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def mul_add_dst(view: View) -> Iterator[Site]:
    """``Mul(t, a, b)`` is followed by ``Add(d, d, t)``, and t is not needed afterwards: d += a * b."""
    for pair in _pairs(view, "Mul", ("Add",)):
        target = _accumulates(pair)
        if target is not None and target not in pair.first.values and _temporary_dies(pair):
            arguments = [target, *_texts(pair.file, pair.first)[1:]]
            yield from _fusion(pair, "MulAddDst", arguments)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def fused_mul_add(view: View) -> Iterator[Site]:
    """``Mul(d, d, a)`` is followed by ``Add(d, d, b)`` with b other than d: d = d * a + b."""
    for pair in _pairs(view, "Mul", ("Add",)):
        target = pair.first.values[0]
        factor, summand = _other_operand(pair.first, target), _other_operand(pair.second, target)
        if pair.second.values[0] == target and factor is not None and summand is not None:
            texts = _texts(pair.file, pair.first)
            arguments = [texts[0], texts[factor], _texts(pair.file, pair.second)[summand], texts[3]]
            yield from _fusion(pair, "FusedMulAdd", arguments)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def relu_fusion(view: View) -> Iterator[Site]:
    """``Add`` or ``Sub`` into t is followed by ``Relu(d, t)``, and t is d or not needed afterwards."""
    for name, fused in _RELU_FORMS.items():
        for pair in _pairs(view, name, ("Relu",)):
            temporary, target = pair.first.values[0], pair.second.values[0]
            reads_it = pair.second.values[1] == temporary
            if reads_it and (temporary == target or _temporary_dies(pair)):
                texts = [_texts(pair.file, pair.second)[0], *_texts(pair.file, pair.first)[1:]]
                yield from _fusion(pair, fused, texts)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def scalar_chain(view: View) -> Iterator[Site]:
    """Two ``Muls`` (or two ``Adds``) follow each other, the second in place on the first's result.

    The scalars are combined beforehand; rounding can differ in the last place.
    """
    for name, operator in (("Muls", "*"), ("Adds", "+")):
        for pair in _pairs(view, name, (name,)):
            target = pair.first.values[0]
            if pair.second.values[:2] == (target, target):
                texts = _texts(pair.file, pair.first)
                texts[2] = f"({texts[2]}) {operator} ({_texts(pair.file, pair.second)[2]})"
                yield from _fusion(pair, name, texts)


@rule(Family.COMPUTE, Side.KERNEL, Effect((Pipe.VECTOR,), "an instruction less"))
def identity_removal(view: View) -> Iterator[Site]:
    """``Adds(x, x, 0)`` or ``Muls(x, x, 1)`` leaves x as it is."""
    for file in view.kernel:
        for call in file.source.calls:
            if call.name not in _NEUTRAL or not _is_counted(call, 4) or call.statement is None:
                continue
            if call.values[0] == call.values[1] and _literal(call.values[2]) == _NEUTRAL[call.name]:
                edit = file.edit(file.source.removal(call.statement))
                label = file.label(call.node.start_byte, file.source.text_of(call.node))
                yield Site(label, (Choice("remove", (edit,)),))


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION)
def scalar_operand(view: View) -> Iterator[Site]:
    """``Duplicate(c, s)`` is followed by arithmetic with second operand c, and c is not needed afterwards.

    Add, Mul, Max and Min take the scalar itself; Div becomes a multiplication by its reciprocal, which can
    differ in the last place, and needs a scalar whose type can be seen.
    """
    for pair in _pairs(view, "Duplicate", (*_SCALAR_FORMS, "Div"), first_arity=3):
        constant = pair.first.values[0]
        second = pair.second
        if second.values[2] != constant or second.values[1] == constant or not _temporary_dies(pair):
            continue
        scalar, texts = _texts(pair.file, pair.first)[1], _texts(pair.file, second)
        replaced = _reciprocal_of(scalar, pair) if second.name == "Div" else scalar
        if replaced is not None:
            texts[2] = replaced
            yield from _fusion(pair, _SCALAR_FORMS.get(second.name, "Muls"), texts)


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION)
def reciprocal(view: View) -> Iterator[Site]:
    """``Duplicate(c, 1)`` is followed by ``Div(d, c, x)``, and c is d or not needed afterwards: d = 1 / x.

    Reciprocal is less accurate than Div.
    """
    for pair in _pairs(view, "Duplicate", ("Div",), first_arity=3):
        constant, values = pair.first.values[0], pair.second.values
        is_one = _literal(pair.first.values[1]) == 1.0
        if is_one and values[1] == constant != values[2] and (values[0] == constant or _temporary_dies(pair)):
            texts = _texts(pair.file, pair.second)
            yield from _fusion(pair, "Reciprocal", [texts[0], texts[2], texts[3]])


@rule(
    Family.COMPUTE, Side.KERNEL, Effect((Pipe.VECTOR,), "an invariant buffer filled once, not in each pass")
)
def hoisted_duplicate(view: View) -> Iterator[Site]:
    """The body of a for loop fills a buffer by ``Duplicate`` with arguments that the loop does not change.

    Nothing else in the loop may write that buffer, or read it before, or declare or change what is used; nor
    may the loop call functions that could.
    """
    for file in view.kernel:
        for call in file.source.calls:
            loop = _enclosing_loop(call)
            if loop is not None and _is_counted(call, 3) and _is_invariant(file.source, call, loop):
                yield _hoist(file, call, loop)


RULES: tuple[Rule, ...] = (
    axpy,
    mul_add_dst,
    fused_mul_add,
    relu_fusion,
    scalar_chain,
    identity_removal,
    scalar_operand,
    reciprocal,
    hoisted_duplicate,
)
REWINDS: tuple[Rule, ...] = ()


def _literal(bare: str) -> float | None:
    """Return the number in ``2``, ``2.0f``, ``(T)2``, ``T(2)`` or ``static_cast<T>(2)``; else ``None``."""
    match = _LITERAL.fullmatch(bare)
    return float(match[1] or match[2]) if match else None


def _is_counted(call: Call, arity: int) -> bool:
    return (
        not call.is_method and len(call.arguments) == arity and call.arguments[-1].type != "initializer_list"
    )


def _pairs(view: View, first: str, seconds: tuple[str, ...], *, first_arity: int = 4) -> Iterator[CallPair]:
    """Yield pairs of counted calls of these names that cover the same number of elements."""
    for file in view.kernel:
        for pair in call_pairs(file):
            if pair.first.name != first or pair.second.name not in seconds:
                continue
            second_arity = 3 if pair.second.name == "Relu" else 4
            counted = _is_counted(pair.first, first_arity) and _is_counted(pair.second, second_arity)
            if counted and pair.first.values[-1] == pair.second.values[-1]:
                yield pair


def _texts(file: File, call: Call) -> list[str]:
    return [file.source.text_of(argument) for argument in call.arguments]


def _fusion(pair: CallPair, name: str, arguments: list[str]) -> Iterator[Site]:
    """Yield the site that puts one call in the place of both, with the element type that they name."""
    element = _element_type(pair)
    if element is None:
        return
    types = ", ".join([element] * (2 if name in _TWO_TYPES else 1))
    template = f"<{types}>" if element else ""
    text = f"{pair.second.named(name)}{template}({', '.join(arguments)})"
    edits = tuple(pair.file.edit(edit) for edit in pair.fused(text))
    yield Site(pair.label, (Choice(text, edits),))


def _element_type(pair: CallPair) -> str | None:
    """Return the element type that the calls name: empty if none does, ``None`` if it is not clear."""
    named = {call.template[1:-1].strip() for call in (pair.first, pair.second) if call.template}
    if len(named) > 1 or any("," in element for element in named):
        return None
    return named.pop() if named else ""


def _reciprocal_of(scalar: str, pair: CallPair) -> str | None:
    """Return 1 / ``scalar`` in the element type; ``None`` if that can only be guessed from an integer."""
    element = _element_type(pair)
    if not element and _INTEGER.fullmatch(scalar):
        return None
    divisor = scalar if _PLAIN_NUMBER.fullmatch(scalar) else f"static_cast<float>({scalar})"
    return f"static_cast<{element or f'decltype({scalar})'}>(1.0f / {divisor})"


def _other_operand(call: Call, name: str) -> int | None:
    """Return the index of the operand beside ``name`` of a binary call; ``None`` if there is not just one."""
    if call.values[1:3].count(name) != 1:
        return None
    return 2 if call.values[1] == name else 1


def _accumulates(pair: CallPair) -> str | None:
    """Return d when the second call adds the first's result t to d in place."""
    target = pair.second.values[0]
    operands = set(pair.second.values[1:3])
    return target if operands == {target, pair.first.values[0]} else None


def _temporary_dies(pair: CallPair) -> bool:
    return is_dead_after(pair.file, pair.first.values[0], pair.second)


def _enclosing_loop(call: Call) -> Node | None:
    """Return the for statement, one of a list of statements, whose body has the call as a statement."""
    block = call.statement.parent if call.name == "Duplicate" and call.statement is not None else None
    loop = block.parent if block is not None and block.type == "compound_statement" else None
    if loop is None or loop.type != "for_statement" or loop.parent is None:
        return None
    return loop if loop.parent.type == "compound_statement" else None


def _is_invariant(source: Source, call: Call, loop: Node) -> bool:
    buffer = _BUFFER.fullmatch(call.values[0])
    used = {name for value in call.values for name in _NAME.findall(value)}
    if buffer is None or used & _changed_names(source, loop):
        return False
    others = [
        other
        for other in source.calls
        if _is_inside(loop, other.node) and not _is_inside(call.node, other.node)
    ]
    return all(_keeps(other, buffer[1], used) for other in others) and all(
        argument_of(source, mention) is not None and mention.start_byte >= call.node.start_byte
        for mention in mentions(source, buffer[1], loop)
    )


def _keeps(other: Call, buffer: str, used: set[str]) -> bool:
    """Say whether a call surely leaves the buffer, and the values that it is filled with, as they are."""
    named = {name for value in other.values for name in _NAME.findall(value)}
    if other.is_method:
        return not named & used and _NAME.findall(other.callee)[0] != buffer
    if other.name.endswith("_cast"):
        return True
    written = _NAME.findall(other.values[0].partition("[")[0]) if other.values else []
    return other.name in _HARMLESS_CALLS and buffer not in written


def _changed_names(source: Source, loop: Node) -> set[str]:
    """Return the names that a loop declares, assigns to, or takes the address of."""
    changed: set[str] = set()
    for kind, field in _CHANGES:
        for node in source.nodes(kind):
            if _is_inside(loop, node):
                for target in node.children_by_field_name(field):
                    changed.update(_NAME.findall(source.text_of(target)))
    return changed


def _is_inside(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _hoist(file: File, call: Call, loop: Node) -> Site:
    statement = call.statement if call.statement is not None else call.node
    moved = f"{file.source.text_of(statement)}\n{file.source.indent_of(loop)}"
    edits = (Edit(loop.start_byte, loop.start_byte, moved), file.source.removal(statement))
    label = file.label(call.node.start_byte, file.source.text_of(call.node))
    return Site(label, (Choice("move before the loop", tuple(file.edit(edit) for edit in edits)),))

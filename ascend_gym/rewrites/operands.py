"""Scalars in vector arithmetic: scalar operands, cheaper instructions, and removal of neutral elements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import CallPair, free_tensors
from ascend_gym.rewrites.syntax import Call
from ascend_gym.rewrites.vector import (
    NUMBER,
    element_of,
    element_type,
    fusion,
    is_name,
    literal,
    number_of,
    pairs,
    site_of,
    template_of,
    temporary_dies,
    texts_of,
    vector_calls,
    way_back,
)

_PLAIN_NUMBER = re.compile(NUMBER)
_INTEGER = re.compile(r"[+-]?\w*\d[\dxXuUlL']*")
_NEUTRAL = {"Adds": 0.0, "Muls": 1.0}
_OPERATORS = {"Muls": "*", "Adds": "+"}
_SCALAR_FORMS = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_VECTOR_FORMS = {scalar_form: name for name, scalar_form in _SCALAR_FORMS.items()}
_FEWER_INSTRUCTIONS = Effect((Pipe.VECTOR,), "one vector instruction instead of two")
_ONE_LESS = Effect((Pipe.VECTOR,), "an instruction less")
_CHEAPER_INSTRUCTION = Effect((Pipe.VECTOR,), "a cheaper vector instruction, and one buffer less to fill")


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS, inverse="scalar_chain_split")
def scalar_chain(view: View) -> Iterator[Site]:
    """Two ``Muls`` (or two ``Adds``) follow each other, the second in place on the first's result.

    The scalars are combined first; rounding can differ in the last place.
    """
    for name, operator in _OPERATORS.items():
        for pair in pairs(view, name, (name,)):
            target = pair.first.values[0]
            if pair.second.values[:2] == (target, target):
                texts = texts_of(pair.file, pair.first)
                texts[2] = f"({texts[2]}) {operator} ({texts_of(pair.file, pair.second)[2]})"
                yield from fusion(pair, name, texts)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def scalar_chain_split(view: View) -> Iterator[Site]:
    """The scalar of ``Muls`` is a product, or that of ``Adds`` a sum. Undoes ``scalar_chain``."""
    for file in view.kernel:
        for call in vector_calls(file):
            operator = _OPERATORS.get(call.name)
            scalar = call.arguments[2] if operator is not None else None
            if scalar is None or scalar.type != "binary_expression":
                continue
            parts = [scalar.child_by_field_name(field) for field in ("left", "right")]
            if f"({operator})" != f"({file.source.text_of(scalar.children[1])})" or None in parts:
                continue
            d, x, _, count = texts_of(file, call)
            first, second = (_unwrapped(file.source.text_of(part)) for part in parts if part is not None)
            name = f"{call.callee}{call.template}"
            statements = (f"{name}({d}, {x}, {first}, {count});", f"{name}({d}, {d}, {second}, {count});")
            yield site_of(file, call, way_back(file, call, "a scalar at a time", *statements))


@rule(Family.COMPUTE, Side.KERNEL, _ONE_LESS, inverse="identity_insertion")
def identity_removal(view: View) -> Iterator[Site]:
    """``Adds(x, x, 0)`` or ``Muls(x, x, 1)`` has no effect."""
    for file in view.kernel:
        for call in vector_calls(file):
            if call.name not in _NEUTRAL or call.statement is None:
                continue
            if call.values[0] == call.values[1] and literal(call.values[2]) == _NEUTRAL[call.name]:
                edit = file.edit(file.source.removal(call.statement))
                yield site_of(file, call, Choice("remove", (edit,)))


@rule(Family.COMPUTE, Side.KERNEL, _ONE_LESS)
def identity_insertion(view: View) -> Iterator[Site]:
    """A vector instruction writes a tensor of known element type.

    Undoes ``identity_removal``: zero is added to the result.
    """
    for file in view.kernel:
        for call in vector_calls(file):
            target, count = call.values[0], texts_of(file, call)[-1]
            element = element_of(file.source, target, call.node) if is_name(target) else ""
            if element and call.statement is not None:
                text = f"{call.named('Adds')}({target}, {target}, static_cast<{element}>(0), {count});"
                edit = file.edit(file.source.insertion_after(call.statement, text))
                yield site_of(file, call, Choice("add zero to the result", (edit,), forward=False))


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION, inverse="broadcast_operand")
def scalar_operand(view: View) -> Iterator[Site]:
    """``Duplicate(c, s)`` is followed by arithmetic with operand c, and c is its target or not used later.

    Add, Mul, Max and Min take the scalar directly. Div by c becomes a multiplication by its reciprocal, which
    can differ in the last place and needs a scalar of known type; then c may be used later.
    """
    for pair in pairs(view, "Duplicate", (*_SCALAR_FORMS, "Div")):
        scalar, texts = texts_of(pair.file, pair.first)[1], texts_of(pair.file, pair.second)
        operand = _operand_beside(pair)
        if operand is None:
            continue
        replaced = _reciprocal_of(scalar, pair) if pair.second.name == "Div" else scalar
        is_done = pair.second.values[0] == pair.first.values[0] or temporary_dies(pair)
        if replaced is None or not (is_done or pair.second.name == "Div"):
            continue
        name = _SCALAR_FORMS.get(pair.second.name, "Muls")
        yield from _fused_or_second(pair, name, [texts[0], texts[operand], replaced, texts[3]], is_done)


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION)
def broadcast_operand(view: View) -> Iterator[Site]:
    """``Adds``, ``Muls``, ``Maxs`` or ``Mins`` from one tensor to another, or while another tensor is unused.

    Undoes ``scalar_operand``: the scalar fills that tensor; a factor can also become a divisor.
    """
    for file in view.kernel:
        for call in vector_calls(file):
            choices = list(_broadcasts(file, call)) if call.name in _VECTOR_FORMS else []
            if choices:
                yield site_of(file, call, *choices)


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION, inverse="reciprocal_split")
def reciprocal(view: View) -> Iterator[Site]:
    """``Duplicate(c, 1)`` is followed by ``Div(d, c, x)``: d = 1 / x.

    Filling c is removed too if c is d or not used afterwards. Reciprocal is less accurate than Div.
    """
    for pair in pairs(view, "Duplicate", ("Div",)):
        constant, values = pair.first.values[0], pair.second.values
        if number_of(view, pair.first.values[1]) == 1.0 and values[1] == constant != values[2]:
            texts = texts_of(pair.file, pair.second)
            is_done = values[0] == constant or temporary_dies(pair)
            yield from _fused_or_second(pair, "Reciprocal", [texts[0], texts[2], texts[3]], is_done)


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION)
def reciprocal_split(view: View) -> Iterator[Site]:
    """``Reciprocal(d, x)`` with another d of known element type. Undoes ``reciprocal``."""
    for file in view.kernel:
        for call in vector_calls(file):
            if call.name != "Reciprocal" or call.values[0] == call.values[1]:
                continue
            d, x, count = texts_of(file, call)
            element = call.template.strip("<>") or element_of(file.source, call.values[0], call.node)
            if element:
                parts = (
                    f"{call.named('Duplicate')}{call.template}({d}, static_cast<{element}>(1), {count});",
                    f"{call.named('Div')}{call.template}({d}, {d}, {x}, {count});",
                )
                yield site_of(file, call, way_back(file, call, "divide one by it", *parts))


@rule(
    Family.COMPUTE,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "one multiplication instead of logarithm, exponential and special cases"),
    inverse="square_as_power",
    examples=(
        (
            "LocalTensor<float> y = q.AllocTensor<float>();\nPower(y, x, 2.0f, n);",
            "LocalTensor<float> y = q.AllocTensor<float>();\nMul(y, x, x, n);",
        ),
    ),
)
def square(view: View) -> Iterator[Site]:
    """``Power(d, x, 2)`` with a number of elements: d = x * x."""
    for file in view.kernel:
        for call in file.source.calls:
            if call.name != "Power" or call.is_method or len(call.values) != 4 or call.statement is None:
                continue
            if number_of(view, call.values[2]) == 2.0:
                d, x, _, count = texts_of(file, call)
                text = f"{call.named('Mul')}({d}, {x}, {x}, {count})"
                edit = file.replaced(call.node, text)
                yield site_of(file, call, Choice(text, (edit,)))


@rule(Family.COMPUTE, Side.KERNEL, _CHEAPER_INSTRUCTION)
def square_as_power(view: View) -> Iterator[Site]:
    """``Mul(d, x, x)`` with a known element type. Undoes ``square``."""
    for file in view.kernel:
        for call in vector_calls(file):
            if call.name != "Mul" or call.values[1] != call.values[2]:
                continue
            element = element_of(file.source, call.values[0], call.node)
            if element:
                d, x, _, count = texts_of(file, call)
                two = "2.0f" if element == "float" else f"static_cast<{element}>(2)"
                text = f"{call.named('Power')}({d}, {x}, {two}, {count});"
                yield site_of(file, call, way_back(file, call, "second power", text))


RULES: tuple[Rule, ...] = (scalar_chain, identity_removal, scalar_operand, reciprocal, square)
REWINDS: tuple[Rule, ...] = (
    scalar_chain_split,
    identity_insertion,
    broadcast_operand,
    reciprocal_split,
    square_as_power,
)


def _unwrapped(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _operand_beside(pair: CallPair) -> int | None:
    """Return the index of the second call's other operand; ``None`` if the constant is not exactly one."""
    constant, values = pair.first.values[0], pair.second.values
    if values[1:3].count(constant) != 1 or (pair.second.name == "Div" and values[2] != constant):
        return None
    return 1 if values[2] == constant else 2


def _fused_or_second(pair: CallPair, name: str, arguments: list[str], is_done: bool) -> Iterator[Site]:
    """Yield the site that replaces both calls by one, or only the second if the first is still needed.

    Args:
        pair: the two calls.
        name: name of the new call.
        arguments: its arguments.
        is_done: whether the first call can be removed.
    """
    if is_done:
        yield from fusion(pair, name, arguments)
        return
    element = element_type(pair)
    if element is not None:
        node = pair.second.node
        text = f"{pair.second.named(name)}{template_of(name, element)}({', '.join(arguments)})"
        edit = pair.file.replaced(node, text)
        yield Site(pair.label, (Choice(f"{text}, {pair.first.values[0]} stays", (edit,)),))


def _reciprocal_of(scalar: str, pair: CallPair) -> str | None:
    """Return 1 / ``scalar`` in the element type; ``None`` if an integer leaves the type unclear."""
    element = element_type(pair)
    if not element and _INTEGER.fullmatch(scalar):
        return None
    divisor = scalar if _PLAIN_NUMBER.fullmatch(scalar) else f"static_cast<float>({scalar})"
    return f"static_cast<{element or f'decltype({scalar})'}>(1.0f / {divisor})"


def _broadcasts(file: File, call: Call) -> Iterator[Choice]:
    """Yield the choices that fill a tensor with the scalar of a call: its target, or an unused one."""
    d, x, scalar, count = texts_of(file, call)
    element = element_of(file.source, call.values[0], call.node)
    if not element:
        return
    spare = [d] if is_name(d) and d not in re.findall(r"\w+", call.values[1]) else []
    spare += [
        name for name in free_tensors(file, call) if element_of(file.source, name, call.node) == element
    ]
    duplicate, vector = call.named("Duplicate"), call.named(_VECTOR_FORMS[call.name])
    for name in spare:
        fill = f"{duplicate}{call.template}({name}, {scalar}, {count});"
        use = f"{vector}{call.template}({d}, {x}, {name}, {count});"
        yield way_back(file, call, f"fill {name} with the scalar", fill, use)
        if call.name == "Muls":
            inverse = f"static_cast<{element}>(1.0f / static_cast<float>({scalar}))"
            fill = f"{duplicate}{call.template}({name}, {inverse}, {count});"
            use = f"{call.named('Div')}{call.template}({d}, {x}, {name}, {count});"
            yield way_back(file, call, f"fill {name} with a divisor", fill, use)

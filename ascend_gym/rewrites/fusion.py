"""Vector instructions that do the work of two, and the inverse rewrites."""

from __future__ import annotations

from collections.abc import Iterator

from ascend_gym.rewrites.rule import Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import CallPair, free_tensors
from ascend_gym.rewrites.syntax import Call
from ascend_gym.rewrites.vector import (
    element_of,
    fusion,
    pairs,
    site_of,
    temporary_dies,
    texts_of,
    vector_calls,
    way_back,
)

_FEWER_INSTRUCTIONS = Effect((Pipe.VECTOR,), "one vector instruction instead of two")
_RELU_FORMS = {"Add": "AddRelu", "Sub": "SubRelu"}


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS, inverse="axpy_split")
def axpy(view: View) -> Iterator[Site]:
    """``Muls(t, a, s)`` is followed by ``Add(d, d, t)``, and t is not used afterwards: d += a * s."""
    for pair in pairs(view, "Muls", ("Add",)):
        target = _accumulates(pair)
        if target is not None and target != pair.first.values[0] and temporary_dies(pair):
            yield from fusion(pair, "Axpy", [target, *texts_of(pair.file, pair.first)[1:]])


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def axpy_split(view: View) -> Iterator[Site]:
    """``Axpy(d, a, s)`` while another tensor of that type is unused.

    Undoes ``axpy``. Assumption: that tensor is long enough.
    """
    yield from _splits_with_temporary(view, "Axpy", "Muls")


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS, inverse="mul_add_dst_split")
def mul_add_dst(view: View) -> Iterator[Site]:
    """``Mul(t, a, b)`` is followed by ``Add(d, d, t)``, and t is not used afterwards: d += a * b."""
    for pair in pairs(view, "Mul", ("Add",)):
        target = _accumulates(pair)
        if target is not None and target not in pair.first.values and temporary_dies(pair):
            yield from fusion(pair, "MulAddDst", [target, *texts_of(pair.file, pair.first)[1:]])


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def mul_add_dst_split(view: View) -> Iterator[Site]:
    """``MulAddDst(d, a, b)`` while another tensor of that type is unused.

    Undoes ``mul_add_dst``. Assumption: that tensor is long enough.
    """
    yield from _splits_with_temporary(view, "MulAddDst", "Mul")


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS, inverse="fused_mul_add_split")
def fused_mul_add(view: View) -> Iterator[Site]:
    """``Mul(d, d, a)`` is followed by ``Add(d, d, b)`` with b other than d: d = d * a + b."""
    for pair in pairs(view, "Mul", ("Add",)):
        target = pair.first.values[0]
        factor, summand = _other_operand(pair.first, target), _other_operand(pair.second, target)
        if pair.second.values[0] == target and factor is not None and summand is not None:
            texts = texts_of(pair.file, pair.first)
            arguments = [texts[0], texts[factor], texts_of(pair.file, pair.second)[summand], texts[3]]
            yield from fusion(pair, "FusedMulAdd", arguments)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def fused_mul_add_split(view: View) -> Iterator[Site]:
    """``FusedMulAdd(d, a, b)`` with b other than d. Undoes ``fused_mul_add``."""
    for file, call in _calls(view, "FusedMulAdd"):
        d, a, b, count = texts_of(file, call)
        if call.values[0] != call.values[2]:
            parts = (_statement(call, "Mul", d, d, a, count), _statement(call, "Add", d, d, b, count))
            yield site_of(file, call, way_back(file, call, "Mul and Add", *parts))


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS, inverse="relu_split")
def relu_fusion(view: View) -> Iterator[Site]:
    """``Add`` or ``Sub`` into t is followed by ``Relu(d, t)``, and t is d or not used afterwards."""
    for name, fused in _RELU_FORMS.items():
        for pair in pairs(view, name, ("Relu",)):
            temporary, target = pair.first.values[0], pair.second.values[0]
            reads_it = pair.second.values[1] == temporary
            if reads_it and (temporary == target or temporary_dies(pair)):
                texts = [texts_of(pair.file, pair.second)[0], *texts_of(pair.file, pair.first)[1:]]
                yield from fusion(pair, fused, texts)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def relu_split(view: View) -> Iterator[Site]:
    """``AddRelu`` or ``SubRelu``. Undoes ``relu_fusion``."""
    for name, fused in _RELU_FORMS.items():
        for file, call in _calls(view, fused):
            d, a, b, count = texts_of(file, call)
            parts = (_statement(call, name, d, a, b, count), _statement(call, "Relu", d, d, count))
            yield site_of(file, call, way_back(file, call, f"{name} and Relu", *parts))


@rule(
    Family.COMPUTE,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "one cheap vector instruction instead of two, one of them expensive"),
    inverse="rsqrt_split",
    examples=(("Sqrt(y, x, n);\nReciprocal(y, y, n);", "Rsqrt(y, x, n);"),),
)
def rsqrt(view: View) -> Iterator[Site]:
    """``Sqrt(t, x)`` is followed by ``Reciprocal(d, t)``, and t is d or not used afterwards.

    Rsqrt is less accurate than Sqrt.
    """
    for pair in pairs(view, "Sqrt", ("Reciprocal",)):
        temporary, target = pair.first.values[0], pair.second.values[0]
        reads_it = pair.second.values[1] == temporary
        if reads_it and (temporary == target or temporary_dies(pair)):
            texts = [texts_of(pair.file, pair.second)[0], *texts_of(pair.file, pair.first)[1:]]
            yield from fusion(pair, "Rsqrt", texts)


@rule(Family.COMPUTE, Side.KERNEL, _FEWER_INSTRUCTIONS)
def rsqrt_split(view: View) -> Iterator[Site]:
    """``Rsqrt(d, x)``, which becomes ``Sqrt`` and ``Reciprocal``. Undoes ``rsqrt``."""
    for file, call in _calls(view, "Rsqrt"):
        d, x, count = texts_of(file, call)
        parts = (_statement(call, "Sqrt", d, x, count), _statement(call, "Reciprocal", d, d, count))
        yield site_of(file, call, way_back(file, call, "Sqrt and Reciprocal", *parts))


RULES: tuple[Rule, ...] = (axpy, mul_add_dst, fused_mul_add, relu_fusion, rsqrt)
REWINDS: tuple[Rule, ...] = (axpy_split, mul_add_dst_split, fused_mul_add_split, relu_split, rsqrt_split)


def _calls(view: View, name: str) -> Iterator[tuple[File, Call]]:
    for file in view.kernel:
        yield from ((file, call) for call in vector_calls(file) if call.name == name)


def _statement(call: Call, name: str, *arguments: str) -> str:
    """Return a call on the tensors of another call, with the element type that it names."""
    element = call.template.strip("<> ").partition(",")[0]
    template = f"<{element}>" if element else ""
    return f"{call.named(name)}{template}({', '.join(arguments)});"


def _splits_with_temporary(view: View, fused: str, first: str) -> Iterator[Site]:
    """Yield the sites that compute the product of a multiply-add into a separate tensor."""
    for file, call in _calls(view, fused):
        d, *factors, count = texts_of(file, call)
        element = element_of(file.source, call.values[0], call.node)
        choices = [
            way_back(
                file,
                call,
                f"{first} into {name} and Add",
                _statement(call, first, name, *factors, count),
                _statement(call, "Add", d, d, name, count),
            )
            for name in free_tensors(file, call)
            if element and element_of(file.source, name, call.node) == element
        ]
        if choices:
            yield site_of(file, call, *choices)


def _other_operand(call: Call, name: str) -> int | None:
    """Return the index of a binary call's operand other than ``name``; ``None`` unless exactly one is."""
    if call.values[1:3].count(name) != 1:
        return None
    return 2 if call.values[1] == name else 1


def _accumulates(pair: CallPair) -> str | None:
    """Return d if the second call adds the first's result t to d in place."""
    target = pair.second.values[0]
    operands = set(pair.second.values[1:3])
    return target if operands == {target, pair.first.values[0]} else None

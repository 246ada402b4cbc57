"""Detours over a wider type: one instruction on half in place of two casts around it; and the inverse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_gym.core.calls import known_calls
from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.statements import CallPair, call_pairs, free_tensors, is_dead_after
from ascend_gym.rewrites.syntax import Call, Edit
from ascend_gym.rewrites.vector import (
    element_of,
    is_name,
    is_vector_call,
    site_of,
    texts_of,
    vector_calls,
    way_back,
)

_NEVER_HALF = re.compile(r"|float|bool|u?int\d*(?:_t)?|bfloat16_t")
_SCALARS = frozenset({"Adds", "Maxs", "Mins", "Muls"})
_ON_HALF = _SCALARS | {
    name for call in known_calls() if call.form == "unary" and "half" in call.types for name in call.names
}
_NARROW = Effect((Pipe.VECTOR,), "no casts, and twice as many elements in each cycle")


@rule(Family.COMPUTE, Side.KERNEL, _NARROW, inverse="widening")
def narrowing(view: View) -> Iterator[Site]:
    """A tensor is cast to a float temporary, one instruction works on it, and the result is cast back.

    The temporaries are not used afterwards. The instruction then works on half, which can be less exact.
    """
    for file in view.kernel:
        pairs = {pair.first.node.id: pair for pair in call_pairs(file)}
        for first in pairs.values():
            second = pairs.get(first.second.node.id)
            if second is not None and _is_detour(file, first.first, first.second, second.second):
                yield _narrowed(file, first, second)


@rule(Family.COMPUTE, Side.KERNEL, _NARROW)
def widening(view: View) -> Iterator[Site]:
    """An instruction works on half, or on a template type, while a float tensor is unused.

    Undoes ``narrowing``. Assumption: that tensor is long enough.
    """
    for file in view.kernel:
        for call in vector_calls(file):
            if call.name not in _ON_HALF or not _narrow_type(file, call.values[0], call.values[1], call):
                continue
            spare = [name for name in free_tensors(file, call) if _element(file, name, call) == "float"]
            if spare:
                yield site_of(file, call, _widened(file, call, spare[0]))


RULES: tuple[Rule, ...] = (narrowing,)
REWINDS: tuple[Rule, ...] = (widening,)


def _element(file: File, name: str, call: Call) -> str:
    return element_of(file.source, name, call.node) if is_name(name) else ""


def _narrow_type(file: File, target: str, origin: str, call: Call) -> str:
    """Return the common element type of two tensors if it can be half; else an empty string.

    Args:
        file: source file.
        target: name of the first tensor.
        origin: name of the second tensor.
        call: place of their use.
    """
    elements = {_element(file, name, call) for name in (target, origin)}
    element = elements.pop() if len(elements) == 1 else ""
    return "" if _NEVER_HALF.fullmatch(element) else element


def _is_detour(file: File, wide: Call, work: Call, narrow: Call) -> bool:
    if (wide.name, narrow.name) != ("Cast", "Cast") or work.name not in _ON_HALF:
        return False
    if not all(is_vector_call(call) for call in (wide, work, narrow)):
        return False
    chained = work.values[1] == wide.values[0] and narrow.values[1] == work.values[0]
    equal = len({call.values[-1] for call in (wide, work, narrow)}) == 1
    typed = all(_element(file, call.values[0], call) == "float" for call in (wide, work))
    if not (chained and equal and typed and _narrow_type(file, narrow.values[0], wide.values[1], narrow)):
        return False
    return all(is_dead_after(file, call.values[0], narrow) for call in (wide, work))


def _narrowed(file: File, first: CallPair, second: CallPair) -> Site:
    source, work = file.source, first.second
    texts = texts_of(file, work)
    target, origin = texts_of(file, second.second)[0], texts_of(file, first.first)[1]
    element = _element(file, target, second.second)
    scalar = [f"static_cast<{element}>({texts[2]})"] if work.name in _SCALARS else []
    text = f"{work.callee}({', '.join([target, origin, *scalar, texts[-1]])})"
    gone = [first.first.statement, *first.between, work.statement, *second.between]
    last = second.second.node
    edits = [source.removal(node) for node in gone if node is not None]
    edits.append(Edit(last.start_byte, last.end_byte, text))
    label = file.label(first.first.node.start_byte, f"Cast, {work.name}, Cast")
    return Site(label, (Choice(text, tuple(file.edit(edit) for edit in edits)),))


def _widened(file: File, call: Call, temporary: str) -> Choice:
    texts = texts_of(file, call)
    cast, mode = call.named("Cast"), f"{call.callee.removesuffix(call.name)}RoundMode::"
    scalar = [f"static_cast<float>({texts[2]})"] if call.name in _SCALARS else []
    work = ", ".join([temporary, temporary, *scalar, texts[-1]])
    return way_back(
        file,
        call,
        f"in float, by {temporary}",
        f"{cast}({temporary}, {texts[1]}, {mode}CAST_NONE, {texts[-1]});",
        f"{call.callee}({work});",
        f"{cast}({texts[0]}, {temporary}, {mode}CAST_RINT, {texts[-1]});",
    )

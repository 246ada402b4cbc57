"""Binds the arguments of an aclnn call to the parameters and attributes of an operator definition.

Generated aclnn functions take inputs, attributes and outputs in the order of the definition. Hand-written
ones omit some, and pass scalars and arrays in place of small tensors. Both are aligned in
order, with as few omissions as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.suite.cann_opdef import AttributeDef, OperatorDef, ParameterDef
from npu_daemon.importer.record import CallArgument

Slot = ParameterDef | AttributeDef

_CONSTANT_KINDS = frozenset({"scalar", "scalars", "ints", "floats", "bools", "int", "float", "bool"})
_ATTRIBUTE_KINDS = {
    "Int": {"int", "bool"},
    "Bool": {"bool", "int"},
    "Float": {"float", "int", "scalar"},
    "String": {"string"},
    "ListInt": {"ints"},
    "ListFloat": {"floats"},
    "ListBool": {"bools"},
}
_DROPPED_KINDS = frozenset({*_CONSTANT_KINDS, "string", "absent"})
_DROPPED = 100  # as bad as so many slots that are omitted
_IMPOSSIBLE = 1 << 20


@dataclass(frozen=True)
class Binding:
    """Positions of arguments: one per input and output, ``None`` for an omitted one; attributes by name."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    attributes: dict[str, int]


def bind(
    definition: OperatorDef, arguments: Sequence[CallArgument], function: str, *, may_drop: bool = False
) -> Binding:
    """Align ``arguments`` (without workspace size and executor) with the definition.

    Args:
        definition: of the operator.
        arguments: of the call.
        function: that is called.
        may_drop: whether numbers and strings that the definition has no place for are left out: what a
            hand-written function deals with before it starts the operator.

    Raises:
        OperatorFormatError: they do not fit; the message shows both.
    """
    slots = _slots(definition)
    chosen = _align(slots, tuple(arguments), may_drop)
    if chosen is None:
        wanted = ", ".join(slot.name for slot in slots)
        given = ", ".join(argument.kind for argument in arguments)
        raise OperatorFormatError(
            f"{function}({given}) does not fit the definition of {definition.op_type}({wanted})"
        )
    by_name = {(type(slot), slot.name): position for slot, position in zip(slots, chosen, strict=True)}
    return Binding(
        inputs=tuple(_present(by_name[(ParameterDef, each.name)], arguments) for each in definition.inputs),
        outputs=tuple(_output(by_name, slots, chosen, each) for each in definition.outputs),
        attributes={
            attribute.name: position
            for attribute in definition.attributes
            if (position := _present(by_name[(AttributeDef, attribute.name)], arguments)) is not None
        },
    )


def _slots(definition: OperatorDef) -> tuple[Slot, ...]:
    """Return the parameters of an aclnn call; an output named like an input is passed once, as that input."""
    taken = {parameter.name for parameter in definition.inputs}
    fresh = tuple(parameter for parameter in definition.outputs if parameter.name not in taken)
    return (*definition.inputs, *definition.attributes, *fresh)


def _output(
    by_name: dict[tuple[type, str], int | None],
    slots: Sequence[Slot],
    chosen: Sequence[int | None],
    parameter: ParameterDef,
) -> int:
    position = by_name[(ParameterDef, parameter.name)]
    if position is None:
        raise OperatorFormatError(f"the aclnn call leaves out the output {parameter.name}")
    return position


def _present(position: int | None, arguments: Sequence[CallArgument]) -> int | None:
    return None if position is None or arguments[position].kind == "absent" else position


def _align(
    slots: tuple[Slot, ...], arguments: tuple[CallArgument, ...], may_drop: bool
) -> list[int | None] | None:
    """Return the argument position of each slot, with the fewest slots omitted; ``None`` if impossible."""

    @cache
    def cost(slot: int, argument: int) -> int:
        if slot == len(slots) and argument == len(arguments):
            return 0
        return min(take(slot, argument), skip(slot, argument), drop(slot, argument))

    def take(slot: int, argument: int) -> int:
        inside = slot < len(slots) and argument < len(arguments)
        fits = inside and _fits(slots[slot], arguments[argument])
        return cost(slot + 1, argument + 1) if fits else _IMPOSSIBLE

    def skip(slot: int, argument: int) -> int:
        may = slot < len(slots) and _may_be_left_out(slots[slot])
        return 1 + cost(slot + 1, argument) if may else _IMPOSSIBLE

    def drop(slot: int, argument: int) -> int:
        may = may_drop and argument < len(arguments) and arguments[argument].kind in _DROPPED_KINDS
        return _DROPPED + cost(slot, argument + 1) if may else _IMPOSSIBLE

    if cost(0, 0) >= _IMPOSSIBLE:
        return None
    chosen: list[int | None] = []
    argument = 0
    for slot in range(len(slots)):
        while drop(slot, argument) < min(take(slot, argument), skip(slot, argument)):
            argument += 1
        taken = take(slot, argument) <= skip(slot, argument)
        chosen.append(argument if taken else None)
        argument += taken
    return chosen


def _may_be_left_out(slot: Slot) -> bool:
    return slot.optional if isinstance(slot, ParameterDef) else not slot.required


def _fits(slot: Slot, argument: CallArgument) -> bool:
    if argument.kind == "absent":
        return _may_be_left_out(slot)
    if isinstance(slot, AttributeDef):
        return argument.kind in _ATTRIBUTE_KINDS.get(slot.type, set())
    if slot.dynamic:
        return argument.kind == "list"
    return argument.kind == "tensor" or argument.kind in _CONSTANT_KINDS

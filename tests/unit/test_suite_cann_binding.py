"""Arguments of aclnn calls against definitions: order, arguments left out, constants, results in place."""

from __future__ import annotations

import pytest

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.suite.cann_opdef import AttributeDef, OperatorDef, ParameterDef
from npu_daemon.importer.binding import Binding, bind
from npu_daemon.importer.record import CallArgument


def parameter(name: str, *, optional: bool = False, dynamic: bool = False) -> ParameterDef:
    return ParameterDef(name, (), optional, dynamic)


def call(*kinds: str) -> list[CallArgument]:
    return [CallArgument.model_validate({"kind": kind}) for kind in kinds]


X, Y, LIST = parameter("x"), parameter("y"), parameter("x", dynamic=True)
BIAS = parameter("bias", optional=True)
AXIS, SCALE = AttributeDef("axis", "Int", False), AttributeDef("scale", "Float", True)


def operator(
    inputs: list[ParameterDef], attributes: list[AttributeDef], outputs: list[ParameterDef]
) -> OperatorDef:
    return OperatorDef("Twice", tuple(inputs), tuple(outputs), tuple(attributes))


@pytest.mark.parametrize(
    ("definition", "kinds", "expected"),
    [
        (
            operator([X, BIAS], [AXIS, SCALE], [Y]),
            ["tensor", "absent", "int", "float", "tensor"],
            Binding((0, None), (4,), {"axis": 2, "scale": 3}),
        ),
        (
            operator([X, BIAS], [AXIS, SCALE], [Y]),
            ["tensor", "float", "tensor"],
            Binding((0, None), (2,), {"scale": 1}),
        ),
        (operator([X, BIAS], [], [Y]), ["tensor", "tensor", "tensor"], Binding((0, 1), (2,), {})),
        (operator([LIST], [], [parameter("y", dynamic=True)]), ["list", "list"], Binding((0,), (1,), {})),
        (operator([X, parameter("dims")], [], [Y]), ["tensor", "ints", "tensor"], Binding((0, 1), (2,), {})),
        (operator([X, parameter("n")], [], [Y]), ["scalar", "int", "tensor"], Binding((0, 1), (2,), {})),
        (operator([X], [AXIS], [X]), ["tensor", "int"], Binding((0,), (0,), {"axis": 1})),
        (operator([X, BIAS], [], [X]), ["tensor"], Binding((0, None), (0,), {})),
    ],
)
def test_arguments_are_aligned_in_order(definition: OperatorDef, kinds: list[str], expected: Binding) -> None:
    assert bind(definition, call(*kinds), "aclnnTwice") == expected


@pytest.mark.parametrize(
    ("definition", "kinds"),
    [
        (operator([X], [], [Y]), ["tensor"]),
        (operator([X], [], [Y]), ["tensor", "tensor", "tensor"]),
        (operator([X], [SCALE], [Y]), ["tensor", "tensor"]),
        (operator([LIST], [], [Y]), ["tensor", "tensor"]),
        (operator([X], [AXIS], [Y]), ["tensor", "string", "tensor"]),
        (operator([X], [], [Y]), ["absent", "tensor"]),
    ],
)
def test_calls_that_do_not_fit_show_both_sides(definition: OperatorDef, kinds: list[str]) -> None:
    with pytest.raises(OperatorFormatError) as caught:
        bind(definition, call(*kinds), "aclnnTwice")
    assert f"aclnnTwice({', '.join(kinds)}) does not fit the definition of Twice(x" in str(caught.value)

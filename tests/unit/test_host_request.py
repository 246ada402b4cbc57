"""Request files of the tiling runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.records import Case, DType, TensorSpec
from npu_daemon.simulator.host_request import ChipGeometry, request_lines
from npu_daemon.simulator.host_schema import Attribute, DefinitionError, HostParameter, OperatorDefinition

CHIP = ChipGeometry(
    soc_version="Ascend910B2",
    aic_cores=24,
    aiv_cores=48,
    ub_bytes=6,
    l1_bytes=4,
    l0a_bytes=1,
    l0b_bytes=2,
    l0c_bytes=3,
    l2_bytes=5,
    hbm_bytes_per_cycle=32,
)


def parameter(name: str, kind: str = "required", **fields: object) -> HostParameter:
    return HostParameter.model_validate(
        {"name": name, "kind": kind, "types": ["DT_FLOAT16"], "formats": ["ND"], **fields}
    )


def tensor(name: str, *shapes: tuple[int, ...], dynamic: bool = False) -> TensorSpec:
    return TensorSpec(name=name, dtype=DType.FLOAT16, shapes=shapes, dynamic=dynamic)


def lines_for(
    inputs: list[HostParameter], tensors: list[TensorSpec], files: list[list[Path]] | None = None
) -> list[str]:
    toy = OperatorDefinition(
        op_type="Toy", inputs=tuple(inputs), outputs=(parameter("y"),), attributes=(), structures=()
    )
    case = Case(case_id="c", inputs=tuple(tensors), outputs=(tensor("y", ()),))
    return request_lines(toy, case, CHIP, files or [])


def attribute_lines(attribute_type: str, value: Any) -> list[str]:
    attribute = Attribute.model_validate(
        {"name": "a", "type": attribute_type, "required": False, "default": value}
    )
    toy = OperatorDefinition(op_type="Toy", inputs=(), outputs=(), attributes=(attribute,), structures=())
    lines = request_lines(toy, Case(case_id="c", inputs=(), outputs=()), CHIP)
    return [line for line in lines if line.startswith("attribute")]


def test_the_chip_comes_first_and_unknown_figures_are_left_out() -> None:
    assert lines_for([], [])[:10] == [
        "op Toy",
        "soc Ascend910B2",
        "cores 24 48 48",
        "memory 0 1",
        "memory 1 2",
        "memory 2 3",
        "memory 3 4",
        "memory 4 5",
        "memory 5 6",
        "bandwidth 6 32",
    ]


def test_every_parameter_has_a_line_and_every_tensor_one_below_it() -> None:
    inputs = [parameter("x", "dynamic"), parameter("bias", "optional"), parameter("s")]
    lines = lines_for(inputs, [tensor("s", (1,)), tensor("x", (2, 3), (4,), dynamic=True)])
    assert lines[lines.index("input") :] == [
        "input",
        "tensor DT_FLOAT16 ND - 2 2 3",
        "tensor DT_FLOAT16 ND - 1 4",
        "input",
        "input",
        "tensor DT_FLOAT16 ND - 1 1",
        "output",
        "tensor DT_FLOAT16 ND - 0",
    ]


def test_values_are_given_only_for_value_dependent_inputs() -> None:
    inputs = [parameter("x"), parameter("shape", value_dependent=True)]
    files = [[Path("/x")], [Path("/s p")]]
    lines = lines_for(inputs, [tensor("x", (1,)), tensor("shape", (1,))], files)
    assert [line for line in lines if line.startswith("tensor")] == [
        "tensor DT_FLOAT16 ND - 1 1",
        f"tensor DT_FLOAT16 ND {b'/s p'.hex()} 1 1",
        "tensor DT_FLOAT16 ND - 0",
    ]


@pytest.mark.parametrize(
    ("attribute_type", "value", "line"),
    [
        ("int", -3, "attribute int -3"),
        ("float", 1, "attribute float 1.0"),
        ("float", 1e-5, "attribute float 1e-05"),
        ("bool", True, "attribute bool 1"),
        ("string", "a b\n", "attribute string 6120620a"),
        ("string", "", "attribute string -"),
        ("list_int", (1, 2), "attribute list_int 2 1 2"),
        ("list_int", [], "attribute list_int 0"),
        ("list_float", (0.5,), "attribute list_float 1 0.5"),
        ("list_bool", [True, False], "attribute list_bool 2 1 0"),
        ("list_list_int", [[1], [2, 3], []], "attribute list_list_int 3 1 1 2 2 3 0"),
    ],
)
def test_attributes_are_written_by_their_declared_type(attribute_type: str, value: Any, line: str) -> None:
    assert attribute_lines(attribute_type, value) == [line]


@pytest.mark.parametrize(
    ("attribute_type", "value"),
    [
        ("int", 1.5),
        ("int", True),
        ("float", "1"),
        ("bool", 1),
        ("string", 1),
        ("list_int", 3),
        ("list_int", [0.5]),
    ],
)
def test_a_value_of_another_type_is_refused(attribute_type: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=f"'a' is of type {attribute_type}, the case gives"):
        attribute_lines(attribute_type, value)

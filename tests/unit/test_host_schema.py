"""Definitions of operators: columns, and how a case fits them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ascend_gym.core.records import Case, DType, TensorSpec
from npu_daemon.simulator.host_schema import (
    Attribute,
    Decision,
    DefinitionError,
    HostParameter,
    OperatorDefinition,
    RegisteredStructure,
    Slot,
    TilingField,
    TilingStructure,
    match_attributes,
    match_column,
    match_tensors,
)

HALF, SINGLE, BRAIN = "DT_FLOAT16", "DT_FLOAT", "DT_BF16"


def parameter(name: str, *types: str, kind: str = "required", **fields: object) -> HostParameter:
    formats = fields.pop("formats", ("ND",) * len(types))
    return HostParameter.model_validate(
        {"name": name, "kind": kind, "types": types, "formats": formats, **fields}
    )


def definition(
    inputs: list[HostParameter], outputs: list[HostParameter], attributes: tuple[Attribute, ...] = ()
) -> OperatorDefinition:
    return OperatorDefinition(
        op_type="Toy", inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes, structures=()
    )


def tensor(name: str, dtype: DType = DType.FLOAT16, *, absent: bool = False) -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shapes=((4, 8),), optional_absent=absent)


def case(inputs: list[TensorSpec], outputs: list[TensorSpec], **attributes: object) -> Case:
    return Case.model_validate(
        {"case_id": "c", "inputs": inputs, "outputs": outputs, "attributes": attributes}
    )


def types_of(toy: OperatorDefinition) -> list[tuple[str, ...]]:
    return [tuple(slot.type for slot in (*column.inputs, *column.outputs)) for column in toy.columns()]


def test_parallel_lists_are_columns() -> None:
    toy = definition(
        [parameter("x", HALF, SINGLE), parameter("scale", SINGLE, SINGLE)], [parameter("y", HALF, SINGLE)]
    )
    assert types_of(toy) == [(HALF, SINGLE, HALF), (SINGLE, SINGLE, SINGLE)]


def test_a_free_list_goes_with_every_column() -> None:
    toy = definition(
        [
            parameter("x", HALF, SINGLE),
            parameter("n", "DT_INT32", "DT_INT64", types_combine=True, formats=()),
        ],
        [parameter("y", HALF, SINGLE)],
    )
    assert types_of(toy) == [
        (HALF, "DT_INT32", HALF),
        (HALF, "DT_INT64", HALF),
        (SINGLE, "DT_INT32", SINGLE),
        (SINGLE, "DT_INT64", SINGLE),
    ]


def test_free_formats_and_free_types_do_not_get_mixed_up() -> None:
    toy = definition(
        [
            parameter("x", HALF, types_combine=True, formats=("ND", "NCHW"), formats_combine=True),
            parameter("n", "DT_INT32", "DT_INT64", types_combine=True, formats=("ND",), formats_combine=True),
        ],
        [],
    )
    assert [column.inputs for column in toy.columns()] == [
        (Slot(HALF, layout), Slot(whole, "ND"))
        for whole in ("DT_INT32", "DT_INT64")
        for layout in ("ND", "NCHW")
    ]


def test_an_output_follows_through_a_chain() -> None:
    toy = definition(
        [parameter("x", HALF, BRAIN), parameter("z", follows_type_of="x", follows_format_of="x")],
        [parameter("y", follows_type_of="z", follows_format_of="z")],
    )
    assert types_of(toy) == [(HALF, HALF, HALF), (BRAIN, BRAIN, BRAIN)]


def test_following_an_unknown_parameter_is_named() -> None:
    toy = definition([parameter("x", HALF)], [parameter("y", follows_type_of="w")])
    with pytest.raises(DefinitionError, match="y follows 'w'"):
        toy.columns()


def test_lists_of_unequal_length_are_named() -> None:
    toy = definition([parameter("x", HALF, SINGLE)], [parameter("y", HALF)])
    with pytest.raises(DefinitionError, match=r"x\.DataType 2, x\.Format 2, y\.DataType 1"):
        toy.columns()


@given(st.integers(1, 6), st.lists(st.integers(1, 3), max_size=3))
def test_number_of_columns_is_the_product_of_free_lists(width: int, free: list[int]) -> None:
    inputs = [parameter("x", *[HALF] * width)]
    inputs += [
        parameter(f"f{i}", *[SINGLE] * length, types_combine=True, formats=())
        for i, length in enumerate(free)
    ]
    expected = width
    for length in free:
        expected *= length
    assert len(definition(inputs, []).columns()) == expected


def test_the_column_of_a_case_is_found_by_its_types() -> None:
    toy = definition([parameter("x", HALF, SINGLE)], [parameter("y", HALF, SINGLE)])
    found = match_column(toy, case([tensor("x", DType.FLOAT32)], [tensor("y", DType.FLOAT32)]))
    assert found.inputs == (Slot(SINGLE, "ND"),)


def test_plain_layouts_win_over_special_ones() -> None:
    toy = definition([parameter("x", HALF, HALF, formats=("NC1HWC0", "ND"))], [parameter("y", HALF, HALF)])
    assert match_column(toy, case([tensor("x")], [tensor("y")])).inputs == (Slot(HALF, "ND"),)


def test_a_case_without_a_column_is_answered_with_all_columns() -> None:
    toy = definition([parameter("x", HALF, SINGLE)], [parameter("y", HALF, SINGLE)])
    with pytest.raises(DefinitionError) as raised:
        match_column(toy, case([tensor("x", DType.INT8)], [tensor("y")]))
    assert str(raised.value) == (
        "Toy has no kernel for x DT_INT8, y DT_FLOAT16; "
        "its columns (x, y) are: DT_FLOAT16, DT_FLOAT16; DT_FLOAT, DT_FLOAT"
    )


def test_an_absent_optional_input_takes_any_type() -> None:
    toy = definition(
        [parameter("x", HALF), parameter("bias", SINGLE, kind="optional")], [parameter("y", HALF)]
    )
    absent = tensor("bias", DType.INT8, absent=True)
    assert match_tensors(toy.inputs, [tensor("x"), absent], "inputs") == [tensor("x"), None]
    assert match_column(toy, case([tensor("x"), absent], [tensor("y")])).inputs[1].type == SINGLE


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([tensor("x"), tensor("w")], r"the case has inputs \['w'\], the definition has \['x', 'bias'\]"),
        ([tensor("bias")], r"requires inputs \['x'\], the case has \['bias'\]"),
        ([tensor("x", absent=True)], r"requires inputs \['x'\], the case has \[\]"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tensors: list[TensorSpec], message: str) -> None:
    parameters = [parameter("x", HALF), parameter("bias", HALF, kind="optional")]
    with pytest.raises(DefinitionError, match=message):
        match_tensors(parameters, tensors, "inputs")


def test_attributes_come_from_the_case_or_their_default() -> None:
    alpha = Attribute(name="alpha", type="float", required=False, default=1.0)
    axis = Attribute(name="axis", type="int", required=True)
    toy = definition([parameter("x", HALF)], [parameter("y", HALF)], (alpha, axis))
    values = match_attributes(toy, case([tensor("x")], [tensor("y")], axis=2))
    assert values == [(alpha, 1.0), (axis, 2)]
    with pytest.raises(DefinitionError, match="'axis' has no default"):
        match_attributes(toy, case([tensor("x")], [tensor("y")]))
    unsaid = tuple(
        Attribute(name=kind, type=kind, required=False) for kind in ("int", "bool", "string", "list_float")
    )
    empty = match_attributes(
        definition([parameter("x", HALF)], [parameter("y", HALF)], unsaid), case([tensor("x")], [tensor("y")])
    )
    assert [value for _, value in empty] == [0, False, "{}", ()]
    with pytest.raises(DefinitionError, match=r"sets attributes \['beta'\]"):
        match_attributes(toy, case([tensor("x")], [tensor("y")], axis=2, beta=1))


def test_the_structure_of_a_tiling_key_falls_back_to_the_default() -> None:
    plain, special = (TilingStructure(name=name, bytes=0, fields=()) for name in ("Plain", "Special"))
    toy = definition([], []).model_copy(
        update={
            "structures": (
                RegisteredStructure(structure=plain),
                RegisteredStructure(tiling_key=7, structure=special),
            )
        }
    )
    assert toy.structure_for(7) == special
    assert toy.structure_for(8) == plain
    assert definition([], []).structure_for(0) is None


def test_nested_structures_come_before_their_owner() -> None:
    inner = TilingStructure(name="Inner", bytes=0, fields=())
    middle = TilingStructure(
        name="Middle",
        bytes=0,
        fields=(TilingField(name="i", type="Inner", offset=0, bytes=0, structure=inner),),
    )
    outer = TilingStructure(
        name="Outer",
        bytes=0,
        fields=(TilingField(name="m", type="Middle", offset=0, bytes=0, structure=middle),),
    )
    assert [structure.name for structure in outer.nested_first()] == ["Inner", "Middle", "Outer"]


@pytest.mark.parametrize("name", ["x;}", "a b", "", "x\n", "1x", "x" * 300])
def test_names_that_are_not_identifiers_never_reach_cpp_text(name: str) -> None:
    with pytest.raises(ValidationError):
        parameter(name, HALF)
    with pytest.raises(ValidationError):
        TilingStructure(name=name, bytes=8, fields=())
    with pytest.raises(ValidationError):
        TilingField(name="x", type=name, offset=0, bytes=8)


GOOD_DECISION = {
    "block_dim": 1,
    "tiling_key": 0,
    "tiling_data": "00ff",
    "workspace_bytes": [0],
    "schedule_mode": 0,
    "need_atomic": False,
}


@pytest.mark.parametrize(
    "change",
    [
        {"block_dim": 0},
        {"block_dim": 65536},
        {"tiling_key": -1},
        {"tiling_key": 2**64},
        {"tiling_data": "0"},
        {"tiling_data": "0g"},
        {"tiling_data": "00" * (64 * 1024 + 1)},
        {"workspace_bytes": [-1]},
        {"workspace_bytes": [0] * 17},
        {"surprise": 1},
    ],
)
def test_a_decision_out_of_range_is_refused(change: dict[str, object]) -> None:
    assert Decision.model_validate(GOOD_DECISION).block_dim == 1
    with pytest.raises(ValidationError):
        Decision.model_validate({**GOOD_DECISION, **change})

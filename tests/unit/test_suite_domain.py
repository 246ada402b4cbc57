from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from suite_folders import MANIFEST, write_operator

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Case, DType, SpecialRows, TensorSpec, ValueRange
from ascend_gym.suite.domain import domain_case, smallest_case
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.mutants import HONEST, audit_domain, mutant_verdicts
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.special_rows import with_special_rows

OPERATORS = [spec for suite in ("core", "generate") for spec in list_operators(suite)]


def drawn(values: ValueRange, ordinary: Array, seed: int = 0, dtype: DType = DType.FLOAT32) -> Array:
    tensor = TensorSpec(name="x", dtype=dtype, shapes=(ordinary.shape,), values=values)
    case = Case(case_id="c", inputs=(tensor,), outputs=())
    return with_special_rows(case, seed, tensor, 0, ordinary)


def ordinary(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_every_kind_of_row_occurs_and_the_ordinary_one_too() -> None:
    rows = tuple(
        SpecialRows.model_validate(each)
        for each in (
            {"kind": "affine", "scale": 0.0, "offset": 5.0},
            {"kind": "equal"},
            {"kind": "ties", "count": 2},
            {"kind": "one", "values": [1e9]},
            {"kind": "some", "values": [-np.inf], "share": 0.2},
        )
    )
    before = ordinary(12, 50)
    after = drawn(ValueRange(kind="normal", rows=rows), before)
    seen = [
        "unchanged"
        if (row == old).all()
        else "affine"
        if (row == 5.0).all()
        else "equal"
        if (row == old[0]).all()
        else "one"
        if (row != old).sum() == 1 and row.max() == np.float32(1e9)
        else "some"
        if np.isneginf(row).any() and (row[np.isfinite(row)] == old[np.isfinite(row)]).all()
        else "ties"
        if set(row) == set(old[:2])
        else "?"
        for row, old in zip(after, before, strict=True)
    ]
    assert sorted(seen) == sorted(["unchanged", "affine", "equal", "one", "some", "ties"] * 2)
    assert (drawn(ValueRange(kind="normal", rows=rows), before) == after).all()
    assert not np.array_equal(drawn(ValueRange(kind="normal", rows=rows), before, seed=1), after)


def test_one_value_stands_last_in_some_row_and_first_in_another() -> None:
    values = ValueRange(rows=(SpecialRows(kind="one", values=(7.0,)),))
    places = {int(np.flatnonzero(row == 7.0)[0]) for row in drawn(values, ordinary(40, 30)) if 7.0 in row}
    assert {0, 29} < places


def test_rows_extend_over_the_declared_axes_and_groups() -> None:
    zero = SpecialRows(kind="affine", scale=0.0)
    columns = drawn(ValueRange(rows=(zero,), axes=(0,)), ordinary(5, 8)) == 0
    assert (columns.all(axis=0) == columns.any(axis=0)).all()
    assert columns.all(axis=0).sum() == 4
    grouped = drawn(ValueRange(rows=(zero,), axes=(1, 2), groups=2), ordinary(3, 4, 5)) == 0
    parts = grouped.reshape(6, 10)
    assert (parts.all(axis=1) == parts.any(axis=1)).all()
    assert parts.all(axis=1).sum() == 3


def test_extreme_whole_numbers_are_drawn() -> None:
    values = ValueRange(kind="integers", low=0, high=9, axes=(), rows=(SpecialRows(kind="ends"),))
    after = drawn(values, np.full(1000, 4, np.int32), dtype=DType.INT32)
    assert {int(each) for each in after} == {0, 4, 9}


def test_the_domain_case_is_the_case_with_other_values(tmp_path: Path) -> None:
    domain = '\n[[domain.input]]\nname = "x"\nrows = [{ kind = "affine", scale = 0.0 }]\n'
    tolerance = "\n[domain.tolerance.float32]\natol = 1.0\nrtol = 0.0\n"
    folder = write_operator(tmp_path / "twice", manifest=MANIFEST + domain + tolerance)
    spec = load_operator("twice", op_dir=folder)
    case = domain_case(spec, spec.cases[0])
    assert case.case_id == "small~domain"
    assert case.tolerance[DType.FLOAT32].atol == 1.0
    assert [tensor.shapes for tensor in case.inputs] == [tensor.shapes for tensor in spec.cases[0].inputs]
    ((x,),) = oracle_for(spec).inputs(case, 0)
    assert (x == 0).all(axis=1).sum() == 2


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('name = "z"\nrows = [{ kind = "equal" }]', "no case has an input 'z'"),
        ('name = "x"\ndtype = "int8"\nrows = [{ kind = "equal" }]', "no case has an input 'x' of type int8"),
        ('name = "x"\nrows = [{ kind = "one" }]', "'values' belongs to the kinds"),
        ('name = "x"\naxes = [2]\nrows = [{ kind = "equal" }]', "are not different axes"),
        ('name = "x"\ngroups = "heads"\nrows = [{ kind = "equal" }]', "no whole attribute"),
        ('name = "x"\nrows = [{ kind = "affine", offset = 1e39 }]', "has no numbers beyond"),
    ],
)
def test_a_domain_that_cannot_be_drawn_is_refused(tmp_path: Path, said: str, reason: str) -> None:
    folder = write_operator(tmp_path / "twice", manifest=f"{MANIFEST}\n[[domain.input]]\n{said}\n")
    with pytest.raises(OperatorFormatError, match=reason):
        load_operator("twice", op_dir=folder)


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.op_id)
def test_every_operator_declares_a_domain_that_tells_mutants_apart(spec) -> None:  # type: ignore[no-untyped-def]
    assert spec.domain is not None
    assert audit_domain(spec, 3).complaints == ()


@pytest.mark.parametrize(
    ("operator", "mutant"),
    [
        ("core/softmax", "no maximum subtracted"),
        ("core/cross_entropy_loss", "no maximum subtracted"),
        ("core/attention", "no maximum subtracted"),
        ("core/layer_norm", "one-pass variance"),
        ("core/group_norm", "one-pass variance"),
        ("core/rms_norm", "no epsilon"),
        ("core/add_rms_norm", "no epsilon"),
        ("generate/log_softmax", "no maximum subtracted"),
        ("generate/batch_norm", "one-pass variance"),
        ("core/dynamic_quant", "truncation instead of rounding"),
    ],
)
def test_what_leaves_out_a_step_passes_the_case_of_today_or_not_but_never_the_domain(
    operator: str, mutant: str
) -> None:
    spec = load_operator(operator)
    case = domain_case(spec, smallest_case(spec.cases))
    told = {each.mutant: each for each in mutant_verdicts(spec, case, 11)}
    assert told[HONEST].accepted
    assert told[mutant].applies
    assert not told[mutant].accepted

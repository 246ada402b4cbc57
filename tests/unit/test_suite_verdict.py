from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Verdict
from ascend_gym.core.records import Case, DType, TensorSpec, Tolerance
from ascend_gym.suite.compare import CHUNK_ELEMS
from ascend_gym.suite.inputs import Array, numpy_dtype
from ascend_gym.suite.verdict import judge

STRICT = Tolerance(atol=1e-4, rtol=1e-3)


def case_of(dtype: DType, *shapes: tuple[int, ...], tolerance: Tolerance = STRICT) -> Case:
    tensor = TensorSpec(name="y", dtype=dtype, shapes=shapes, dynamic=len(shapes) != 1)
    return Case(case_id="c", inputs=(tensor,), outputs=(tensor,), tolerance={dtype: tolerance})


def verdict_of(got: Array, want: Array, dtype: DType = DType.FLOAT16, tol: Tolerance = STRICT) -> Verdict:
    return judge(case_of(dtype, want.shape, tolerance=tol), [[got.astype(numpy_dtype(dtype))]], [[want]])


def ramp(*shape: int) -> Array:
    return np.linspace(1.0, 2.0, math.prod(shape)).reshape(shape)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.BFLOAT16])
def test_the_rounded_expectation_is_accepted(dtype: DType) -> None:
    tolerance = Tolerance(atol=1e-4, rtol=4e-3 if dtype is DType.BFLOAT16 else 1e-3)
    verdict = verdict_of(ramp(17, 33), ramp(17, 33), dtype, tolerance)
    assert verdict.correct
    assert verdict.upstream_rule_passes
    assert verdict.bad_share == 0.0
    assert 0.0 < verdict.max_abs_error < 1e-2
    assert 0.0 < verdict.max_rel_error < 1e-2 or dtype is DType.BFLOAT16
    assert "agree" in verdict.message


def test_the_first_bad_element_is_named_with_both_values() -> None:
    got = ramp(4, 10)
    got[2, 3] += 0.5
    got[3, 1] += 0.5
    verdict = verdict_of(got, ramp(4, 10))
    assert not verdict.correct
    assert verdict.bad_share == pytest.approx(2 / 40)
    assert verdict.max_abs_error == pytest.approx(0.5, abs=1e-3)
    assert "2 of 40 elements differ" in verdict.message
    assert "first at [2, 3]: got 2.09" in verdict.message
    assert "expected 1.58" in verdict.message


def test_a_tail_that_was_never_written_is_recognised() -> None:
    got = ramp(10, 103)
    got.reshape(-1)[-37:] = 0.0
    message = verdict_of(got, ramp(10, 103)).message
    assert "a tail of 37 elements never written?" in message


def test_blocks_that_all_write_to_the_beginning_are_recognised() -> None:
    got = ramp(10, 103)
    got.reshape(-1)[37:] = 0.0
    message = verdict_of(got, ramp(10, 103)).message
    assert "the last 993 elements are bad: do all blocks write to the beginning?" in message


def test_the_tail_of_every_row_is_recognised() -> None:
    got = ramp(10, 103)
    got[:, 96:] = 0.0
    message = verdict_of(got, ramp(10, 103)).message
    assert "at or after index 96 of the last axis (extent 103)" in message


@pytest.mark.parametrize(("value", "text"), [(0.0, "every element of the output is 0"), (1.5, "is 1.5")])
def test_constant_outputs_are_recognised(value: float, text: str) -> None:
    verdict = verdict_of(np.full((8, 8), value), ramp(8, 8))
    assert not verdict.correct
    assert text in verdict.message


def test_a_wide_tolerance_does_not_let_a_constant_pass() -> None:
    want = ramp(8, 8) * 1e-4
    wide = Tolerance(atol=1e-3, rtol=1e-3)
    verdict = verdict_of(np.zeros((8, 8)), want, tol=wide)
    assert not verdict.correct
    assert verdict.upstream_rule_passes, "the upstream rule has this hole"
    assert "every element is 0 where the expectation spans 0.0001 to 0.0002" in verdict.message


def test_a_constant_is_right_where_a_constant_is_expected() -> None:
    assert verdict_of(np.ones((8, 8)), np.ones((8, 8))).correct
    saturated = np.ones((8, 8))
    saturated[0] -= 1e-6  # rounds to 1 in fp16
    assert verdict_of(np.ones((8, 8)), saturated).correct


def test_some_bad_elements_pass_up_to_the_allowed_share_but_gross_ones_never() -> None:
    tolerance = Tolerance(atol=1e-3, rtol=0.0, max_bad_share=0.02)
    want = ramp(10, 10)
    got = want.copy()
    got[0, :2] += 5e-3  # bad, within ten times the bound
    accepted = verdict_of(got, want, DType.FLOAT32, tolerance)
    assert accepted.correct
    assert accepted.bad_share == pytest.approx(0.02)
    got[5, 5] += 5e-3
    assert not verdict_of(got, want, DType.FLOAT32, tolerance).correct
    got = want.copy()
    got[0, 0] += 2e-2
    refused = verdict_of(got, want, DType.FLOAT32, tolerance)
    assert not refused.correct
    assert "none by more than 10 times that; 1 do" in refused.message


@pytest.mark.parametrize(
    ("count", "text", "question"),
    [
        (12, "every element is nan", "uninitialised?"),
        (3, "3 elements are nan", "a tail of 3 elements never written?"),
    ],
)
def test_nan_are_counted(count: int, text: str, question: str) -> None:
    got = ramp(3, 4)
    got.reshape(-1)[-count:] = np.nan
    message = verdict_of(got, ramp(3, 4)).message
    assert text in message
    assert question in message


def test_nan_are_told_as_runs_and_how_far_apart_they_are() -> None:
    got = ramp(48 * 2000)
    for block in range(48):
        got[block * 2000 + 1296 : (block + 1) * 2000] = np.nan
    got[-1] = 2.0
    message = verdict_of(got, ramp(48 * 2000)).message
    assert "33791 elements are nan where the expectation is not, in 48 runs of 703 to 704 elements" in message
    assert "elements, 2000 apart" in message


def test_a_run_of_nan_is_told_by_where_it_begins() -> None:
    got = ramp(5, 100)
    got[2, 40:60] = np.nan
    message = verdict_of(got, ramp(5, 100)).message
    assert (
        "20 elements are nan where the expectation is not, in one run from element 240 of 500 on" in message
    )
    assert "at or after index 40 of the last axis (extent 100)" in message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_out_of_place_are_refused(bad: float) -> None:
    generous = Tolerance(atol=1.0, rtol=1.0, max_bad_share=0.5)
    got = ramp(4, 4)
    got[1, 1] = bad
    verdict = verdict_of(got, ramp(4, 4), tol=generous)
    assert not verdict.correct
    assert verdict.max_abs_error == math.inf
    want = ramp(4, 4)
    want[1, 1] = bad
    assert not verdict_of(ramp(4, 4), want, tol=generous).correct
    assert verdict_of(got, want, tol=STRICT).correct


def test_the_sign_of_inf_matters() -> None:
    got, want = ramp(4, 4), ramp(4, 4)
    got[0, 0], want[0, 0] = np.inf, -np.inf
    assert not verdict_of(got, want).correct
    got[0, 0], want[0, 0] = np.nan, np.inf
    assert not verdict_of(got, want).correct


def test_overflow_to_inf_is_expected_where_the_output_dtype_overflows() -> None:
    want = ramp(4, 4)
    want[2, 2] = 70_000.0
    got = ramp(4, 4)
    got[2, 2] = np.inf
    assert verdict_of(got, want).correct
    got[2, 2] = 65_504.0
    assert not verdict_of(got, want).correct
    assert verdict_of(want, want, DType.FLOAT32).correct


def test_shapes_dtypes_and_counts_must_be_right() -> None:
    case = case_of(DType.FLOAT16, (2, 3))
    want = [[ramp(2, 3)]]
    right = ramp(2, 3).astype(np.float16)
    assert judge(case, [[right]], want).correct
    for outputs, text in [
        ([[right.reshape(3, 2)]], "expected shapes ((2, 3),), got ((3, 2),)"),
        ([[right.astype(np.float32)]], "expected dtype float16, got float32"),
        ([[right, right]], "expected shapes"),
        ([], "expected 1 output parameters, got 0"),
    ]:
        verdict = judge(case, outputs, want)
        assert not verdict.correct
        assert not verdict.upstream_rule_passes
        assert text in verdict.message


def test_every_tensor_of_a_list_is_judged_by_name() -> None:
    case = case_of(DType.FLOAT16, (4,), (3, 3))
    want = [[ramp(4), ramp(3, 3)]]
    got = [[array.astype(np.float16) for array in want[0]]]
    assert judge(case, got, want).correct
    got[0][1][2, 2] = 9.0
    verdict = judge(case, got, want)
    assert verdict.message.startswith("output y[1]: 1 of 9 elements")
    assert verdict.bad_share == pytest.approx(1 / 9)


def test_whole_numbers_are_compared_exactly_without_a_tolerance() -> None:
    tensor = TensorSpec(name="y", dtype=DType.INT64, shapes=((3,),))
    case = Case(case_id="c", inputs=(tensor,), outputs=(tensor,))
    want = np.array([1, 2**62, 2**62 + 1])
    assert judge(case, [[want.copy()]], [[want]]).correct
    verdict = judge(case, [[want + np.array([0, 0, 1])]], [[want]])
    assert not verdict.correct
    assert not verdict.upstream_rule_passes
    assert "1 of 3" in verdict.message


def test_bools_and_tolerant_whole_numbers() -> None:
    tensor = TensorSpec(name="y", dtype=DType.BOOL, shapes=((4,),))
    case = Case(case_id="c", inputs=(tensor,), outputs=(tensor,))
    want = np.array([True, False, True, True])
    assert judge(case, [[want]], [[want]]).correct
    assert not judge(case, [[~want]], [[want]]).correct
    counts = np.arange(20.0).reshape(4, 5)
    off_by_one = Tolerance(atol=1.0, rtol=0.0)
    assert verdict_of(counts + 1, counts, DType.INT32, off_by_one).correct
    assert not verdict_of(counts + 2, counts, DType.INT32, off_by_one).correct


def test_faults_of_the_caller_raise() -> None:
    case = case_of(DType.FLOAT16, (4,))
    with pytest.raises(MisuseError, match="expectations have shapes"):
        judge(case, [[ramp(4)]], [[ramp(5)]])
    bare = case.model_copy(update={"tolerance": {}})
    with pytest.raises(MisuseError, match="no tolerance for float16"):
        judge(bare, [[ramp(4).astype(np.float16)]], [[ramp(4)]])


def test_empty_outputs_agree() -> None:
    assert verdict_of(np.zeros((0, 4)), np.zeros((0, 4))).correct


def test_comparison_is_the_same_across_chunk_borders() -> None:
    want = ramp(3, CHUNK_ELEMS)
    for flat in (0, CHUNK_ELEMS - 1, CHUNK_ELEMS, 3 * CHUNK_ELEMS - 1):
        got = want.copy()
        got.reshape(-1)[flat] = 5.0
        row, column = divmod(flat, CHUNK_ELEMS)
        assert f"first at [{row}, {column}]: got 5.0" in verdict_of(got, want).message


def test_bfloat16_is_judged_against_its_own_rounding_upstream() -> None:
    want = np.full(64, 1.00195) + np.arange(64) * 1e-5  # half way between two bfloat16 numbers
    verdict = verdict_of(want.astype(ml_dtypes.bfloat16), want, DType.BFLOAT16, Tolerance(atol=0, rtol=4e-3))
    assert verdict.correct
    assert verdict.upstream_rule_passes


def upstream_reference(got: Array, golden: Array, loss: float = 1e-3) -> bool:
    """Apply the rule of the verify_result.py scripts literally, in float64."""
    real, golden = got.astype(np.float64), golden.astype(np.float64)
    error = np.abs(real - golden)
    scale = np.maximum(np.abs(real), np.abs(golden))
    within_atol = error <= loss
    within_rtol = error / (scale + 10e-10) <= loss
    if within_rtol.all() or within_atol.all():
        return True
    return not (np.sum(~within_rtol) > real.size * loss and np.sum(~within_atol) > real.size * loss)


@pytest.mark.parametrize("bad_elements", [0, 1, 4, 5, 40])
@pytest.mark.parametrize("offset", [5e-4, 2e-3, 1.0])
def test_the_upstream_rule_is_applied_literally(bad_elements: int, offset: float) -> None:
    want = ramp(5000).astype(np.float32)
    got = want.copy()
    got[:bad_elements] += np.float32(offset)
    assert verdict_of(got, want, DType.FLOAT32).upstream_rule_passes == upstream_reference(got, want)

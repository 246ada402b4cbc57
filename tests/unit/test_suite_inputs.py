from __future__ import annotations

import hashlib
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import Case, DType, Injection, TensorSpec, ValueRange
from ascend_gym.suite.inputs import (
    Array,
    case_inputs,
    loaded_array,
    numpy_dtype,
    stored_array,
    write_array,
)


def draw(dtype: DType, shape: tuple[int, ...], values: ValueRange | None = None, seed: int = 0) -> Array:
    tensor = TensorSpec(name="x", dtype=dtype, shapes=(shape,), values=values or ValueRange())
    return case_inputs(Case(case_id="c", inputs=(tensor,), outputs=(tensor,)), seed)[0][0]


@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype_is_drawn_in_its_own_type_and_shape(dtype: DType) -> None:
    low = 0.0 if dtype in (DType.BOOL, *(d for d in DType if d.value.startswith("uint"))) else -1.0
    array = draw(dtype, (3, 7), ValueRange(low=low, high=1.0))
    assert array.shape == (3, 7)
    assert array.dtype == numpy_dtype(dtype)
    assert dtype is DType.INT4 or array.dtype.itemsize == dtype.size_bytes(1)
    assert not array.flags.writeable


@pytest.mark.parametrize("count", [0, 1, 6, 7])
def test_two_numbers_of_four_bits_share_a_byte_the_first_its_low_half(count: int) -> None:
    array = (np.arange(count) - 3).astype(numpy_dtype(DType.INT4))
    stored = stored_array(array)
    assert stored.nbytes == DType.INT4.size_bytes(count)
    assert stored[:1].tolist() == ([] if count == 0 else [0xED if count > 1 else 0x0D])
    back = loaded_array(b"\xff" + stored.tobytes(), DType.INT4, (count,), 1)
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()


def test_bfloat16_is_the_ml_dtypes_type() -> None:
    assert numpy_dtype(DType.BFLOAT16) == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("dtype", "values", "sha"),
    [
        (DType.FLOAT16, ValueRange(), "4006a33e91cedecf"),
        (DType.FLOAT16, ValueRange(kind="normal", low=0.0), "28617047ac084b1f"),
        (DType.BFLOAT16, ValueRange(kind="normal", low=0.0), "a5360f841b8ff500"),
        (DType.FLOAT32, ValueRange(), "12f40de3600b067e"),
        (DType.FLOAT32, ValueRange(kind="normal", low=0.0), "584cf08334e6c399"),
        (DType.INT32, ValueRange(kind="integers", low=-5, high=1000), "45adb98065950dfa"),
        (DType.INT32, ValueRange(kind="permutation"), "55933b8679961fb7"),
    ],
)
def test_bytes_are_the_same_everywhere_and_for_ever(dtype: DType, values: ValueRange, sha: str) -> None:
    """Pinned: a change here invalidates every stored result."""
    assert hashlib.sha256(draw(dtype, (61, 67), values, seed=11).tobytes()).hexdigest()[:16] == sha


def test_seed_case_parameter_and_position_each_change_the_values() -> None:
    def inputs(case_id: str, name: str, seed: int) -> list[bytes]:
        tensor = TensorSpec(name=name, dtype=DType.FLOAT32, shapes=((50,), (50,)), dynamic=True)
        case = Case(case_id=case_id, inputs=(tensor,), outputs=(tensor,))
        return [array.tobytes() for array in case_inputs(case, seed)[0]]

    first, second = inputs("a", "x", 0)
    others = [*inputs("a", "x", 1), *inputs("b", "x", 0), *inputs("a", "y", 0)]
    assert inputs("a", "x", 0) == [first, second]
    assert len({first, second, *others}) == 8


def test_uniform_values_fill_their_range() -> None:
    for dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32):
        array = draw(dtype, (40_000,), ValueRange(low=2.0, high=6.0)).astype(np.float64)
        assert 2.0 <= array.min() < 2.02
        assert 5.98 < array.max() <= 6.0
        assert abs(array.mean() - 4.0) < 0.03
        assert abs(array.std() - 4.0 / math.sqrt(12.0)) < 0.02


def test_normal_values_have_mean_deviation_and_tails() -> None:
    for dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32):
        array = draw(dtype, (40_000,), ValueRange(kind="normal", low=1.0, high=2.0)).astype(np.float64)
        assert abs(array.mean() - 1.0) < 0.05
        assert abs(array.std() - 2.0) < 0.05
        assert 1.0 + 2.0 * 3.5 < array.max() < 1.0 + 2.0 * 4.5
        assert abs(np.mean(array > 3.0) - 0.1587) < 0.01


def test_fine_normal_values_are_not_quantised() -> None:
    array = draw(DType.FLOAT32, (200_000,), ValueRange(kind="normal", low=0.0, high=1.0))
    assert len(np.unique(array)) > 190_000


def test_integers_include_both_ends_and_stay_whole() -> None:
    for dtype in (DType.INT8, DType.INT64, DType.UINT32, DType.FLOAT32):
        array = draw(dtype, (2_000,), ValueRange(kind="integers", low=3, high=7))
        assert sorted(set(array.tolist())) == [3, 4, 5, 6, 7]


def test_uniform_on_whole_number_types_draws_whole_numbers() -> None:
    assert set(draw(DType.INT16, (500,), ValueRange(low=-1.5, high=1.5)).tolist()) == {-1, 0, 1}
    assert set(draw(DType.BOOL, (100,), ValueRange(low=0, high=1)).tolist()) == {False, True}


def test_a_permutation_has_every_index_once() -> None:
    array = draw(DType.INT32, (1_000,), ValueRange(kind="permutation"))
    assert sorted(array.tolist()) == list(range(1_000))
    assert array.tolist() != list(range(1_000))


def test_an_absent_optional_input_has_no_arrays() -> None:
    absent = TensorSpec(name="bias", dtype=DType.FLOAT32, shapes=((4,),), optional_absent=True)
    present = TensorSpec(name="x", dtype=DType.FLOAT32, shapes=((4,),))
    case = Case(case_id="c", inputs=(absent, present), outputs=(present,))
    assert [len(arrays) for arrays in case_inputs(case, 0)] == [0, 1]


def test_empty_and_scalar_tensors_can_be_drawn() -> None:
    assert draw(DType.FLOAT16, (0, 4)).shape == (0, 4)
    assert draw(DType.FLOAT32, ()).shape == ()


def test_few_distinct_values_tie() -> None:
    values = ValueRange(kind="normal", low=0.0, high=1.0, distinct=5)
    assert 2 <= len(np.unique(draw(DType.FLOAT32, (1000,), values))) <= 5


def test_values_are_injected_at_random_places_one_at_least() -> None:
    inject = (Injection(value=math.nan, share=0.1), Injection(value=-math.inf, share=1e-9))
    values = ValueRange(inject=inject)
    first, second = (draw(DType.FLOAT16, (2000,), values, seed) for seed in (0, 1))
    assert 100 < np.isnan(first).sum() < 300
    assert np.isneginf(first).sum() == 1
    assert not np.array_equal(np.isnan(first), np.isnan(second))


def test_fixed_contents_are_the_same_for_every_seed() -> None:
    values = ValueRange(kind="fixed", contents=(3, math.inf, -2))
    assert draw(DType.FLOAT32, (3,), values).tolist() == [3.0, math.inf, -2.0]
    assert draw(DType.INT32, (2, 2), ValueRange(kind="fixed", contents=(7,)), 1).tolist() == [[7, 7], [7, 7]]


def test_what_a_manifest_does_not_say_leaves_the_digest_of_a_case_alone() -> None:
    assert set(ValueRange().model_dump()) == {"kind", "low", "high"}


def test_arrays_are_written_as_their_elements_lie_and_a_full_disk_is_told(tmp_path: Path) -> None:
    values = np.arange(6).reshape(2, 3)
    for dtype in (np.float32, ml_dtypes.bfloat16, ml_dtypes.int4):
        write_array(tmp_path / "written", values.astype(dtype).T)
        assert (tmp_path / "written").read_bytes() == np.ascontiguousarray(values.astype(dtype).T).tobytes()
    write_array(tmp_path / "written", np.empty((0, 3), np.float32))
    assert (tmp_path / "written").read_bytes() == b""
    with pytest.raises(InfrastructureError, match=r"cannot be written \(12 bytes\).*No space left on device"):
        write_array(Path("/dev/full"), np.zeros(3, np.float32))

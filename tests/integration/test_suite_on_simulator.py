"""The built-in operators on the simulator: every shape class must come out right, not only the cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ascend_gym.core.protocols import Failure, RunOutput, Verdict
from ascend_gym.core.records import Case, DType, MeasureProtocol, TensorSpec, ValueRange
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend

FLOATS = [DType.FLOAT16, DType.FLOAT32]
FLAT_SHAPES = [(1,), (33,), (7, 5), (3, 1003), (1537,), (2, 3, 4099), (48, 2048)]
ROW_SHAPES = [(1, 1), (3, 7), (50, 63), (49, 192), (5, 4096), (2, 4097), (3, 2, 9001)]
GATHERS = [(1, 1, 1), (5, 3, 70), (100, 513, 200), (64, 512, 1541)]
LISTS = [((1,),), ((5,), (3, 7), (2049,)), tuple((i + 1,) for i in range(64))]
NORMAL = ValueRange(kind="normal", low=0.0, high=1.0)

Shape = tuple[int, ...]


def variant(operator: str, dtype: DType, inputs: Sequence[TensorSpec], output: Sequence[Shape]) -> Case:
    """Return a case of ``operator`` with its own tolerance and attributes on other tensors."""
    model = load_operator(operator).cases[0]
    dynamic = model.outputs[0].dynamic
    y = TensorSpec(name="y", dtype=dtype, shapes=tuple(output), dynamic=dynamic)
    return model.model_copy(update={"case_id": "variant", "inputs": tuple(inputs), "outputs": (y,)})


def tensor(name: str, dtype: DType, *shapes: Shape, dynamic: bool = False) -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shapes=shapes, dynamic=dynamic, values=NORMAL)


def run(
    simulator: SimulatorBackend, operator: str, case: Case, work: Path
) -> tuple[RunOutput | Failure, Verdict | None]:
    spec = load_operator(operator)
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, 0)
    files = [
        [work / f"{parameter}_{index}.bin" for index in range(len(arrays))]
        for parameter, arrays in enumerate(inputs)
    ]
    for row, arrays in zip(files, inputs, strict=True):
        for file, array in zip(row, arrays, strict=True):
            file.write_bytes(array.tobytes())
    built = simulator.build(spec, case, spec.baseline, MeasureProtocol())
    assert not isinstance(built, Failure), built
    outcome = simulator.run(built, case, files, MeasureProtocol())
    if isinstance(outcome, Failure):
        return outcome, None
    verdict = oracle.judge(case, outcome.outputs, oracle.expected(case, inputs))
    simulator.cleanup(outcome)
    return outcome, verdict


def assert_right(simulator: SimulatorBackend, operator: str, case: Case, work: Path) -> None:
    outcome, verdict = run(simulator, operator, case, work)
    assert verdict is not None, outcome
    assert verdict.correct, verdict.message


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operator", ["add", "exp", "muls", "gelu"])
def test_elementwise_operators_work_for_every_shape(
    simulator: SimulatorBackend, tmp_path: Path, operator: str, dtype: DType
) -> None:
    names = [parameter.name for parameter in load_operator(operator).cases[0].inputs]
    for shape in FLAT_SHAPES:
        case = variant(operator, dtype, [tensor(name, dtype, shape) for name in names], [shape])
        assert_right(simulator, operator, case, tmp_path)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operator", ["softmax", "rms_norm"])
def test_row_operators_work_for_short_exact_and_long_rows(
    simulator: SimulatorBackend, tmp_path: Path, operator: str, dtype: DType
) -> None:
    for shape in ROW_SHAPES:
        inputs = [tensor("x", dtype, shape)]
        if operator == "rms_norm":
            inputs.append(tensor("gamma", dtype, shape[-1:]))
        assert_right(simulator, operator, variant(operator, dtype, inputs, [shape]), tmp_path)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gather_works_for_every_shape(simulator: SimulatorBackend, tmp_path: Path, dtype: DType) -> None:
    for rows, columns, count in GATHERS:
        index = TensorSpec(
            name="index",
            dtype=DType.INT32,
            shapes=((count,),),
            values=ValueRange(kind="integers", low=0, high=rows - 1),
        )
        case = variant("gather", dtype, [tensor("x", dtype, (rows, columns)), index], [(count, columns)])
        assert_right(simulator, "gather", case, tmp_path)


@pytest.mark.parametrize("dtype", FLOATS)
def test_foreach_add_works_for_every_list(simulator: SimulatorBackend, tmp_path: Path, dtype: DType) -> None:
    for shapes in LISTS:
        inputs = [tensor(name, dtype, *shapes, dynamic=True) for name in ("x1", "x2")]
        assert_right(simulator, "foreach_add", variant("foreach_add", dtype, inputs, shapes), tmp_path)


def test_a_list_that_is_too_long_is_refused_by_the_tiling(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    shapes = ((4,),) * 65
    inputs = [tensor(name, DType.FLOAT32, *shapes, dynamic=True) for name in ("x1", "x2")]
    case = variant("foreach_add", DType.FLOAT32, inputs, shapes)
    outcome, _ = run(simulator, "foreach_add", case, tmp_path)
    assert isinstance(outcome, Failure)
    assert outcome.status is Status.TILING_ERROR

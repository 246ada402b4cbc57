"""The built-in operators: audited on reduced cases, checked against independent formulas, read as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ascend_gym.core.records import Case, OpSpec, TensorSpec, ValueRange
from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.cann_opdef import read_opdef
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for

SPECS = list_operators()
REDUCIBLE = ("add", "exp", "foreach_add", "gather", "gelu", "muls", "rms_norm", "softmax")
BY_SPEC = [pytest.param(spec, id=spec.name) for spec in SPECS]


def reduced_extent(extent: int) -> int:
    """Shrink an extent by a rule of its own value, so that equal extents of a case stay equal."""
    return extent if extent <= 64 else 40 + extent % 17


def reduced(case: Case) -> Case:
    """Return a case of the same form with at most a few thousand elements."""

    def shrink(tensor: TensorSpec) -> TensorSpec:
        shapes = tuple(tuple(reduced_extent(extent) for extent in shape) for shape in tensor.shapes)
        values = tensor.values
        if values.kind == "integers":
            values = ValueRange(kind="integers", low=0, high=reduced_extent(int(values.high) + 1) - 1)
        return tensor.model_copy(update={"shapes": shapes, "values": values})

    return case.model_copy(
        update={
            "inputs": tuple(shrink(tensor) for tensor in case.inputs),
            "outputs": tuple(shrink(tensor) for tensor in case.outputs),
        }
    )


@pytest.mark.parametrize("name", REDUCIBLE)
def test_no_lazy_output_passes_on_a_small_case(name: str) -> None:
    spec = load_operator(name)
    for case in spec.cases:
        assert audit_case(spec, reduced(case), seed=3) == []


@pytest.mark.parametrize("spec", BY_SPEC)
def test_no_lazy_output_passes_on_the_smallest_case(spec: OpSpec) -> None:
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    assert audit_case(spec, smallest, seed=3) == []


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


ELEMENTWISE: dict[str, Callable[..., float]] = {
    "add": lambda a, x1, x2: x1 + x2,
    "exp": lambda a, x: math.exp(x),
    "muls": lambda a, x: x * a["value"],
    "gelu": lambda a, x: gelu(x),
}


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_elementwise_references_follow_their_formulas(name: str) -> None:
    spec = load_operator(name)
    for full in spec.cases:
        case = reduced(full)
        oracle = oracle_for(spec)
        inputs = oracle.inputs(case, 1)
        got = oracle.expected(case, inputs)[0][0].reshape(-1)
        columns = zip(*(arrays[0].reshape(-1).tolist() for arrays in inputs), strict=True)
        want = [ELEMENTWISE[name](case.attributes, *column) for column in columns]
        assert np.allclose(got, want, rtol=1e-5, atol=1e-7)


def test_softmax_reference_sums_to_one_and_orders_like_its_input() -> None:
    spec = load_operator("softmax")
    for full in spec.cases:
        case = reduced(full)
        (x,) = oracle_for(spec).inputs(case, 2)
        y = oracle_for(spec).expected(case, [x])[0][0].astype(np.float64)
        assert np.allclose(y.sum(axis=-1), 1.0)
        ratio = y[:, 1:] / y[:, :1]
        wide = x[0].astype(np.float64)
        assert np.allclose(np.log(ratio), wide[:, 1:] - wide[:, :1], atol=1e-5)


def test_rms_norm_reference_has_rows_of_unit_root_mean_square() -> None:
    spec = load_operator("rms_norm")
    for full in spec.cases:
        case = reduced(full)
        x, gamma = oracle_for(spec).inputs(case, 2)
        y = oracle_for(spec).expected(case, [x, gamma])[0][0]
        plain = y / gamma[0].astype(np.float64)
        assert np.allclose(np.sqrt((plain**2).mean(axis=-1)), 1.0, atol=1e-4)
        assert np.array_equal(np.sign(plain), np.sign(x[0].astype(np.float64)))


def test_gather_reference_takes_rows() -> None:
    spec = load_operator("gather")
    case = reduced(spec.cases[0])
    x, index = oracle_for(spec).inputs(case, 2)
    y = oracle_for(spec).expected(case, [x, index])[0][0]
    assert len(set(index[0].tolist())) > 10
    for i, row in enumerate(index[0].tolist()):
        assert np.array_equal(y[i], x[0][row])


def test_foreach_add_reference_works_tensor_by_tensor() -> None:
    spec = load_operator("foreach_add")
    for full in spec.cases:
        case = reduced(full)
        x1, x2 = oracle_for(spec).inputs(case, 2)
        y = oracle_for(spec).expected(case, [x1, x2])[0]
        assert len(y) == len(case.outputs[0].shapes)
        for left, right, sum_ in zip(x1, x2, y, strict=True):
            want = left.astype(np.float64) + case.attributes["alpha"] * right.astype(np.float64)
            assert np.allclose(sum_, want, atol=1e-6)


@pytest.mark.parametrize("spec", BY_SPEC)
def test_cases_definition_and_kernel_name_the_same_parameters(spec: OpSpec) -> None:
    definition = read_opdef(spec.baseline.tiling_text, spec.name)
    assert definition.op_type == spec.op_type
    inputs = [parameter.name for parameter in definition.inputs]
    outputs = [parameter.name for parameter in definition.outputs]
    for case in spec.cases:
        assert [tensor.name for tensor in case.inputs] == inputs
        assert [tensor.name for tensor in case.outputs] == outputs
        assert set(case.attributes) == {attribute.name for attribute in definition.attributes}
        dynamic = [parameter.dynamic for parameter in (*definition.inputs, *definition.outputs)]
        assert [tensor.dynamic for tensor in (*case.inputs, *case.outputs)] == dynamic
    entry = re.search(
        rf'extern "C" __global__ __aicore__ void {spec.name}\(([^)]*)\)', spec.baseline.kernel_text
    )
    assert entry is not None
    arguments = [argument.split()[-1] for argument in entry.group(1).split(",")]
    written = [f"{name}_ref" if name in inputs else name for name in outputs]  # in place
    assert arguments == [*inputs, *written, "workspace", "tiling"]


@pytest.mark.parametrize("spec", BY_SPEC)
def test_the_cases_have_every_dtype_column_of_the_definition(spec: OpSpec) -> None:
    definition = read_opdef(spec.baseline.tiling_text, spec.name)
    parameters = (*definition.inputs, *definition.outputs)
    columns = set(zip(*(parameter.dtypes for parameter in parameters), strict=True))
    reached = {tuple(tensor.dtype for tensor in (*case.inputs, *case.outputs)) for case in spec.cases}
    assert reached == columns


def whole_repeats(tensor: TensorSpec) -> bool:
    """Say whether every row of a tensor is a multiple of what one repeat of a vector instruction takes."""
    return all(tensor.dtype.size_bytes(shape[-1]) % 256 == 0 for shape in tensor.shapes if shape)


@pytest.mark.parametrize("spec", BY_SPEC)
def test_an_operator_has_few_cases_one_of_them_large_and_one_unaligned(spec: OpSpec) -> None:
    assert 2 <= len(spec.cases) <= 4
    assert max(case.traffic_bytes for case in spec.cases) >= 16 << 20
    unaligned = [case for case in spec.cases if not all(map(whole_repeats, (*case.inputs, *case.outputs)))]
    assert unaligned


def test_the_suite_has_three_levels_and_the_element_types_of_the_field() -> None:
    assert {spec.level for spec in SPECS} == {1, 2, 3}
    tensors = [tensor for spec in SPECS for case in spec.cases for tensor in (*case.inputs, *case.outputs)]
    assert {tensor.dtype.value for tensor in tensors} >= {"float32", "float16", "bfloat16", "int8", "int32"}


@pytest.mark.parametrize("spec", BY_SPEC)
def test_tiling_decides_how_the_work_is_shared(spec: OpSpec) -> None:
    """The tiling program asks for the cores of the chip, and the kernel computes with what it decides."""
    host, kernel = spec.baseline.tiling_text, spec.baseline.kernel_text
    assert re.search(r"GetCoreNum(Aiv|Aic)?\(", host)
    fields = re.findall(r"TILING_DATA_FIELD_DEF(?:_STRUCT)?\(\w+, (\w+)\)", host)
    assert fields
    assert [name for name in fields if not re.search(rf"\b\w+\.{name}\b", kernel)] == []


@pytest.mark.parametrize("spec", BY_SPEC)
def test_tunables_are_written_the_way_rewrites_look_for_them(spec: OpSpec) -> None:
    assert "context->SetBlockDim(" in spec.baseline.tiling_text
    if "ASCENDC_CUBE_ONLY" not in spec.baseline.kernel_text:
        assert re.search(r"constexpr int32_t BUFFER_NUM = [12];", spec.baseline.kernel_text)
        assert re.search(r"InitBuffer\(\w+, BUFFER_NUM, ", spec.baseline.kernel_text)


@pytest.mark.parametrize("spec", BY_SPEC)
def test_an_operator_is_one_host_file_and_one_kernel_file(spec: OpSpec) -> None:
    assert [file.path for file in spec.baseline.host.files] == [f"op_host/{spec.name}.cpp"]
    assert [file.path for file in spec.baseline.kernel.files] == [f"op_kernel/{spec.name}.cpp"]
    assert (Path(spec.folder) / "reference.py").is_file()

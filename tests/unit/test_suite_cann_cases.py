"""Our own cases for operators of a checkout: when they are used, and that each one is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from suite_folders import KERNEL, OP_DEF, write_example_operator, write_files

import ascend_gym.suite.cann_cases as cann_cases
from ascend_gym.core.errors import MisuseError
from ascend_gym.suite.compare import EXACT
from ascend_gym.suite.loader import load_operator, missing_requirements
from ascend_gym.suite.manifest import read_manifest
from ascend_gym.suite.oracle import oracle_for, reference_oracle

OWN_FOLDER = Path(cann_cases.__file__).with_name("cann_ops")
OWN = sorted(path.name for path in OWN_FOLDER.iterdir() if path.is_dir())
NAME = "inplace_add_rms_norm"
MOST_PASSED_BY_ZERO = 0.03
"""Largest share of the elements other than zero at which an output of zeros may stay within its bound."""
SOURCES = {
    "src/common/inc/unused.h": "// shared\n",
    f"src/norm/{NAME}/CMakeLists.txt": "target_sources(optiling PRIVATE op_host/tiling.cpp)\n",
    f"src/norm/{NAME}/op_host/tiling.cpp": "// gert::TilingContext\nIMPL_OP_OPTILING(Twice)\n",
    f"src/norm/{NAME}/op_host/definition.cpp": OP_DEF,
    f"src/norm/{NAME}/op_kernel/{NAME}.cpp": KERNEL,
}


def test_a_folder_of_a_checkout_gets_our_cases_and_its_own_sources(tmp_path: Path) -> None:
    folder = write_files(tmp_path, SOURCES) / "src/norm" / NAME
    spec = load_operator(NAME, op_dir=folder)
    assert spec.op_type == "InplaceAddRmsNorm"
    assert [tensor.name for tensor in spec.cases[0].outputs] == ["x1", "rstd", "x2"]
    assert "op_host/definition.cpp" in {file.path for file in spec.baseline.host.files}
    assert missing_requirements(NAME, folder) == ""
    oracle = oracle_for(spec)
    inputs = oracle.inputs(spec.cases[0], 1)
    expected = oracle.expected(spec.cases[0], inputs)
    assert np.allclose(expected[2][0], inputs[0][0].astype(np.float64) + inputs[1][0])


def test_a_folder_outside_a_checkout_keeps_its_example(tmp_path: Path) -> None:
    folder = write_example_operator(tmp_path / NAME)
    assert load_operator(NAME, op_dir=folder).op_type == "Twice"


def test_a_change_of_our_case_is_a_change_of_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {name: (OWN_FOLDER / NAME / name).read_text() for name in ("op.toml", "reference.py")}
    write_files(tmp_path / "own" / NAME, texts)
    monkeypatch.setattr(cann_cases, "_OWN", tmp_path / "own")
    spec = load_operator(NAME, op_dir=write_files(tmp_path, SOURCES) / "src/norm" / NAME)
    write_files(tmp_path / "own" / NAME, {"op.toml": texts["op.toml"].replace("1024", "1025")})
    with pytest.raises(MisuseError, match="changed since"):
        oracle_for(spec)


@pytest.mark.parametrize("name", OWN)
def test_every_reference_gives_finite_outputs_that_depend_on_the_inputs(name: str) -> None:
    case = read_manifest(OWN_FOLDER / name / "op.toml").cases()[0]
    oracle = reference_oracle(OWN_FOLDER / name)
    first, second = (oracle.expected(case, oracle.inputs(case, seed)) for seed in (0, 1))
    compared = [
        (one, other, tensor)
        for tensor, row, others in zip(case.outputs, first, second, strict=True)
        for one, other in zip(row, others, strict=True)
        if not tensor.open
    ]
    assert compared
    for one, other, tensor in compared:
        assert np.isfinite(one).all(), tensor.name
        assert not np.array_equal(one, other), tensor.name


@pytest.mark.parametrize("name", OWN)
def test_an_output_of_zeros_passes_almost_nowhere(name: str) -> None:
    oracle = reference_oracle(OWN_FOLDER / name)
    for case in read_manifest(OWN_FOLDER / name / "op.toml").cases():
        expected = oracle.expected(case, oracle.inputs(case, 0))
        for tensor, arrays in zip(case.outputs, expected, strict=True):
            tolerance = case.tolerance.get(tensor.dtype, EXACT)
            for array in arrays:
                values = array[array != 0]
                magnitude = np.abs(values if values.dtype.kind == "c" else values.astype(np.float64))
                assert magnitude.size, f"{case.case_id}: {tensor.name} is all zero"
                passed = np.mean(magnitude <= tolerance.atol + tolerance.rtol * magnitude)
                assert passed <= MOST_PASSED_BY_ZERO, f"{case.case_id}: {tensor.name}, {passed:.1%}"

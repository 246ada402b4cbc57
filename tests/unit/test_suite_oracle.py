from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from suite_folders import MANIFEST, REFERENCE, write_operator

from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Oracle
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for


def oracle_of(folder: Path, **changes: str) -> tuple[Oracle, list[list[np.ndarray]]]:
    spec = load_operator("twice", op_dir=write_operator(folder, **changes))
    oracle = oracle_for(spec)
    return oracle, oracle.expected(spec.cases[0], oracle.inputs(spec.cases[0], 0))


def test_inputs_expectation_and_verdict_belong_together(tmp_path: Path) -> None:
    spec = load_operator("twice", op_dir=write_operator(tmp_path))
    oracle, case = oracle_for(spec), spec.cases[0]
    inputs = oracle.inputs(case, 5)
    expected = oracle.expected(case, inputs)
    assert np.array_equal(expected[0][0], 2.0 * inputs[0][0])
    assert oracle.judge(case, [[2.0 * inputs[0][0]]], expected).correct
    assert not oracle.judge(case, [[inputs[0][0]]], expected).correct


def test_a_reference_cannot_change_its_inputs(tmp_path: Path) -> None:
    with pytest.raises(OperatorFormatError, match=r"reference.py:2: reference\(.*ValueError: .*read-only"):
        oracle_of(
            tmp_path,
            reference="def reference(inputs, attributes):\n    inputs['x'] *= 2\n    return {'y': 0}\n",
        )


def test_lists_go_in_and_come_out_as_lists(tmp_path: Path) -> None:
    _, expected = oracle_of(
        tmp_path,
        manifest=MANIFEST.replace("shape = [4, 5]", "shapes = [[2, 3], [7]]"),
        reference='def reference(inputs, attributes):\n    return {"y": [2.0 * x for x in inputs["x"]]}\n',
    )
    assert [array.shape for array in expected[0]] == [(2, 3), (7,)]


def test_absent_optional_inputs_are_left_out(tmp_path: Path) -> None:
    bias = '[[case.input]]\nname = "bias"\ndtype = "float32"\nshape = [5]\noptional_absent = true\n\n'
    _, expected = oracle_of(
        tmp_path,
        manifest=MANIFEST.replace("[[case.output]]", bias + "[[case.output]]"),
        reference="def reference(inputs, attributes):\n    (x,) = inputs.values()\n    return {'y': x}\n",
    )
    assert expected[0][0].shape == (4, 5)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("def reference(inputs, attributes)\n", "cannot be imported"),
        ("import no_such_module_anywhere\n", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def referenz(inputs, attributes):\n    return {}\n", "defines no function reference"),
        ('def reference(inputs, attributes):\n    return {"z": inputs["x"]}\n', r"returned \['z'\], without"),
        ('def reference(inputs, attributes):\n    return {"y": inputs["x"][0]}\n', r"the shapes \(\(5,\),\)"),
    ],
)
def test_a_bad_reference_is_reported(tmp_path: Path, reference: str, reason: str) -> None:
    with pytest.raises(OperatorFormatError, match=reason):
        oracle_of(tmp_path, reference=reference)


def test_a_folder_that_changed_since_loading_is_refused(tmp_path: Path) -> None:
    spec = load_operator("twice", op_dir=write_operator(tmp_path))
    write_operator(tmp_path, reference=REFERENCE.replace("*", "+"))
    with pytest.raises(MisuseError, match="changed since local/twice was loaded"):
        oracle_for(spec)
    reloaded = oracle_for(load_operator("twice", op_dir=tmp_path))
    case = spec.cases[0]
    inputs = reloaded.inputs(case, 0)
    assert np.array_equal(reloaded.expected(case, inputs)[0][0], inputs[0][0] + 2.0)


def test_references_of_two_folders_do_not_meet(tmp_path: Path) -> None:
    before = sys.modules.get("reference")
    _, first = oracle_of(tmp_path / "a")
    _, second = oracle_of(tmp_path / "b", reference=REFERENCE.replace("*", "-"))
    assert not np.array_equal(first[0][0], second[0][0])
    assert sys.modules.get("reference") is before, "whatever others have imported"


DEPENDENT = """
import numpy as np

def inputs(case, rng):
    {body}

def reference(inputs, attributes):
    return {{"y": inputs["x"]}}
"""


def test_inputs_of_the_reference_replace_what_is_drawn_and_follow_from_the_seed(tmp_path: Path) -> None:
    reference = DEPENDENT.format(body='return {"x": np.sort(rng.random((4, 5)))}')
    spec = load_operator("twice", op_dir=write_operator(tmp_path, reference=reference))
    oracle, case = oracle_for(spec), spec.cases[0]
    ((first,),), ((again,),), ((other,),) = (oracle.inputs(case, seed) for seed in (0, 0, 1))
    assert first.dtype == np.float32
    assert np.array_equal(first, np.sort(first))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return {'z': rng.random((4, 5))}", r"returned \['z'\], which are no inputs"),
        ("return {'x': rng.random((4, 6))}", r"shapes \(\(4, 6\),\), op.toml says"),
        ("return rng.random((4, 5))", "expected a dict of arrays by name, got ndarray"),
        ("raise SystemExit(3)", r"reference.py:5: inputs\(case, rng\).*SystemExit: 3"),
        ("return None", r"reference.py:4: inputs\(case, rng\).*got NoneType"),
        ("return {'x': rng.no_such_draw()}", r"reference.py:5: inputs\(case, rng\).*AttributeError"),
    ],
)
def test_bad_inputs_of_the_reference_are_reported(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(OperatorFormatError, match=reason):
        oracle_of(tmp_path, reference=DEPENDENT.format(body=body))


def test_an_output_may_be_a_data_file_that_belongs_to_the_version_of_the_folder(tmp_path: Path) -> None:
    values = 'values = { kind = "file", file = "data/y.npy" }\n'
    folder = write_operator(tmp_path, manifest=MANIFEST + values)
    (folder / "reference.py").unlink()
    (folder / "data").mkdir()
    golden = np.arange(20, dtype=np.float32).reshape(4, 5)
    np.save(folder / "data" / "y.npy", golden)
    spec = load_operator("twice", op_dir=folder)
    oracle = oracle_for(spec)
    ((expected,),) = oracle.expected(spec.cases[0], oracle.inputs(spec.cases[0], 0))
    assert np.array_equal(expected, golden)
    np.save(folder / "data" / "y.npy", golden.reshape(5, 4))
    assert load_operator("twice", op_dir=folder).folder_digest != spec.folder_digest
    with pytest.raises(
        OperatorFormatError, match=r"holds float32 \(5, 4\), op.toml says y is float32 \(4, 5\)"
    ):
        oracle.expected(spec.cases[0], oracle.inputs(spec.cases[0], 0))


LISTS = """
format = 1
[operator]
type = "Twice"
level = 1
category = "foreach"
description = "Twice its inputs"
[tolerance.float32]
atol = 1e-6
rtol = 1e-5
[[case]]
id = "lists"
[[case.input]]
name = "x"
dtype = "float32"
shapes = [[2], [3]]
values = { kind = "file", file = "data/{variant}/x_{index}.npy" }
[[case.input]]
name = "z"
dtype = "complex64"
shape = [2, 1]
values = { kind = "fixed", contents = [[1.0, 2.0], [3.0, 4.0]] }
[[case.input]]
name = "n"
dtype = "int32"
shapes = [[1], [2]]
values = { kind = "fixed", contents = [7, 8, 9] }
[[case.output]]
name = "y"
dtype = "float32"
shapes = [[2], [3]]
values = { kind = "file", file = "data/{variant}/y_{index}.npy" }
"""


def test_the_seed_chooses_among_variants_of_data_files_and_lists_have_a_file_for_each_tensor(
    tmp_path: Path,
) -> None:
    folder = write_operator(tmp_path, manifest=LISTS)
    (folder / "reference.py").unlink()
    for variant in range(3):
        (folder / f"data/{variant}").mkdir(parents=True)
        for index, size in enumerate((2, 3)):
            x = np.arange(size, dtype=np.float32) + 10 * variant
            np.save(folder / f"data/{variant}/x_{index}.npy", x)
            np.save(folder / f"data/{variant}/y_{index}.npy", 2.0 * x.astype(np.float64))
    spec = load_operator("twice", op_dir=folder)
    (case,), oracle = spec.cases, oracle_for(spec)
    x, z, n = oracle.inputs(case, 5)  # of three variants, the last one
    assert [array.tolist() for array in x] == [[20.0, 21.0], [20.0, 21.0, 22.0]]
    assert z[0].tolist() == [[1 + 2j], [3 + 4j]]
    assert [array.tolist() for array in n] == [[7], [8, 9]]
    assert [array.tolist() for array in oracle.expected(case, [x, z, n])[0]] == [[40, 42], [40, 42, 44]]
    assert oracle.inputs(case, 3)[0][0].tolist() == [0.0, 1.0]
    with pytest.raises(MisuseError, match="none of the 3 in its data files"):
        oracle.expected(case, [[x[0], x[1] + 1], z, n])

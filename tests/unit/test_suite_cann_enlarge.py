"""Larger shapes for the examples of cann-ops: what becomes of extents, and of the text that holds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_modules import fidelity_benchmark
from suite_folders import write_example_operator

from ascend_gym.core.errors import MisuseError
from ascend_gym.suite.imported import EXAMPLE_FOLDER
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.importer.writing import write_example

enlarged = fidelity_benchmark("enlarged_examples")


@pytest.mark.parametrize(
    ("rule", "shapes", "expected"),
    [
        ("odd", [(8, 2048)], {8: 24, 2048: 4097, 16384: 24 * 4097}),
        ("odd", [(2, 1, 32), (2, 1, 16)], {2: 6, 32: 65, 16: 33, 64: 390}),
        ("ratio", [(2, 32), (2, 16)], {2: 6, 16: 33, 32: 66, 64: 396}),
        ("double", [(100, 32)], {100: 200, 32: 64, 3200: 12800}),
        ("odd", [(), (1,)], {}),
    ],
)
def test_extents_grow_by_rule(rule: str, shapes: list[tuple[int, ...]], expected: dict[int, int]) -> None:
    grown = enlarged.enlarged_extents(shapes, rule)
    assert expected.items() <= grown.items()
    assert all(new > old for old, new in grown.items())


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(MisuseError, match="no rule 'huge' for larger shapes: there are odd, ratio, double"):
        enlarged.enlarged_extents([(2,)], "huge")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("std::vector<int64_t> xShape = {4, 2048};\n", "std::vector<int64_t> xShape = {9, 4097};\n"),
        ("input_shape = [4, 2048]", "input_shape = [9, 4097]"),
        ("std::vector<float> data(2048, 4.0f);", "std::vector<float> data(4097, 4.0f);"),
        ("aclrtMalloc(&x, 4, policy);", "aclrtMalloc(&x, 4, policy);"),
        ("x = np.zeros([4, 2048]), np.ones((4,)), [4, 4]", "x = np.zeros([9, 4097]), np.ones((9,)), [4, 4]"),
        ("N = 4", "N = 9"),
        ("for (i = shape.size() - 4; ;) n *= shape[4];", "for (i = shape.size() - 4; ;) n *= shape[4];"),
        ("kernel_size = 4", "kernel_size = 4"),
        ("x, y = z.chunk(4, dim=-1)", "x, y = z.chunk(4, dim=-1)"),
        ("# Copyright 2048", "# Copyright 2048"),
        ("// 2048 elements", "// 2048 elements"),
        ("x2048 = y.2048 + 20480", "x2048 = y.2048 + 20480"),
        ("x = np.array([1, 2,\n 3, 4])", "x = np.array([1, 2, 3, 4, 1, 2, 3, 4, 1])"),
        (
            "std::vector<float> xHostData = {0.5f, 2, 3, 7};",
            "std::vector<float> xHostData = {0.5f, 2, 3, 7, 0.5f, 2, 3, 7, 0.5f};",
        ),
        ("x = np.array([1, 2, 3])", "x = np.array([1, 2, 3])"),
    ],
)
def test_only_literals_of_shapes_change(line: str, expected: str) -> None:
    assert enlarged.enlarge_text(line, [(4, 2048), (4,)], "odd") == expected


def test_an_enlarged_example_is_a_case_with_data(tmp_path: Path) -> None:
    folder = write_example_operator(tmp_path / "twice")
    enlarged.enlarge_example(
        folder / EXAMPLE_FOLDER, write_example(folder, tmp_path / "imported", 1).shapes, "odd"
    )
    spec = load_operator("twice", op_dir=folder)
    (case,) = spec.cases
    assert case.inputs[0].shapes == ((12, 17),)
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, 0)
    assert (oracle.expected(case, inputs)[0][0] == 2.0 * inputs[0][0]).all()


def test_chosen_shapes_stand_wherever_the_old_ones_did() -> None:
    text = "a = np.ones((2, 3)) + np.array([1, 2, 3, 4, 5, 6]).reshape(2, 3)[2, 2]"
    resized = "a = np.ones((4, 2)) + np.array([1, 2, 3, 4, 5, 6, 1, 2]).reshape(4, 2)[2, 2]"
    assert enlarged.resize_text(text, {(2, 3): (4, 2), (1,): (5,)}) == resized


def test_a_resized_example_is_a_case_with_data(tmp_path: Path) -> None:
    folder = write_example_operator(tmp_path / "twice")
    (old,) = {shape for shape in write_example(folder, tmp_path / "imported", 1).shapes if len(shape) == 2}
    edits = [["xData(32), yData(32)", "xData(95), yData(95)"], ["32 * 4", "95 * 4"]]
    enlarged.resize_example(folder / EXAMPLE_FOLDER, {old: (5, 19)}, edits)
    (case,) = load_operator("twice", op_dir=folder).cases
    assert case.inputs[0].shapes == ((5, 19),)


def test_an_edit_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = write_example_operator(tmp_path)
    with pytest.raises(MisuseError, match=r"neither gen_data\.py nor main\.cpp has 'steps = 8'"):
        enlarged.resize_example(folder / EXAMPLE_FOLDER, {}, [["steps = 8", "steps = 9"]])

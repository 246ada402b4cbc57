"""Specifications of operators without sources: what they say, and what is told of wrong ones."""

import shutil
from pathlib import Path

import pytest

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import FrameworkCall
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.specification import extent
from npu_daemon.eager import bound_us, call_us
from npu_daemon.simulator.target import target_sheet

SWISH = Path(load_operator("generate/swish").folder)


def test_calls_read_inputs_from_hbm_once_and_know_what_they_write():
    spec = load_operator("generate/swish")
    case = spec.cases[0]
    size_bytes = case.inputs[0].size_bytes
    sigmoid, product = case.eager
    assert (sigmoid.fresh_bytes, sigmoid.read_bytes, sigmoid.written_bytes) == (size_bytes,) * 3
    assert (product.fresh_bytes, product.read_bytes, product.written_bytes) == (0, 2 * size_bytes, size_bytes)
    assert not spec.has_sources
    assert spec.case(spec.hidden_cases[0].case_id) is spec.hidden_cases[0]
    assert spec.hidden_cases[0] not in spec.cases


def _call(name, size_bytes):
    return FrameworkCall(name=name, fresh_bytes=size_bytes, read_bytes=size_bytes, written_bytes=size_bytes)


def test_the_bound_of_a_call_is_its_launch_and_more_the_more_it_moves():
    target = target_sheet("910B2")
    assert bound_us(_call("relu", 0), target) == min(launch.vector_us for launch in target.launches)
    assert bound_us(_call("relu", 1 << 24), target) > (1 << 24) / target.copies.hbm_gb_per_s / 1e3


@pytest.mark.parametrize(
    ("name", "combines"),
    [
        *((name, False) for name in ("relu", "mul", "clamp", "kl_div", "batch_norm_elementwise", "narrow")),
        *((name, True) for name in ("sum", "softmax", "mse_loss", "max_pool2d", "layer_norm", "cumsum")),
        ("batch_norm_statistics", True),
    ],
)
def test_a_call_takes_more_than_its_bound_and_most_where_elements_are_combined(name, combines):
    target = target_sheet("910B2")
    beyond_us = call_us(_call(name, 1 << 20), target) - bound_us(_call(name, 1 << 20), target)
    expected_us = target.combining_call_us if combines else target.elementwise_call_us
    assert beyond_us == pytest.approx(expected_us)
    assert target.combining_call_us > target.elementwise_call_us > 0


def test_shapes_are_expressions_over_sizes():
    names = {"width": 33, "kernel": 3, "padding": 1, "stride": 2}
    assert extent("(width + 2 * padding - kernel) // stride + 1", names) == 17
    assert extent(5, names) == 5


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('shape = ["rows", "columns"]', 'shape = ["rows", "breadth"]', "'breadth' is neither a size"),
        ('shape = ["rows", "columns"]', 'shape = ["rows", "columns ** 2"]', "not part of expressions"),
        ("sigmoid: x -> gate(rows, columns)", "sigmoid x", "not of the form"),
        ("sigmoid: x -> gate(rows, columns)", "sigmoid: x -> gate", "no new tensor"),
        ("[tolerance.float32]", "[tolerances.float32]", "tolerance"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(tmp_path, old, new, told):
    folder = tmp_path / "swish"
    shutil.copytree(SWISH, folder)
    text = (folder / "op.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "op.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(OperatorFormatError, match=r"op\.toml") as caught:
        load_operator("swish", op_dir=folder)
    assert told in str(caught.value)

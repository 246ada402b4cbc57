"""Outputs that passed are recognised by their bits, and only by these."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ascend_gym.core.protocols import Verdict
from ascend_gym.suite.inputs import Array
from npu_daemon.case_data import AcceptedOutputs

CASE, OTHER_CASE = Path("case"), Path("other")
GOOD = Verdict(True, 0.5, 0.25, 0.0, True, "all outputs agree with the reference")
DTYPES = [np.float16, np.float32, ml_dtypes.bfloat16, np.int8, np.int64, np.bool_, np.complex64]
LENGTHS = [0, 1, 7, 8, 4099, 300_001]


def outputs(dtype: type, length: int) -> list[list[Array]]:
    bits = np.random.default_rng(length).integers(0, 2, length * np.dtype(dtype).itemsize, dtype=np.uint8)
    return [[bits.view(dtype)], [bits.copy().view(dtype), np.zeros((2, 3), np.float32)]]


def copied(groups: list[list[Array]]) -> list[list[Array]]:
    return [[array.copy() for array in group] for group in groups]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_equal_bits_are_recognised(dtype: type, length: int) -> None:
    accepted, kept = AcceptedOutputs(), outputs(dtype, length)
    assert accepted.verdict(CASE, kept) is None
    accepted.note(CASE, kept, GOOD)
    assert accepted.verdict(CASE, copied(kept)) is GOOD
    assert accepted.verdict(OTHER_CASE, copied(kept)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS[1:])
def test_any_other_byte_is_another_output(dtype: type, length: int) -> None:
    accepted, kept = AcceptedOutputs(), outputs(dtype, length)
    accepted.note(CASE, kept, GOOD)
    size = kept[0][0].nbytes
    for place in {0, size // 2, size - 1}:
        changed = copied(kept)
        changed[0][0].view(np.uint8)[place] ^= 1
        assert accepted.verdict(CASE, changed) is None


def test_minus_zero_is_not_zero_and_a_nan_equals_itself() -> None:
    accepted = AcceptedOutputs()
    accepted.note(CASE, [[np.array([0.0, np.nan], np.float32)]], GOOD)
    assert accepted.verdict(CASE, [[np.array([-0.0, np.nan], np.float32)]]) is None
    assert accepted.verdict(CASE, [[np.array([0.0, np.nan], np.float32)]]) is GOOD


@pytest.mark.parametrize(
    "other",
    [
        [[np.zeros((4, 2), np.float32)]],
        [[np.zeros((2, 4), np.int32)]],
        [[np.zeros((2, 4), np.float32)] * 2],
        [[np.zeros((2, 4), np.float32)], []],
        [],
    ],
)
def test_another_layout_is_another_output(other: list[list[Array]]) -> None:
    accepted = AcceptedOutputs()
    accepted.note(CASE, [[np.zeros((2, 4), np.float32)]], GOOD)
    assert accepted.verdict(CASE, other) is None


def test_what_was_wrong_is_judged_again() -> None:
    accepted, bad = AcceptedOutputs(), Verdict(False, 1.0, 1.0, 1.0, False, "wrong")
    accepted.note(CASE, [[np.zeros(8)]], bad)
    assert accepted.verdict(CASE, [[np.zeros(8)]]) is None


def test_no_more_is_kept_than_allowed() -> None:
    accepted = AcceptedOutputs(limit_bytes=100)
    for name in ("first", "second", "third"):
        accepted.note(Path(name), [[np.zeros(40, np.uint8)]], GOOD)
    kept = [accepted.verdict(Path(name), [[np.zeros(40, np.uint8)]]) for name in ("first", "second", "third")]
    assert kept == [None, GOOD, GOOD]
    accepted.note(CASE, [[np.zeros(101, np.uint8)]], GOOD)
    assert accepted.verdict(CASE, [[np.zeros(101, np.uint8)]]) is None
    assert accepted.verdict(Path("third"), [[np.zeros(40, np.uint8)]]) is GOOD

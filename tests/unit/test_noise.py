"""Noise is off by default; when asked for, it is seeded and belongs to the code, case and position."""

from __future__ import annotations

import math
import statistics

import pytest
from conftest import make_candidate, make_spec
from pydantic import ValidationError

from ascend_gym.core.records import MeasureProtocol
from npu_daemon.simulator.profile import samples_us

CASE = make_spec().cases[0]
CANDIDATE = make_candidate()


def test_without_noise_every_sample_is_the_latency() -> None:
    assert samples_us(12.5, CANDIDATE, CASE, MeasureProtocol(repeats=3)) == (12.5, 12.5, 12.5)


def test_the_same_question_has_the_same_noise_and_a_longer_one_begins_alike() -> None:
    short, long = (MeasureProtocol(repeats=repeats, noise=0.05) for repeats in (3, 8))
    assert samples_us(12.5, CANDIDATE, CASE, long)[:3] == samples_us(12.5, CANDIDATE, CASE, short)


def test_another_seed_candidate_or_case_has_other_noise() -> None:
    protocol = MeasureProtocol(noise=0.05)
    answers = {
        samples_us(12.5, CANDIDATE, CASE, protocol),
        samples_us(12.5, CANDIDATE, CASE, protocol.model_copy(update={"noise_seed": 1})),
        samples_us(12.5, make_candidate(kernel="int another;"), CASE, protocol),
        samples_us(12.5, CANDIDATE, make_spec().cases[1], protocol),
    }
    assert len(answers) == 4


def test_another_comment_or_line_break_draws_no_other_samples() -> None:
    protocol = MeasureProtocol(noise=0.05)
    plain = make_candidate(kernel="int x = 1;\nint y;")
    dressed = make_candidate(kernel="/* once more */ int x = 1; // again\n\n  int y;\n")
    assert plain.digest != dressed.digest
    assert samples_us(12.5, plain, CASE, protocol) == samples_us(12.5, dressed, CASE, protocol)


def test_samples_scatter_about_the_latency_by_the_share_asked_for() -> None:
    samples = samples_us(10.0, CANDIDATE, CASE, MeasureProtocol(repeats=2000, noise=0.05))
    logarithms = [math.log(sample / 10.0) for sample in samples]
    assert statistics.fmean(logarithms) == pytest.approx(0.0, abs=0.005)
    assert statistics.stdev(logarithms) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("noise", [-0.1, 1.5])
def test_a_spread_that_is_no_share_is_refused(noise: float) -> None:
    with pytest.raises(ValidationError):
        MeasureProtocol(noise=noise)

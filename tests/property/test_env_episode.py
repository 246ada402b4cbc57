"""Episodes under any sequence of outcomes."""

import math

import pytest
from conftest import FakeEvaluator, make_candidate, make_spec
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status, rule_of
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import evaluate
from ascend_gym.env.reward import log_improvement
from ascend_gym.suite.requests import request_for

_FAILURES = st.sampled_from([status for status in Status if status is not Status.OK])
_OUTCOMES = st.lists(st.one_of(_FAILURES, st.floats(0.125, 8192.0)), max_size=30)
_SPEC = make_spec()


def _source(outcome):
    if isinstance(outcome, Status):
        return f"// status: {outcome.value}"
    return f"// latency: {outcome:.6f}"


def _evaluated(kernel):
    candidate = make_candidate(kernel=kernel)
    return candidate, evaluate(FakeEvaluator(), request_for(_SPEC, candidate, MeasureProtocol()))


def _start(budget):
    return Episode.start(_SPEC, budget, _evaluated("// kernel")[1])


@given(_OUTCOMES)
def test_return_is_the_log_of_the_final_speedup(outcomes):
    episode, total = _start(100), 0.0
    for outcome in outcomes:
        candidate, result = _evaluated(_source(outcome))
        total += log_improvement(episode.outcome(result))
        episode = episode.after(candidate, result)
    assert total == pytest.approx(math.log(episode.speedup), abs=1e-9)


@given(_OUTCOMES)
def test_incumbent_is_the_first_of_the_fastest_correct(outcomes):
    episode = _start(100)
    for outcome in outcomes:
        episode = episode.after(*_evaluated(_source(outcome)))
    measured = [outcome for outcome in outcomes if isinstance(outcome, float)]
    best = min(measured, default=math.inf)
    expected = _source(best) if best < 100.0 - 1e-6 else "// kernel"
    if best < 100.0 - 1e-6 or best > 100.0:
        assert episode.incumbent.kernel_text == expected
    assert episode.best_latency_us <= episode.baseline_latency_us


@given(_OUTCOMES, st.integers(1, 10))
def test_budget_counts_charged_outcomes_and_never_overshoots(outcomes, budget):
    episode, charged = _start(budget), 0
    for outcome in outcomes:
        candidate, result = _evaluated(_source(outcome))
        if charged == budget:
            with pytest.raises(ValueError, match="spent"):
                episode.after(candidate, result)
            break
        episode = episode.after(candidate, result)
        charged += rule_of(result.status).charged
        assert episode.spent == charged
        assert 0 <= episode.budget_left <= budget


def test_start_needs_a_measured_baseline():
    with pytest.raises(ValueError, match="timeout has no latency"):
        Episode.start(_SPEC, 3, _evaluated("// status: timeout")[1])


def test_neutral_outcomes_are_counted_until_a_verdict_comes():
    episode = _start(5)
    for _ in range(2):
        episode = episode.after(*_evaluated("// status: infra_error"))
    assert episode.neutral_in_a_row == 2
    assert episode.after(*_evaluated("// status: incorrect")).neutral_in_a_row == 0

"""What every reward keeps to, whatever the outcomes of an episode."""

import math

import pytest
from conftest import FakeEvaluator, make_candidate, make_spec
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import evaluate
from ascend_gym.env.reward import (
    IMPROVEMENT_REWARDS,
    RATING_REWARDS,
    REWARDS,
    Outcome,
    log_improvement,
    reward_named,
)
from ascend_gym.suite.requests import request_for

FAILURES = [status for status in Status if rule_of(status).reward is RewardRule.FAILURE]
LATENCIES_US = st.floats(0.01, 1e7)
PENALTIES = st.sampled_from([0.0, 0.1, 3.0])
BUDGET = 6


@st.composite
def _outcomes(draw, *, failed):
    baseline_us = draw(LATENCIES_US)
    incumbent_us = draw(st.floats(0.005, baseline_us))
    return Outcome(
        status=draw(st.sampled_from(FAILURES)) if failed else Status.OK,
        latency_us=None if failed else draw(LATENCIES_US),
        incumbent_latency_us=incumbent_us,
        baseline_latency_us=baseline_us,
        is_last=draw(st.booleans()),
        floor_us=0.001,
    )


@pytest.mark.parametrize("name", REWARDS)
@given(correct=_outcomes(failed=False), status=st.sampled_from(FAILURES), penalty=PENALTIES)
def test_a_correct_candidate_never_earns_less_than_a_failure_in_its_place(name, correct, status, penalty):
    reward = reward_named(name, penalty)
    failed = Outcome(**{**vars(correct), "status": status, "latency_us": None})
    assert reward(correct) >= reward(failed)
    if name in RATING_REWARDS or penalty:
        assert reward(correct) > reward(failed)


@pytest.mark.parametrize("name", REWARDS)
@given(
    outcome=st.one_of(
        _outcomes(failed=True),
        _outcomes(failed=False),
        st.just(Outcome(Status.OK, 50.0, 50.0, 50.0, is_last=True, floor_us=1.0)),
        st.just(Outcome(Status.INFRA_ERROR, None, 50.0, 50.0, floor_us=1.0)),
    ),
    penalty=PENALTIES,
)
def test_no_reward_is_a_negative_zero(name, outcome, penalty):
    reward = reward_named(name, penalty)(outcome)
    assert math.isfinite(reward)
    assert reward != 0.0 or math.copysign(1.0, reward) == 1.0


def _played(name, kernels):
    """Return the return of an episode that ends with its budget, and the episode."""
    spec, evaluator, reward = make_spec(), FakeEvaluator(), reward_named(name, 0.0)

    def result_of(candidate):
        known = evaluate(evaluator, request_for(spec, candidate, MeasureProtocol()))
        cases = [case.model_copy(update={"floor_us": 0.1}) for case in known.cases]
        return known.model_copy(update={"cases": tuple(cases)})

    episode, total = Episode.start(spec, BUDGET, result_of(spec.baseline)), 0.0
    for kernel in kernels:
        candidate = episode.incumbent if kernel is None else make_candidate(kernel=kernel)
        result = result_of(candidate)
        total += reward(episode.outcome(result))
        episode = episode.after(candidate, result)
    return total, episode


_TRIED = st.one_of(
    st.floats(1.0, 1000.0).map("// latency: {:.3f}".format),
    st.just("// status: timeout"),
)


@pytest.mark.parametrize("name", IMPROVEMENT_REWARDS)
@given(tried=st.lists(_TRIED, max_size=BUDGET), places=st.lists(st.integers(0, BUDGET), min_size=BUDGET))
def test_repeating_the_incumbent_adds_nothing_to_the_return_of_an_improvement_reward(name, tried, places):
    with_repeats: list[str | None] = list(tried)
    for place in places[: BUDGET - len(tried)]:
        with_repeats.insert(min(place, len(with_repeats)), None)
    total, episode = _played(name, with_repeats)
    failing, same = _played(name, [*tried, *["// status: timeout"] * (BUDGET - len(tried))])
    assert total == pytest.approx(failing, abs=1e-9)
    best_us, baseline_us = episode.best_latency_us, episode.baseline_latency_us
    assert best_us == same.best_latency_us
    final = {
        "log_improvement": math.log(baseline_us / best_us),
        "final_log_speedup": math.log(baseline_us / best_us),
        "speedup_gain": baseline_us / best_us - 1.0,
        "hap_gain": 0.1 / best_us - 0.1 / baseline_us,
    }
    assert total == pytest.approx(final[name], abs=1e-9)


@pytest.mark.parametrize("name", RATING_REWARDS)
def test_rating_rewards_do_pay_for_repeats_as_they_say(name):
    once = _played(name, ["// latency: 50", *["// status: timeout"] * (BUDGET - 1)])[0]
    again = _played(name, ["// latency: 50", *[None] * (BUDGET - 1)])[0]
    assert again > once


def test_the_default_pays_the_logarithm_of_the_final_speedup():
    assert REWARDS["log_improvement"] is log_improvement
    assert _played("log_improvement", ["// latency: 50", "// latency: 25"])[0] == pytest.approx(math.log(4))

import math
import pickle

import pytest

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.env.reward import Outcome, log_improvement, reward_named

FAILURES = [status for status in Status if rule_of(status).reward is RewardRule.FAILURE]
NEUTRALS = [status for status in Status if rule_of(status).reward is RewardRule.NEUTRAL]


def _outcome(status: Status, latency_us: float | None = None) -> Outcome:
    return Outcome(status, latency_us, incumbent_latency_us=50.0, baseline_latency_us=100.0)


def test_improvement_is_the_log_of_the_ratio_to_the_incumbent():
    assert log_improvement(_outcome(Status.OK, 25.0)) == pytest.approx(math.log(2))


@pytest.mark.parametrize("latency_us", [50.0, 50.1, 1e9])
def test_no_improvement_is_zero(latency_us):
    assert log_improvement(_outcome(Status.OK, latency_us), 3.0) == 0.0


@pytest.mark.parametrize("status", FAILURES)
def test_failures_cost_the_penalty(status):
    assert log_improvement(_outcome(status)) == 0.0
    assert log_improvement(_outcome(status), 0.25) == -0.25


@pytest.mark.parametrize("status", NEUTRALS)
def test_neutral_outcomes_cost_nothing(status):
    assert log_improvement(_outcome(status), 0.25) == 0.0


def test_named_reward_binds_its_penalty_and_pickles():
    reward = reward_named("log_improvement", 0.5)
    assert pickle.loads(pickle.dumps(reward))(_outcome(Status.TIMEOUT)) == -0.5


def test_unknown_name_lists_the_known():
    with pytest.raises(MisuseError, match="log_improvement"):
        reward_named("speed", 0.0)


@pytest.mark.parametrize("penalty", [-1.0, math.nan, math.inf])
def test_impossible_penalties_are_refused(penalty):
    with pytest.raises(MisuseError, match="failure_penalty"):
        reward_named("log_improvement", penalty)

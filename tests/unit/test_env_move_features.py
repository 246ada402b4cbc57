"""What the environment tells about each action of the ``rules`` family."""

import math

import numpy as np
import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status
from ascend_gym.env.move_features import MOVE_FEATURES
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.rewrite_actions import SLOTS_PER_RULE, numbered_moves

TILING = "constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n"
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n}\n"
)
SPEC = make_spec(tiling=TILING, kernel=KERNEL)


class ScriptedEvaluator(FakeEvaluator):
    """Gives the latencies of a list in turn; ``None`` is a candidate that does not build."""

    def __init__(self, *latencies_us):
        super().__init__({n: Status.BUILD_ERROR for n, us in enumerate(latencies_us) if us is None})
        self._latencies_us = latencies_us

    def _answer(self, number, request):
        latency_us = self._latencies_us[number]
        return super()._answer(number, request) if latency_us is None else ok_result(request, latency_us)


def _env(*latencies_us):
    evaluator = ScriptedEvaluator(*latencies_us)
    return AscendOpEnv(SPEC, actions="rules", observations="moves", budget=8, evaluator=evaluator)


def _row(observation, number):
    return dict(zip(MOVE_FEATURES, observation["moves"][number].tolist(), strict=True))


def test_rows_of_moves_that_there_are_tell_their_kind():
    observation, info = _env(100.0).reset()
    described = np.flatnonzero(observation["moves"].any(axis=1))
    assert described.tolist() == np.flatnonzero(info["action_mask"]).tolist()
    for number, move in numbered_moves(SPEC.baseline).items():
        row = _row(observation, number)
        assert row[f"family_{move.rule.family.value}"] == row[f"side_{move.rule.side.value}"] == 1
        assert row["forward"] == move.choice.forward
        assert row["busiest_pipe"] == pytest.approx(0.5)
        assert row["tried"] == row["rule_tries"] == 0


def test_rows_tell_how_a_move_and_its_rule_have_done():
    env = _env(100.0, None, 50.0, 80.0)
    observation, _ = env.reset()
    failing, improving = np.flatnonzero(observation["action_mask"])[[-1, 0]].tolist()
    assert failing // SLOTS_PER_RULE != improving // SLOTS_PER_RULE
    observation, *_ = env.step(failing)
    row = _row(observation, failing)
    assert (row["tried"], row["failed_before"], row["log_gain_before"], row["rule_failures"]) == (1, 1, 0, 1)
    observation, *_ = env.step(improving)
    row = _row(observation, failing)
    assert (row["tried"], row["tried_before"]) == (0, 1)  # there is a new incumbent
    again = int(np.flatnonzero(observation["action_mask"])[0])
    assert again // SLOTS_PER_RULE == improving // SLOTS_PER_RULE
    gain = math.log(2)
    row = _row(observation, again)
    assert row["rule_improvements"] == 1
    assert row["rule_log_gain"] == pytest.approx(gain)
    observation, *_ = env.step(again)
    row = _row(observation, again)
    assert row["tried"] == 1
    assert row["rule_tries"] == pytest.approx(math.log(3) / 2)
    assert row["rule_log_gain"] == pytest.approx(math.log(50 / 80))
    assert row["rule_best_log_gain"] == pytest.approx(gain)


def test_only_rules_are_described():
    with pytest.raises(MisuseError, match="goes with actions='rules'"):
        AscendOpEnv(SPEC, actions="knobs", observations="moves", evaluator=FakeEvaluator())

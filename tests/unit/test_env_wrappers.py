"""Wrappers: what they show, what they spend, and that recorded episodes are played again as they were."""

import doctest
import json
import pickle

import gymnasium
import numpy as np
import pytest
from conftest import BASELINE_LATENCY_US, FakeEvaluator, make_spec
from gymnasium.utils.env_checker import check_env

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status
from ascend_gym.env import wrappers
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.wrappers import (
    BudgetLimit,
    EpisodeRecorder,
    IncumbentOnly,
    SuccessHistory,
    TextToFeatures,
    replay,
)

KERNEL = "void Compute()\n{\n    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n}\n"
SPEC = make_spec(kernel=KERNEL)
OF_TEXT = [IncumbentOnly, TextToFeatures, SuccessHistory]


def _env(evaluator=None, **options):
    return AscendOpEnv(SPEC, evaluator=evaluator or FakeEvaluator(), **{"budget": 4, **options})


def _kernel(text):
    return {"tiling": "", "kernel": text}


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(wrappers).failed == 0


@pytest.mark.parametrize(
    "wrap", [IncumbentOnly, TextToFeatures, SuccessHistory], ids=lambda wrap: wrap.__name__
)
def test_check_env_passes(wrap):
    with pytest.warns(UserWarning, match="different from the unwrapped version"):
        check_env(wrap(_env()), skip_render_check=True)


@pytest.mark.parametrize(
    "wrap", [IncumbentOnly, TextToFeatures, SuccessHistory], ids=lambda wrap: wrap.__name__
)
def test_numbers_alone_are_refused(wrap):
    with pytest.raises(MisuseError, match="observations='text'"):
        wrap(_env(observations="features"))


def test_a_budget_spans_episodes_and_counts_what_is_charged():
    evaluator = FakeEvaluator({2: Status.INFRA_ERROR})
    env = BudgetLimit(_env(evaluator), evaluations=5)
    env.reset()
    ends = [env.step(_kernel(f"// {number}"))[2:4] for number in range(5)]  # one of them is not charged
    assert ends == [(False, False)] * 4 + [(True, False)]
    assert env.evaluations_left == 1
    env.reset()
    assert env.step(_kernel("// last"))[2:4] == (False, True)
    for spend in (env.reset, lambda: env.step(_kernel("// more"))):
        with pytest.raises(MisuseError, match="is spent"):
            spend()
    assert env.evaluations_left == 0


def test_the_incumbent_is_shown_and_nothing_else():
    env = IncumbentOnly(_env())
    assert env.reset()[0] == {"tiling": "// tiling", "kernel": KERNEL}
    assert env.step(_kernel("// latency: 50"))[0]["kernel"] == "// latency: 50"


def test_numbers_of_a_text_observation_in_a_row():
    env = TextToFeatures(_env())
    row, _ = env.reset()
    assert env.observation_space.contains(row)
    assert row[0] == pytest.approx(np.log1p(BASELINE_LATENCY_US), rel=1e-6)
    assert row[-len(Status) :].tolist() == [float(status is Status.OK) for status in Status]


def test_only_success_is_history_the_best_first():
    env = SuccessHistory(_env(), length=2)
    assert env.reset()[0]["history"] == f"// 100.000 us\n{KERNEL}\n"
    for text in ("// latency: 60", "// status: timeout", "// latency: 80"):
        observation, *_ = env.step(_kernel(text))
        assert observation["history"] == f"// 60.000 us\n// latency: 60\n\n// 100.000 us\n{KERNEL}\n"
    observation, *_ = env.step(_kernel("// latency: 50"))
    assert observation["history"] == "// 50.000 us\n// latency: 50\n\n// 60.000 us\n// latency: 60\n"
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("actions", ["sources", "edits", "rules", "knobs"])
def test_a_recorded_episode_is_played_again(tmp_path, actions):
    path = tmp_path / "episodes.jsonl"
    env = EpisodeRecorder(_env(actions=actions, max_source_chars=400), str(path))
    env.action_space.seed(4)
    for _ in range(2):
        env.reset()
        for _ in range(3):
            last = env.step(env.action_space.sample())
    env.close()
    again = _env(actions=actions, max_source_chars=400)
    for episode in (-1, 1):
        observation, info = replay(again, path, episode)
        assert observation["kernel"] == last[0]["kernel"]
        assert info["candidate_digest"] == last[4]["candidate_digest"]
    with pytest.raises(MisuseError, match="has 2 episodes"):
        replay(again, path, 2)


def test_episodes_of_several_operators_are_played_again_one_after_the_other(tmp_path):
    specs = [make_spec(name, kernel=KERNEL) for name in ("first", "second")]
    path = tmp_path / "episodes.jsonl"
    env = EpisodeRecorder(AscendOpEnv(specs, budget=2, evaluator=FakeEvaluator()), str(path))
    drawn = [env.reset(seed=seed)[1]["operator"] for seed in range(6)]
    env.close()
    again = AscendOpEnv(specs, budget=2, evaluator=FakeEvaluator())
    assert [replay(again, path, number)[1]["operator"] for number in range(6)] == drawn
    assert len(set(drawn)) == 2


class _Slower(FakeEvaluator):
    def submit(self, request):
        kernel = request.candidate.kernel_text.replace("latency: 50", "latency: 51")
        return super().submit(
            request.model_copy(update={"candidate": request.candidate.rewritten(kernel=kernel)})
        )


def test_a_replay_that_comes_to_something_else_says_where(tmp_path):
    path = tmp_path / "episodes.jsonl"
    env = EpisodeRecorder(_env(), str(path))
    env.reset()
    env.step(_kernel("// latency: 70"))
    env.step(_kernel("// latency: 50"))
    env.close()
    assert [json.loads(line)["latency_us"] for line in path.read_text().splitlines()] == pytest.approx(
        [100, 70, 50]
    )
    with pytest.raises(
        MisuseError, match=r"step 2 has latency_us 50\.0\d* on file, the replay came to 50\.9"
    ):
        replay(_env(_Slower()), path)


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda env: BudgetLimit(env, 0), "evaluations must be at least 1"),
        (lambda env: SuccessHistory(env, 0), "length must be at least 1"),
    ],
)
def test_impossible_arguments_are_refused(wrap, words):
    with pytest.raises(MisuseError, match=words):
        wrap(_env())


def test_wrapped_environments_are_made_again_from_their_spec():
    env = SuccessHistory(gymnasium.make("ascend_gym:AscendOp-v0", operator="gelu"), length=2)
    spec = pickle.loads(pickle.dumps(env.spec))
    assert spec.additional_wrappers[-1].kwargs == {"length": 2}
    assert gymnasium.make(spec).observation_space == env.observation_space

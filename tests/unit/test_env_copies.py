"""Copies of environments, by deepcopy and by pickle, go on with the same episode by themselves."""

import copy
import pickle

import gymnasium
import pytest
from conftest import FakeEvaluator, make_spec
from gymnasium.utils.env_checker import data_equivalence

from ascend_gym.env.actions import ACTIONS
from ascend_gym.env.observations import OBSERVATIONS
from ascend_gym.env.op_env import AscendOpEnv

KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n}\n"
)
SPECS = [make_spec(name, kernel=KERNEL) for name in ("first", "second", "third")]
PAIRS = [
    (actions, seen) for actions in ACTIONS for seen in OBSERVATIONS if seen != "moves" or actions == "rules"
]
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}
KEEP = {"tiling": "", "kernel": ""}


def _kernel(latency_us):
    return {"tiling": "", "kernel": f"// latency: {latency_us}"}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize(("actions", "observations"), PAIRS)
def test_a_copy_goes_on_with_the_same_episode_and_its_own_draws(copied, actions, observations):
    env = gymnasium.make(
        "ascend_gym:AscendOp-v0",
        operator=SPECS,
        budget=3,
        actions=actions,
        observations=observations,
        max_source_chars=4096,
        evaluator=FakeEvaluator(),
    )
    env.reset(seed=3)
    env.action_space.seed(3)
    env.step(env.action_space.sample())
    other = copied(env)
    steps = [env.action_space.sample() for _ in range(2)]
    ours = [env.step(action) for action in steps] + [env.reset()[1]["operator"] for _ in range(6)]
    theirs = [other.step(action) for action in steps] + [other.reset()[1]["operator"] for _ in range(6)]
    assert ours[1][2]
    assert data_equivalence(ours, theirs, exact=True)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_vector_environment_is_copied_with_its_episodes(copied):
    envs = gymnasium.make_vec(
        "ascend_gym:AscendOp-v0", 2, operator=SPECS, budget=2, evaluator=FakeEvaluator()
    )
    envs.reset(seed=1)
    actions = {"tiling": ("", ""), "kernel": ("// latency: 50", "")}
    envs.step(actions)
    other = copied(envs)
    for _ in range(2):
        assert data_equivalence(envs.step(actions), other.step(actions), exact=True)


class _Unpicklable(FakeEvaluator):
    """Holds what cannot be copied, as a socket does."""

    def __getstate__(self):
        raise TypeError("cannot be copied")


def test_a_deep_copy_shares_the_callers_evaluator():
    evaluator = _Unpicklable()
    env = AscendOpEnv(SPECS[0], evaluator=evaluator)
    env.reset()
    other = copy.deepcopy(env)
    other.step(_kernel(50))
    assert len(evaluator.requests) == 2
    other.close()
    assert evaluator.closed == 0
    assert env.step(_kernel(40))[0]["speedup"] == pytest.approx(2.5)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_opens_a_connection_of_its_own(copied, monkeypatch):
    opened = []

    def connect(address, *, options):
        opened.append((address, options.chip, _Unpicklable()))
        return opened[-1][-1]

    monkeypatch.setattr("ascend_gym.client.connect", connect)
    env = AscendOpEnv(SPECS[0], daemon="tcp://host:1", chip="910B4")
    env.reset()
    other = copied(env)
    assert len(opened) == 1
    other.step(KEEP)
    env.close()
    other.step(KEEP)
    other.close()
    assert [(*how, evaluator.closed) for *how, evaluator in opened] == [("tcp://host:1", "910B4", 1)] * 2

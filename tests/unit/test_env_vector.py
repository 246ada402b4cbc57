"""The vector environment of our own against gymnasium's over single environments; states to go back to."""

import pickle

import gymnasium
import numpy as np
import pytest
from conftest import FakeEvaluator, make_spec
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.status import Status
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.vector_env import AscendOpVectorEnv

KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n}\n"
)
SPECS = [make_spec(name, kernel=KERNEL) for name in ("first", "second", "third")]
COUNT = 3


class _Pricing(FakeEvaluator):
    """Prices candidates by their digest, and remembers how many requests were under way at a time."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def submit(self, request):
        us = 20 + int(request.candidate.digest[:4], 16) / 600
        kernel = f"{request.candidate.kernel_text}// latency: {us:.3f}\n"
        priced = request.model_copy(update={"candidate": request.candidate.rewritten(kernel=kernel)})
        return super().submit(priced)

    def arrived(self, timeout_s):
        self.batches.append(len(self._finished))
        return super().arrived(timeout_s)


def _options(**options):
    return {"operator": SPECS, "budget": 3, "max_source_chars": 2000, **options}


def _plain(value):
    """Return an observation or info as something that can be compared."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, [_plain(part) for part in value.ravel().tolist()]]
    return value


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(
    ("actions", "observations"),
    [
        *(("sources", "text"), ("edits", "features"), ("rules", "features"), ("rules", "moves")),
        *(("knobs", "features"), ("knobs", "text"), ("rules", "graph"), ("edits", "graph")),
    ],
)
def test_episodes_are_those_of_single_environments(mode, actions, observations):
    options = _options(actions=actions, observations=observations)
    ours = AscendOpVectorEnv(COUNT, autoreset_mode=mode, evaluator=_Pricing(), **options)
    theirs = SyncVectorEnv(
        [lambda: AscendOpEnv(evaluator=_Pricing(), **options) for _ in range(COUNT)], autoreset_mode=mode
    )
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(5)
    assert _plain(ours.reset(seed=7)) == _plain(theirs.reset(seed=7))
    for _ in range(9):
        action = ours.action_space.sample()
        step = ours.step(action)
        assert ours.observation_space.contains(step[0])
        assert _plain(step) == _plain(theirs.step(action))


def test_candidates_of_a_step_are_under_way_together():
    evaluator = _Pricing()
    envs = AscendOpVectorEnv(COUNT, evaluator=evaluator, **_options(actions="knobs"))
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    assert evaluator.batches == [COUNT, COUNT]


def test_it_is_what_make_vec_makes():
    envs = gymnasium.make_vec("ascend_gym:AscendOpTuning-v0", num_envs=2, evaluator=_Pricing(), **_options())
    assert isinstance(envs.unwrapped, AscendOpVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, _ = envs.reset(seed=1)
    assert observations.shape[0] == 2
    envs.close()


def test_without_autoreset_the_caller_resets_by_mask():
    envs = AscendOpVectorEnv(COUNT, autoreset_mode="Disabled", evaluator=_Pricing(), **_options(budget=1))
    envs.reset(seed=1)
    action = {"tiling": ("",) * COUNT, "kernel": ("",) * COUNT}
    *_, terminations, _, _ = envs.step(action)
    assert terminations.all()
    with pytest.raises(MisuseError, match=r"\[0, 1, 2\] are over"):
        envs.step(action)
    mask = np.array([True, False, True])
    observations, infos = envs.reset(options={"reset_mask": mask})
    assert observations["budget_left"].tolist() == [1, 0, 1]
    assert infos["_operator"].tolist() == mask.tolist()
    with pytest.raises(MisuseError, match=r"\[1\] are over"):
        envs.step(action)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_what_the_infrastructure_fails_is_truncated(mode):
    evaluator = FakeEvaluator(dict.fromkeys(range(1, 4), Status.INFRA_ERROR))
    envs = AscendOpVectorEnv(1, autoreset_mode=mode, evaluator=evaluator, **_options())
    envs.reset(seed=0)
    action = {"tiling": ("",), "kernel": ("// other",)}
    steps = [envs.step(action) for _ in range(3)]
    assert [bool(step[3][0]) for step in steps] == [False, False, True]
    assert ("final_info" in steps[-1][4]) == (mode == "SameStep")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"num_envs": 2, "autoreset_mode": "never"}, "NextStep, SameStep, Disabled"),
        ({"num_envs": 2, "budget": 0}, "budget must be at least 1"),
    ],
)
def test_impossible_arguments_are_refused(options, words):
    with pytest.raises(MisuseError, match=words):
        AscendOpVectorEnv(evaluator=FakeEvaluator(), **_options(**options))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seed": [1]}, "got 1"),
        ({"options": {"reset_mask": [True]}}, "bool array"),
        ({"options": {"colour": 1}}, "the only option"),
        ({"options": {"reset_mask": np.array([False, False])}}, "no episode"),
        ({"options": {"reset_mask": np.array([True, False]), "operator": SPECS[0]}}, "for all episodes"),
    ],
)
def test_resets_that_cannot_be_are_refused(arguments, words):
    envs = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options())
    with pytest.raises(MisuseError, match=words):
        envs.reset(**arguments)


def test_a_step_before_the_first_reset_is_misuse():
    envs = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options())
    with pytest.raises(ResetNeeded, match="call reset"):
        envs.step({"tiling": ("", ""), "kernel": ("", "")})


def test_a_state_can_be_gone_back_to_and_branches_are_their_own():
    env = AscendOpEnv(evaluator=_Pricing(), **_options(actions="rules", observations="features"))
    env.reset(seed=2)
    env.action_space.seed(2)
    actions = [env.action_space.sample() for _ in range(3)]
    env.step(actions[0])
    state = env.get_state()
    rest = [_plain(env.step(action)) for action in actions[1:]]
    assert rest[-1][2]
    evaluator = _Pricing()
    other = AscendOpEnv(evaluator=evaluator, **_options(actions="rules", observations="features"))
    observation, info = other.set_state(pickle.loads(pickle.dumps(state)))
    assert evaluator.requests == []
    assert info["evaluations"] == 1
    assert other.observation_space.contains(observation)
    assert [_plain(other.step(action)) for action in actions[1:]] == rest
    env.set_state(state)
    assert [env.reset()[1]["operator"] for _ in range(5)] == [other.reset()[1]["operator"] for _ in range(5)]


@pytest.mark.parametrize(
    "actions",
    [
        None,
        3,
        {"tiling": ("", "")},
        {"tiling": ("",), "kernel": ("",)},
        {"tiling": ("",) * 3, "kernel": ("",) * 3},
    ],
)
def test_batches_of_another_size_are_misuse(actions):
    envs = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options())
    envs.reset()
    with pytest.raises(MisuseError, match="a batch of 2"):
        envs.step(actions)


class _Interrupted(FakeEvaluator):
    """The second request of a batch is interrupted by Ctrl-C."""

    def __init__(self):
        super().__init__()
        self.cancelled = []

    def submit(self, request):
        if len(self.requests) == 4:
            raise KeyboardInterrupt
        return super().submit(request)

    def cancel(self, evaluation):
        self.cancelled.append(evaluation.request_id)
        super().cancel(evaluation)


def test_an_interrupt_while_a_batch_is_submitted_cancels_what_is_under_way():
    evaluator = _Interrupted()
    envs = AscendOpVectorEnv(COUNT, evaluator=evaluator, **_options(actions="knobs"))
    envs.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        envs.step(envs.action_space.sample())
    assert evaluator.cancelled == ["3"]


def test_a_closed_environment_stays_closed():
    envs = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options())
    envs.reset()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.reset()


def test_states_of_other_actions_chips_or_sizes_are_refused():
    env = AscendOpEnv(evaluator=FakeEvaluator(), **_options(actions="rules"))
    env.reset()
    for options, words in (
        ({"actions": "knobs"}, "knobs"),
        ({"actions": "rules", "chip": "910B1"}, "910B1"),
        ({"actions": "rules", "max_source_chars": len(KERNEL)}, ""),
    ):
        other = AscendOpEnv(evaluator=FakeEvaluator(), **_options(**options))
        if words:
            with pytest.raises(MisuseError, match=words):
                other.set_state(env.get_state())
        else:
            other.set_state(env.get_state())


def test_states_belong_to_a_budget_and_need_an_episode():
    env = AscendOpEnv(evaluator=FakeEvaluator(), **_options())
    with pytest.raises(ResetNeeded):
        env.get_state()
    env.reset()
    other = AscendOpEnv(evaluator=FakeEvaluator(), **_options(budget=9))
    with pytest.raises(MisuseError, match="budget of 3 evaluations, this environment 9"):
        other.set_state(env.get_state())


def test_batched_actions_come_apart_again():
    envs = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options())
    assert list(iterate(envs.action_space, {"tiling": ("a", "b"), "kernel": ("c", "d")})) == [
        {"tiling": "a", "kernel": "c"},
        {"tiling": "b", "kernel": "d"},
    ]


def test_a_reset_that_fails_in_the_same_step_loses_no_transition():
    evaluator = FakeEvaluator({4: Status.INFRA_ERROR, 5: Status.INFRA_ERROR})
    envs = AscendOpVectorEnv(2, autoreset_mode="SameStep", evaluator=evaluator, **_options(budget=1))
    envs.reset(seed=0)
    action = {"tiling": ("", ""), "kernel": ("// latency: 50", "// latency: 25")}
    observations, rewards, terminations, _, infos = envs.step(action)
    np.testing.assert_allclose(rewards, np.log([2.0, 4.0]))
    assert terminations.all()
    assert infos["final_info"]["evaluations"].tolist() == [1, 1]
    assert observations["budget_left"].tolist() == [0, 0]
    evaluator.statuses[6] = Status.INFRA_ERROR
    with pytest.raises(InfrastructureError, match="baseline ended as infra_error"):
        envs.step(action)
    observations, rewards, terminations, _, infos = envs.step(action)
    assert observations["budget_left"].tolist() == [1, 1]
    assert (rewards.tolist(), terminations.any()) == ([0.0, 0.0], False)
    again = AscendOpVectorEnv(2, evaluator=FakeEvaluator(), **_options(budget=1))
    again.reset(seed=0)
    again.step(action)
    assert again.step(action)[4]["operator"].tolist() == infos["operator"].tolist()


class _Refusing(FakeEvaluator):
    """Cannot send kernels of more than 1000 characters."""

    def submit(self, request):
        if len(request.candidate.kernel_text) > 1000:
            raise InfrastructureError("SUBMIT cannot be sent: too long")
        return super().submit(request)


def test_a_request_that_cannot_be_sent_does_not_fail_the_others():
    envs = AscendOpVectorEnv(3, evaluator=_Refusing(), **_options())
    envs.reset(seed=0)
    action = {"tiling": ("",) * 3, "kernel": ("// latency: 50", "x" * 1500, "// latency: 25")}
    _, rewards, *_, infos = envs.step(action)
    assert infos["status"].tolist() == ["ok", "infra_error", "ok"]
    np.testing.assert_allclose(rewards, [np.log(2.0), 0.0, np.log(4.0)])
    assert "too long" in infos["diagnostics"][1][0]
    action["kernel"] = ("x" * 1500,) * 3
    assert envs.step(action)[4]["status"].tolist() == ["infra_error"] * 3

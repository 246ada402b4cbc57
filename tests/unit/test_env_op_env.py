import math
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from conftest import FakeEvaluator, make_spec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence

import ascend_gym  # noqa: F401  registers the environment
from ascend_gym.core.errors import (
    DaemonUnreachableError,
    InfrastructureError,
    MisuseError,
    OperatorFormatError,
)
from ascend_gym.core.status import Status
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.task import MAX_NEUTRAL_IN_A_ROW
from ascend_gym.env.text_observation import STATUSES

KEEP = {"tiling": "", "kernel": ""}


def _kernel(text):
    return {"tiling": "", "kernel": text}


def _env(budget=4, statuses=None, **options):
    return AscendOpEnv(make_spec(), budget=budget, evaluator=FakeEvaluator(statuses), **options)


def _make(**options):
    return gymnasium.make("AscendOp-v0", operator=make_spec(), evaluator=FakeEvaluator(), **options)


@pytest.mark.parametrize("options", [{}, {"render_mode": "ansi", "budget": 1, "failure_penalty": 0.5}])
def test_check_env_passes(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(_make(max_source_chars=2000, **options).unwrapped)


def test_reset_shows_the_baseline():
    observation, info = _env().reset(seed=0)
    assert observation["kernel"] == "// kernel"
    assert observation["tiling"] == "// tiling"
    assert observation["best_latency_us"] == observation["baseline_latency_us"] == pytest.approx(100.0)
    assert observation["speedup"] == 1.0
    assert observation["budget_left"] == 4
    assert observation["diagnostics"] == ""
    assert info["operator"] == "core/toy"
    assert info["evaluations"] == 0
    assert not info["improved"]
    assert info["case_latency_us"] == {"small": pytest.approx(50.0), "large": pytest.approx(200.0)}


def test_faster_candidate_becomes_the_incumbent():
    env = _env()
    env.reset()
    observation, reward, terminated, truncated, info = env.step(_kernel("// latency: 50"))
    assert reward == pytest.approx(math.log(2))
    assert observation["kernel"] == env.incumbent.kernel_text == "// latency: 50"
    assert observation["speedup"] == pytest.approx(2.0)
    assert info["improved"]
    assert info["candidate_digest"] == info["incumbent_digest"] == env.incumbent.digest
    assert (terminated, truncated) == (False, False)


def test_slower_candidate_leaves_the_incumbent():
    env = _env()
    env.reset()
    observation, reward, _, _, info = env.step(_kernel("// latency: 400"))
    assert reward == 0.0
    assert observation["kernel"] == "// kernel"
    assert observation["latency_us"] == pytest.approx(400.0)
    assert observation["profile"][0] == pytest.approx(125.0)
    assert info["profile"]["task_duration_us"] == pytest.approx(500.0)
    assert not info["improved"]


def test_failure_is_an_observation():
    env = _env(failure_penalty=0.5)
    env.reset()
    observation, reward, _, _, info = env.step(_kernel("// status: runtime_fault"))
    assert reward == -0.5
    assert STATUSES[observation["status"]] is Status.RUNTIME_FAULT
    assert observation["latency_us"] == 0.0
    assert "[run_kernel] the toy ended as asked" in observation["diagnostics"]
    assert info["status"] == "runtime_fault"
    assert info["diagnostics"] == [observation["diagnostics"]]
    assert observation["budget_left"] == 3


def test_each_side_can_be_rewritten_alone_or_together():
    env = _env()
    env.reset()
    env.step({"tiling": "// latency: 90", "kernel": ""})
    observation, *_ = env.step({"tiling": "// latency: 80", "kernel": "// 内核 🚀"})
    assert (observation["tiling"], observation["kernel"]) == ("// latency: 80", "// 内核 🚀")


def test_episode_terminates_when_the_budget_is_spent():
    env = _env(budget=2)
    env.reset()
    assert [env.step(KEEP)[2] for _ in range(2)] == [False, True]
    with pytest.raises(ResetNeeded):
        env.step(KEEP)
    assert env.reset()[0]["budget_left"] == 2


def test_infrastructure_is_not_charged_and_truncates_when_it_persists():
    env = _env(budget=2, statuses=dict.fromkeys(range(1, 9), Status.INFRA_ERROR), failure_penalty=1.0)
    env.reset()
    steps = [env.step(KEEP) for _ in range(MAX_NEUTRAL_IN_A_ROW)]
    assert [step[1] for step in steps] == [0.0] * MAX_NEUTRAL_IN_A_ROW
    assert [step[3] for step in steps] == [False] * (MAX_NEUTRAL_IN_A_ROW - 1) + [True]
    assert not any(step[2] for step in steps)
    assert steps[-1][0]["budget_left"] == 2
    assert steps[-1][4]["status"] == "infra_error"
    with pytest.raises(ResetNeeded):
        env.step(KEEP)


def test_a_passing_infrastructure_error_leaves_the_episode_intact():
    env = _env(budget=1, statuses={1: Status.INFRA_ERROR})
    env.reset()
    assert not env.step(KEEP)[3]
    assert env.step(_kernel("// latency: 10"))[2]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (Status.INFRA_ERROR, InfrastructureError),
        (Status.INVALID_REQUEST, MisuseError),
        (Status.INCORRECT, OperatorFormatError),
        (Status.UNSUPPORTED, OperatorFormatError),
    ],
)
def test_a_baseline_without_latency_raises_by_blame(status, error):
    with pytest.raises(error, match=f"core/toy: the baseline ended as {status.value}"):
        _env(statuses={0: status}).reset()


def test_step_before_reset_raises():
    env = _env()
    with pytest.raises(ResetNeeded):
        env.step(KEEP)
    with pytest.raises(ResetNeeded):
        _ = env.incumbent


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"tiling": ""}, "'tiling' and 'kernel'"),
        ("kernel", "'tiling' and 'kernel'"),
        ({"tiling": 3, "kernel": ""}, "action\\['tiling'\\] must be a str"),
        ({"tiling": "", "kernel": "\ud800"}, "surrogates"),
        ({"tiling": "", "kernel": "k" * 101}, "raise max_source_chars"),
    ],
)
def test_actions_outside_the_space_raise_and_cost_nothing(action, message):
    env = _env(max_source_chars=100)
    env.reset()
    with pytest.raises(MisuseError, match=message):
        env.step(action)
    assert env.step(KEEP)[0]["budget_left"] == 3


def test_sources_that_do_not_fit_are_refused():
    with pytest.raises(MisuseError, match="the kernel source has 50 characters"):
        AscendOpEnv(make_spec(kernel="k" * 50), max_source_chars=49, evaluator=FakeEvaluator())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "at least 1"),
        ({"render_mode": "human"}, "ansi"),
        ({"reward": "nothing"}, "no reward"),
        ({"op_dir": "/somewhere"}, "op_dir goes with the name"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    with pytest.raises(MisuseError, match=message):
        AscendOpEnv(make_spec(), evaluator=FakeEvaluator(), **options)


def test_reset_can_go_over_to_another_operator():
    env = _env()
    assert env.reset(options={"operator": make_spec("other")})[1]["operator"] == "core/other"
    assert env.reset()[1]["operator"] == "core/other"


def test_unknown_reset_options_are_refused():
    with pytest.raises(MisuseError, match="'operators'"):
        _env().reset(options={"operators": "gelu"})


def test_reward_may_be_a_function():
    env = _env(reward=lambda outcome: outcome.baseline_latency_us / (outcome.latency_us or math.inf))
    env.reset()
    assert env.step(_kernel("// latency: 25"))[1] == pytest.approx(4.0)


@pytest.mark.parametrize("returned", ["fast", None, math.nan, math.inf])
def test_what_a_reward_function_returns_has_to_be_a_number(returned):
    env = _env(reward=lambda outcome: returned)
    env.reset()
    with pytest.raises(MisuseError, match=r"the reward function returned .*: expected a finite number"):
        env.step(_kernel("// latency: 25"))


def test_an_unknown_argument_is_told_with_what_was_probably_meant():
    with pytest.raises(MisuseError, match="no argument 'observation'; did you mean 'observations'"):
        _env(observation="features")


def test_requests_name_chip_operator_and_candidate():
    evaluator = FakeEvaluator()
    env = AscendOpEnv(make_spec(), chip="910B4", evaluator=evaluator)
    env.reset()
    env.step(_kernel("// k2"))
    request = evaluator.requests[-1]
    assert request.protocol.chip == "910B4"
    assert (request.op_id, request.op_folder) == ("core/toy", None)
    assert request.folder_digest == "f" * 64
    assert request.candidate.kernel_text == "// k2"


def test_same_seed_same_episode():
    def play():
        env = _env(budget=6)
        steps = [env.reset(seed=7)]
        env.action_space.seed(7)
        steps += [env.step(_kernel(f"// latency: {us}")) for us in (120, 80, 60)]
        steps += [env.step(env.action_space.sample()) for _ in range(3)]
        return steps

    assert data_equivalence(play(), play(), exact=True)


def test_render_tells_the_state_in_words():
    env = _env(render_mode="ansi")
    assert env.render() == "core/toy: no episode yet"
    env.reset()
    env.step(_kernel("// latency: 50"))
    env.step(_kernel("// status: timeout"))
    text = env.render()
    assert "2 of 4 evaluations" in text
    assert "baseline 100.00 us, best 50.00 us, speedup 2.000x" in text
    assert "last: timeout\n  [run_kernel]" in text
    assert _env().render() is None


def test_close_leaves_the_callers_evaluator_open():
    evaluator = FakeEvaluator()
    env = AscendOpEnv(make_spec(), evaluator=evaluator)
    env.reset()
    env.close()
    env.close()
    assert evaluator.closed == 0


def test_env_closes_what_it_opened(monkeypatch):
    opened = []

    def connect(address, *, options):
        opened.append((address, options.chip, FakeEvaluator()))
        return opened[-1][-1]

    monkeypatch.setattr("ascend_gym.client.connect", connect)
    env = AscendOpEnv(make_spec(), daemon="tcp://host:1", chip="910B4")
    assert opened == []
    env.reset()
    env.step(KEEP)
    env.close()
    env.close()
    assert [(*how, evaluator.closed) for *how, evaluator in opened] == [("tcp://host:1", "910B4", 1)]


class LostEvaluator(FakeEvaluator):
    """Loses its daemon after the first evaluation."""

    def arrived(self, timeout_s):
        if len(self.requests) > 1:
            raise DaemonUnreachableError("no daemon has answered")
        return super().arrived(timeout_s)


def test_a_lost_daemon_is_an_observation_and_a_new_one_is_used(monkeypatch):
    evaluators = [LostEvaluator(), FakeEvaluator()]
    opened = iter(evaluators)
    monkeypatch.setattr("ascend_gym.client.connect", lambda address, options: next(opened))
    env = AscendOpEnv(make_spec(), budget=1)
    env.reset()
    _, reward, terminated, truncated, info = env.step(_kernel("// latency: 50"))
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["status"], info["diagnostics"]) == ("infra_error", ["[service] no daemon has answered"])
    assert env.step(_kernel("// latency: 50"))[0]["speedup"] == pytest.approx(2.0)
    assert [each.closed for each in evaluators] == [1, 0]


def test_reset_without_a_daemon_raises(monkeypatch):
    def connect(address, *, options):
        raise DaemonUnreachableError("no daemon has answered")

    monkeypatch.setattr("ascend_gym.client.connect", connect)
    with pytest.raises(InfrastructureError, match="infra_error: \\[service\\] no daemon has answered"):
        AscendOpEnv(make_spec()).reset()


def test_spec_pickles_and_is_json():
    env_spec = gymnasium.spec("AscendOp-v0")
    assert pickle.loads(pickle.dumps(env_spec)) == env_spec
    assert "ascend_gym.env.op_env:AscendOpEnv" in env_spec.to_json()
    made = _make(budget=7)
    assert pickle.loads(pickle.dumps(made.spec)).kwargs["budget"] == 7


def test_make_by_module_and_id():
    env = gymnasium.make("ascend_gym:AscendOp-v0", operator=make_spec(), evaluator=FakeEvaluator())
    assert isinstance(env.unwrapped, AscendOpEnv)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_step_and_reset(mode):
    envs = gymnasium.make_vec(
        "AscendOp-v0",
        num_envs=2,
        vectorization_mode=mode,
        operator=make_spec(),
        evaluator=FakeEvaluator(),
        budget=2,
        max_source_chars=200,
        max_diagnostic_chars=200,
    )
    try:
        observations, _ = envs.reset(seed=3)
        assert observations["kernel"] == ("// kernel", "// kernel")
        actions = {"tiling": ("", ""), "kernel": ("// latency: 50", "// 慢 status 🐢")}
        observations, rewards, terminations, _, infos = envs.step(actions)
        np.testing.assert_allclose(rewards, [math.log(2), 0.0])
        assert observations["kernel"] == ("// latency: 50", "// kernel")
        assert list(infos["improved"]) == [True, False]
        assert not terminations.any()
        assert envs.step(actions)[2].all()
        observations, *_ = envs.step(actions)
        np.testing.assert_array_equal(observations["budget_left"], [2, 2])
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"operator": None}, "operator must be a name such as 'gelu'.* got None"),
        ({"operator": ["gelu", 3]}, "operator must be a name .* got \\['gelu', 3\\]"),
        ({"budget": 2.5}, "budget must be at least 1 evaluation, a whole number; got 2.5"),
        ({"budget": "20"}, "budget must be at least 1 .* got '20'"),
        ({"budget": True}, "got True"),
        ({"cases": 99}, "cases must be at most 2, as many as core/toy has, or None for all; got 99"),
        ({"cases": 1.5}, "cases must be at least 1, a whole number, or None for all; got 1.5"),
        ({"chip": "910B9"}, "no chip is named '910B9', did you mean '910B.'.*; there are: 910B1, "),
    ],
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_arguments_that_cannot_be_are_refused_when_it_is_made(make, options, words):
    with pytest.raises(MisuseError, match=words):
        make("AscendOp-v0", **{"operator": make_spec(), "evaluator": FakeEvaluator(), **options})


def test_numbers_of_numpy_count():
    assert _make(budget=np.int64(3), cases=np.int32(1)).reset()[0]["budget_left"] == 3


def test_too_many_cases_are_refused_for_the_next_operator_too():
    env = _env(cases=2)
    env.reset()
    (tensor_case, _) = make_spec().cases
    single = make_spec("single").model_copy(update={"cases": (tensor_case,)})
    with pytest.raises(MisuseError, match="at most 1, as many as core/single has"):
        env.reset(options={"operator": single})

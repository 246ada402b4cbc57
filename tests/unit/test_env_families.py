"""Action, observation and reward families of the environment."""

import math
import pickle

import gymnasium
import numpy as np
import pytest
from conftest import BASELINE_LATENCY_US, FakeEvaluator, make_spec
from gymnasium.utils.env_checker import check_env

import ascend_gym
from ascend_gym.core.errors import MisuseError, OperatorNotFoundError
from ascend_gym.core.status import Status
from ascend_gym.env.actions import ACTIONS
from ascend_gym.env.features import HISTORY, feature_names
from ascend_gym.env.kernel_graph import EdgeKind, NodeKind, graph_space, kernel_graph
from ascend_gym.env.observations import OBSERVATIONS
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.reward import Outcome, reward_named
from ascend_gym.env.rewrite_actions import (
    KNOB_POSITIONS,
    KNOBS,
    SLOTS_PER_RULE,
    numbered_moves,
    tunable_knobs,
)
from ascend_gym.rewrites.library import RULES

assert ascend_gym  # importing it registers the environments
TILING = "constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n"
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n}\n"
)
SPEC = make_spec(tiling=TILING, kernel=KERNEL)
PAIRS = [
    (actions, seen) for actions in ACTIONS for seen in OBSERVATIONS if seen != "moves" or actions == "rules"
]


def _env(evaluator=None, **options):
    return AscendOpEnv(SPEC, evaluator=evaluator or FakeEvaluator(), **{"budget": 4, **options})


@pytest.mark.parametrize(("actions", "observations"), PAIRS)
def test_check_env_passes_for_every_pair_of_families(actions, observations):
    env = gymnasium.make(
        "AscendOp-v0",
        operator=SPEC,
        budget=3,
        actions=actions,
        observations=observations,
        max_source_chars=4096,
        evaluator=FakeEvaluator(),
    ).unwrapped
    check_env(env)


@pytest.mark.parametrize("observations", ["features", "text"])
def test_a_mask_as_it_is_told_draws_positions_that_the_knobs_have(observations):
    env = _env(actions="knobs", observations=observations)
    _, info = env.reset()
    mask = info["action_mask"]
    assert mask.sum() < mask.size
    env.action_space.seed(0)
    for drawn in [env.action_space.sample(mask=form) for form in (mask, tuple(mask)) for _ in range(20)]:
        assert env.action_space.contains(drawn)
        assert mask[np.arange(KNOBS), drawn].all()
    weights = np.zeros((KNOBS, KNOB_POSITIONS))
    weights[:, 3] = 1.0
    assert env.action_space.sample(probability=weights).tolist() == [3] * KNOBS
    assert len({tuple(env.action_space.sample()) for _ in range(5)}) == 5


def test_masks_are_flat_and_boolean_for_maskable_agents():
    env = gymnasium.make("AscendOpTuning-v0", operator=SPEC, evaluator=FakeEvaluator())
    _, info = env.reset()
    masks = env.get_wrapper_attr("action_masks")()
    assert (masks.dtype, masks.shape) == (np.bool_, (KNOBS * KNOB_POSITIONS,))
    assert masks.reshape(KNOBS, KNOB_POSITIONS).tolist() == info["action_mask"].astype(bool).tolist()
    rules = _env(actions="rules")
    _, info = rules.reset()
    assert rules.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
    texts = _env()
    texts.reset()
    with pytest.raises(MisuseError, match="'sources' has no mask"):
        texts.action_masks()


def test_the_numeric_twin_is_a_box_and_integers():
    env = gymnasium.make("AscendOpTuning-v0", operator=SPEC, evaluator=FakeEvaluator())
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    assert isinstance(env.action_space, gymnasium.spaces.MultiDiscrete)
    observation, info = env.reset(seed=1)
    assert observation.shape == env.observation_space.shape
    assert info["action_mask"].shape == (KNOBS, KNOB_POSITIONS)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(("actions", "observations"), PAIRS)
def test_every_pair_of_families_works_in_the_vector_environments_of_gymnasium(actions, observations, mode):
    options = (
        {"vector_kwargs": {"shared_memory": False}} if (mode, observations) == ("async", "graph") else {}
    )
    envs = gymnasium.make_vec(
        "AscendOp-v0",
        num_envs=2,
        vectorization_mode=mode,
        operator=SPEC,
        actions=actions,
        observations=observations,
        max_source_chars=4096,
        evaluator=FakeEvaluator(),
        **options,
    )
    try:
        observed, _ = envs.reset(seed=0)
        assert envs.observation_space.contains(observed)
        observed, rewards, *_ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(observed)
        assert rewards.shape == (2,)
    finally:
        envs.close()


def test_a_move_of_a_rule_is_what_the_library_makes_of_the_incumbent():
    env = _env(actions="rules")
    observation, info = env.reset()
    (allowed,) = np.nonzero(observation["action_mask"])
    assert (info["action_mask"] == observation["action_mask"]).all()
    assert {RULES[number // SLOTS_PER_RULE].name for number in allowed} >= {"full_barrier_removal"}
    for action in allowed:
        move = numbered_moves(SPEC.baseline)[action]
        assert move.rule is RULES[action // SLOTS_PER_RULE]
        env.reset()
        _, _, _, _, info = env.step(action)
        assert info["candidate_digest"] == move.applied_to(SPEC.baseline).digest


def test_places_that_stand_for_many_come_first():
    barriers = "    PipeBarrier<PIPE_ALL>();\n    Exp(d, d, n);\n" * 12
    moves = numbered_moves(make_spec(kernel=f"void Compute()\n{{\n{barriers}}}\n").baseline)
    removals = [move for move in moves.values() if move.rule.name == "full_barrier_removal"]
    assert len(removals) == SLOTS_PER_RULE
    assert removals[0].site.covers_all


@pytest.mark.parametrize(
    ("actions", "action", "words"),
    [("rules", None, "heed the action mask"), ("edits", "make it faster", "### FILE")],
)
def test_an_action_that_is_no_candidate_costs_an_evaluation_and_asks_nobody(actions, action, words):
    evaluator = FakeEvaluator()
    env = _env(evaluator, actions=actions, failure_penalty=0.5)
    _, info = env.reset()
    if action is None:
        action = int(np.flatnonzero(info["action_mask"] == 0)[0])
    observation, reward, _, _, info = env.step(action)
    assert (info["status"], info["evaluations"], reward) == ("build_error", 1, -0.5)
    assert words in info["diagnostics"][0]
    assert observation["budget_left"] == 3
    assert len(evaluator.requests) == 1  # the baseline


def test_edits_change_what_they_say():
    env = _env(actions="edits")
    env.reset()
    edit = (
        "### FILE: op_kernel/toy.cpp\n<<<<<<< SEARCH\n    Ln(y, y, n);\n=======\n"
        "    Ln(y, y, n);  // latency: 25\n>>>>>>> REPLACE\n"
    )
    observation, reward, *_ = env.step(edit)
    assert reward == pytest.approx(math.log(BASELINE_LATENCY_US / 25))
    assert observation["kernel"] == KERNEL.replace("Ln(y, y, n);", "Ln(y, y, n);  // latency: 25")


@pytest.mark.parametrize("bad", [-1, len(RULES) * SLOTS_PER_RULE, 1.5, "tile"])
def test_numbers_outside_the_rules_are_misuse(bad):
    env = _env(actions="rules")
    env.reset()
    with pytest.raises(MisuseError, match="a number from 0"):
        env.step(bad)


@pytest.mark.parametrize("bad", [[0] * (KNOBS - 1), [KNOB_POSITIONS] * KNOBS, 3])
def test_positions_outside_the_knobs_are_misuse(bad):
    env = _env(actions="knobs")
    env.reset()
    with pytest.raises(MisuseError, match=f"{KNOBS} integers"):
        env.step(np.array(bad))


def test_knobs_mean_the_same_whatever_the_incumbent_is():
    env = _env(actions="knobs")
    _, info = env.reset()
    knobs = tunable_knobs(SPEC.baseline)
    assert 0 < len(knobs) < KNOBS
    assert info["action_mask"].sum(axis=1).tolist() == [
        *(min(KNOB_POSITIONS, knob.positions) for knob in knobs),
        *[1] * (KNOBS - len(knobs)),
    ]
    zeros = np.zeros(KNOBS, np.int64)
    last, beyond = zeros.copy(), zeros.copy()
    last[0], beyond[0] = knobs[0].positions - 1, KNOB_POSITIONS - 1
    beyond[len(knobs) :] = 3
    digests = [env.step(action)[4]["candidate_digest"] for action in (zeros, last, beyond)]
    assert digests[0] == SPEC.baseline.digest
    assert digests[1] == digests[2] != digests[0]


class _Faster(FakeEvaluator):
    """Everything but the baseline takes a quarter of its time."""

    def submit(self, request):
        if request.candidate != SPEC.baseline:
            kernel = f"{request.candidate.kernel_text}// latency: 25\n"
            request = request.model_copy(update={"candidate": request.candidate.rewritten(kernel=kernel)})
        return super().submit(request)


def test_features_tell_budget_speedup_history_and_the_incumbents_own_action():
    env = _env(_Faster({3: Status.TIMEOUT}), actions="knobs", observations="features")
    env.reset()
    action = np.zeros(KNOBS, np.int64)
    action[0] = 1
    observations = [env.step(taken)[0] for taken in (np.zeros(KNOBS, np.int64), action, action)]
    action[0] = 0  # the caller's array is the caller's
    names = feature_names(ACTIONS["knobs"](1))
    seen = dict(zip(names, observations[-1].tolist(), strict=True))
    assert seen["budget_left"] == 0.25
    assert seen["log_speedup"] == pytest.approx(math.log(4), rel=1e-6)
    assert [seen[f"measured_{k}"] for k in range(1, HISTORY + 1)] == [0, 1, 1, *[0] * (HISTORY - 3)]
    assert seen["log_speedup_2"] == pytest.approx(math.log(4), rel=1e-6)
    assert (seen["status_timeout"], seen["status_ok"]) == (1, 0)
    assert seen["action_0"] == pytest.approx(1 / (KNOB_POSITIONS - 1), rel=1e-6)
    assert seen["aiv_vec_ratio"] == 0.5
    assert seen["share_aiv_vec_instructions"] == pytest.approx(1 / 3, rel=1e-6)


def test_a_rewrite_that_outgrows_the_space_is_no_candidate():
    evaluator = FakeEvaluator()
    longest = max(len(TILING), len(KERNEL))
    env = _env(evaluator, actions="rules", max_source_chars=longest)
    env.reset()
    growing = [
        number
        for number, move in numbered_moves(SPEC.baseline).items()
        if len(move.applied_to(SPEC.baseline).kernel_text) > longest
    ]
    _, _, _, _, info = env.step(growing[0])
    assert info["status"] == "build_error"
    assert f"the space holds {longest}" in info["diagnostics"][0]
    assert len(evaluator.requests) == 1


GRAPH_KERNEL = """class K {
    void Init() { pipe.InitBuffer(inQueue, 2, 64); }
    void Process() {
        for (int i = 0; i < n; i++) {
            Compute(i);
            if (i > 1) { PipeBarrier<PIPE_V>(); }
        }
    }
    void Compute(int i) {
        LocalTensor<half> x = inQueue.DeQue<half>();
        Exp(x, x, n);
        x.SetValue(0, x.GetValue(1));
        inQueue.FreeTensor(x);
    }
};
"""


def test_the_graph_of_a_kernel_has_its_parts_and_how_they_hang_together():
    graph = kernel_graph(make_spec(kernel=GRAPH_KERNEL).baseline)
    assert graph_space().contains(graph)
    kinds = [list(NodeKind)[row[: len(NodeKind)].argmax()] for row in graph.nodes]
    assert kinds.count(NodeKind.FUNCTION) == 3
    assert kinds.count(NodeKind.QUEUE_OPERATION) == 3
    for kind in (NodeKind.LOOP, NodeKind.BRANCH, NodeKind.VECTOR, NodeKind.SYNC, NodeKind.QUEUE):
        assert kinds.count(kind) == 1
    edges = [
        (kinds[start], list(EdgeKind)[edge], kinds[end])
        for (start, end), edge in zip(graph.edge_links, graph.edges, strict=True)
    ]
    assert edges.count((NodeKind.QUEUE_OPERATION, EdgeKind.USES, NodeKind.QUEUE)) == 3
    assert (NodeKind.OTHER_CALL, EdgeKind.CALLS, NodeKind.FUNCTION) in edges
    assert (NodeKind.LOOP, EdgeKind.CONTAINS, NodeKind.BRANCH) in edges
    assert (NodeKind.VECTOR, EdgeKind.NEXT, NodeKind.SCALAR) in edges
    depth = graph.nodes[kinds.index(NodeKind.SYNC)][len(NodeKind)]
    assert depth == pytest.approx(1 / 8)


def test_a_kernel_without_code_has_an_empty_graph():
    graph = kernel_graph(make_spec(kernel="").baseline)
    assert graph.nodes.shape[0] == graph.edges.shape[0] == graph.edge_links.shape[0] == 0


def _outcome(latency_us, *, status=Status.OK, is_last=False):
    return Outcome(status, latency_us, 50.0, 100.0, is_last=is_last, floor_us=10.0)


@pytest.mark.parametrize(
    ("name", "faster", "slower", "failed"),
    [
        ("log_improvement", math.log(2), 0.0, -0.5),
        ("speedup", 4.0, 0.5, -0.5),
        ("speedup_gain", 2.0, 0.0, -0.5),
        ("negative_latency", -0.25, -2.0, -11.5),
        ("final_log_speedup", 0.0, 0.0, -0.5),
        ("hap", 0.4, 0.05, -0.5),
        ("hap_gain", 0.2, 0.0, -0.5),
    ],
)
def test_rewards_are_what_their_formulas_say(name, faster, slower, failed):
    reward = reward_named(name, failure_penalty=0.5)
    assert reward(_outcome(25.0)) == pytest.approx(faster)
    assert reward(_outcome(200.0)) == pytest.approx(slower)
    assert reward(_outcome(None, status=Status.INCORRECT)) == pytest.approx(failed)
    assert reward(_outcome(None, status=Status.INFRA_ERROR)) == 0.0


def test_the_sparse_reward_comes_with_the_last_evaluation_even_if_that_failed():
    reward = reward_named("final_log_speedup", failure_penalty=0.0)
    assert reward(_outcome(25.0, is_last=True)) == pytest.approx(math.log(4))
    assert reward(_outcome(None, status=Status.TIMEOUT, is_last=True)) == pytest.approx(math.log(2))
    env = _env(_Faster({2: Status.INFRA_ERROR}), reward="final_log_speedup", actions="rules", budget=2)
    _, info = env.reset()
    move = int(np.flatnonzero(info["action_mask"])[0])
    rewards = [env.step(move)[1] for _ in range(3)]  # the one in the middle is not charged
    assert rewards == pytest.approx([0.0, 0.0, math.log(4)])


def test_of_several_operators_the_seed_draws_one():
    others = [make_spec(name, tiling=TILING, kernel=KERNEL) for name in ("first", "second", "third")]

    def drawn(seed):
        env = AscendOpEnv(others, evaluator=FakeEvaluator())
        return [env.reset(seed=seed)[1]["operator"], *(env.reset()[1]["operator"] for _ in range(7))]

    assert drawn(3) == drawn(3)
    assert len({tuple(drawn(seed)) for seed in range(8)}) > 1
    assert set(drawn(3)) <= {"core/first", "core/second", "core/third"}
    env = AscendOpEnv(others, evaluator=FakeEvaluator())
    assert env.reset(options={"operator": SPEC})[1]["operator"] == "core/toy"
    assert env.reset()[1]["operator"] == "core/toy"


def test_the_name_of_a_suite_stands_for_its_operators():
    env = AscendOpEnv("core", evaluator=FakeEvaluator())
    drawn = {env.reset(seed=seed)[1]["operator"] for seed in range(60)}
    assert {"core/gelu", "core/softmax"} <= drawn


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"actions": "clicks"}, MisuseError, "sources, edits, rules, knobs"),
        ({"observations": "pixels"}, MisuseError, "text, features, moves, graph"),
        ({"operator": []}, MisuseError, "at least one"),
        ({"operator": ["gelu", "nothing"]}, OperatorNotFoundError, "nothing"),
    ],
)
def test_families_and_operators_that_do_not_exist_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        AscendOpEnv(**{"operator": SPEC, "evaluator": FakeEvaluator(), **options})


def test_specs_with_families_pickle():
    env = gymnasium.make("AscendOp-v0", operator=["gelu", "add"], actions="rules", observations="features")
    assert pickle.loads(pickle.dumps(env.spec)).kwargs["actions"] == "rules"


def test_an_environment_may_evaluate_on_the_smallest_cases_only():
    large, small = (
        case.model_copy(update={"inputs": (case.inputs[0].model_copy(update={"shapes": ((rows, 128),)}),)})
        for case, rows in zip(SPEC.cases, (16, 8), strict=True)
    )
    spec = SPEC.model_copy(update={"cases": (large, small)})
    evaluator = FakeEvaluator()
    env = AscendOpEnv(spec, actions="rules", cases=1, evaluator=evaluator)
    _, info = env.reset()
    env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert [request.case_ids for request in evaluator.requests] == [(small.case_id,)] * 2
    with pytest.raises(MisuseError, match="cases must be at least 1"):
        _env(cases=0)
    with pytest.raises(MisuseError, match="'cases': 1"):
        _env(budget=20).set_state(env.get_state())


class _WithFloors(FakeEvaluator):
    def submit(self, request):
        request_id = super().submit(request)
        cases = [case.model_copy(update={"floor_us": 10.0}) for case in self._finished[-1][1].cases]
        self._finished[-1] = request_id, self._finished[-1][1].model_copy(update={"cases": tuple(cases)})
        return request_id


def test_the_share_of_what_the_hardware_allows_needs_a_floor():
    env = _env(_WithFloors(), reward="hap")
    assert env.reset()[1]["floor_us"] == pytest.approx(10.0)
    kernel = f"{KERNEL}// latency: 40"
    assert env.step({"tiling": "", "kernel": kernel})[1] == pytest.approx(0.25)
    without = _env(reward="hap")
    assert without.reset()[1]["floor_us"] == 0.0
    with pytest.raises(MisuseError, match="hap and hap_gain need floor_us"):
        without.step({"tiling": "", "kernel": kernel})

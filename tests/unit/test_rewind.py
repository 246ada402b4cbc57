"""Rewinds: trajectories of validated pairs, what counts as one, and exact resume."""

import pytest
from conftest import FakeEvaluator, make_candidate, make_spec

from agents.ascend_optimizer.rewind import RewindSettings, RewindStrategy, motif_named, rewound_from_answer
from ascend_gym.core.protocols import Completion
from ascend_gym.core.status import Status
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal

SPEC = make_spec(kernel="int k;\n// latency: 100\n")
TAU = 0.01


class Model:
    """Answers from a list, then with words; keeps what it was asked, and insists when it is asked again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        if messages[-1].content.startswith("Your answer could not be used"):
            return Completion(messages[-2].content, 10, 5, "scripted")
        self.prompts.append(messages[-1].content)
        return Completion(self.answers.pop(0) if self.answers else "I am at a loss.", 10, 5, "scripted")


def rewound(latency_us, motif, more="", site="op_kernel/toy.cpp"):
    kernel = f"int k;\n// latency: {latency_us}\n// without {motif}\n{more}"
    return f"Motif: {motif}\nSite: {site}\n\n### FILE: op_kernel/toy.cpp\n```cpp\n{kernel}```\n"


def search(folder, llm, *, budget=10, evaluator=None, **settings):
    """Rewind the toy; return strategy and outcome."""
    strategy = RewindStrategy(SPEC, ModelClient(llm, seed=0), RewindSettings(TAU, **settings))
    with Journal(folder) as journal:
        outcome = run_search(
            SPEC, strategy, evaluator or FakeEvaluator(), BudgetLedger(Budget(budget)), journal, in_flight=3
        )
    return strategy, outcome


def _told(strategy):
    return [(step.trajectory, step.depth, step.motif) for step in strategy.steps]


def test_each_slower_version_is_the_start_of_the_next(tmp_path):
    model = Model(rewound(120, "one"), rewound(150, "two"), rewound(200, "three"))
    strategy, _ = search(tmp_path, model, budget=3)
    assert _told(strategy) == [(0, 0, "one"), (0, 1, "two"), (0, 2, "three")]
    first, second, third = strategy.steps
    assert first.fast.candidate == SPEC.baseline
    assert (second.fast, third.fast) == (first.slow, second.slow)
    assert [round(step.slow.latency_us) for step in strategy.steps] == [120, 150, 200]
    assert "-// without one" in first.diff
    assert "// latency: 150" in model.prompts[2]


def test_a_version_within_the_noise_does_not_count(tmp_path):
    model = Model(rewound(100.9, "noise"), rewound(101.1, "signal"))
    strategy, _ = search(tmp_path, model, budget=2)
    assert _told(strategy) == [(0, 0, "signal")]
    assert "## Tried in vain\n- noise: op_kernel/toy.cpp\n" in model.prompts[1]


@pytest.mark.parametrize("status", [Status.BUILD_ERROR, Status.INCORRECT, Status.TIMEOUT])
def test_a_version_that_fails_does_not_count_and_is_not_tried_again(tmp_path, status):
    model = Model(rewound(150, "bad", f"// status: {status.value}\n"), rewound(150, "good"), "", "")
    strategy, outcome = search(tmp_path, model, budget=4, patience=2)
    assert _told(strategy) == [(0, 0, "good")]
    assert outcome.history[1].result.status is status
    in_vain = "## Tried in vain\n- bad: op_kernel/toy.cpp\n"
    assert in_vain in model.prompts[1]
    search(
        tmp_path / "more",
        again := Model(*[rewound(150, "bad", "// status: incorrect\n"), "", ""]),
        budget=3,
        patience=2,
    )
    assert in_vain in again.prompts[2]


def test_one_motif_at_one_site_is_taken_out_once_in_a_trajectory(tmp_path):
    model = Model(rewound(120, "one"), rewound(100, "two"), rewound(140, "two"), rewound(130, "three"))
    strategy, outcome = search(tmp_path, model, budget=4)
    assert _told(strategy) == [(0, 0, "one"), (0, 1, "three")]
    assert isinstance(outcome.history[3].proposal, UnusableProposal)
    assert "before in this trajectory" in outcome.history[3].proposal.problem
    assert outcome.evaluations == 4


def test_a_trajectory_ends_after_its_length_and_the_next_knows_of_it(tmp_path):
    model = Model(rewound(120, "one"), rewound(150, "two"), rewound(120, "three"))
    strategy, _ = search(tmp_path, model, budget=3, length=2)
    assert _told(strategy) == [(0, 0, "one"), (0, 1, "two"), (1, 0, "three")]
    assert strategy.steps[2].fast.candidate == SPEC.baseline
    assert "## Known from other trajectories\n- one: op_kernel/toy.cpp\n- two: " in model.prompts[2]
    assert "## Taken out already\n- nothing\n" in model.prompts[2]


def test_a_trajectory_ends_when_patience_does(tmp_path):
    model = Model(rewound(120, "one"), "nothing", "nothing", rewound(120, "two"))
    strategy, outcome = search(tmp_path, model, budget=4, patience=2)
    assert _told(strategy) == [(0, 0, "one"), (1, 0, "two")]
    assert outcome.stop_reason is StopReason.BUDGET_SPENT


def test_a_trajectory_ends_where_it_is_too_slow_to_teach(tmp_path):
    model = Model(rewound(390, "one"), rewound(410, "two"), rewound(120, "three"))
    strategy, _ = search(tmp_path, model, budget=3, max_slowdown=4.0)
    assert _told(strategy) == [(0, 0, "one"), (0, 1, "two"), (1, 0, "three")]


def test_two_barren_trajectories_end_the_search(tmp_path):
    strategy, outcome = search(tmp_path, Model(), budget=50, patience=3)
    assert strategy.steps == []
    assert outcome.stop_reason is StopReason.STRATEGY_FINISHED
    assert outcome.evaluations == 6


def test_the_start_is_strengthened_first(tmp_path):
    faster = "### FILE: op_kernel/toy.cpp\n```cpp\nint k;\n// latency: 60\n```\n"
    model = Model("no idea", faster, rewound(90, "one"))
    strategy, outcome = search(tmp_path, model, budget=3, strengthen=2)
    kinds = [step.proposal.origin["kind"] for step in outcome.history]
    assert kinds == ["baseline", "strengthen", "strengthen", "rewind"]
    assert strategy.steps[0].fast.latency_us == pytest.approx(60)
    assert model.prompts[0].startswith("# Task: rewrite")
    assert model.prompts[2].startswith("# Task: rewind")


def test_an_attempt_that_turns_out_faster_is_where_the_next_trajectory_begins(tmp_path):
    model = Model(rewound(70, "backfires"), rewound(120, "one"), rewound(80, "two"))
    strategy, _ = search(tmp_path, model, budget=3, length=1)
    assert [(step.motif, round(step.fast.latency_us)) for step in strategy.steps] == [
        ("one", 100),
        ("two", 70),
    ]


def test_a_broken_run_resumes_to_the_same_journal(tmp_path):
    def answers():
        return Model(rewound(120, "one"), "garbage", rewound(150, "two"), rewound(90, "three"))

    unbroken, _ = search(tmp_path / "unbroken", answers(), budget=4)
    kept = (tmp_path / "unbroken" / JOURNAL_NAME).read_bytes().splitlines(keepends=True)[:5]
    timings = (tmp_path / "unbroken" / "timings.jsonl").read_bytes().splitlines(keepends=True)[:2]
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / JOURNAL_NAME).write_bytes(b"".join(kept))
    (tmp_path / "killed" / "timings.jsonl").write_bytes(b"".join(timings))
    fresh = FakeEvaluator()
    resumed, _ = search(tmp_path / "killed", answers(), budget=4, evaluator=fresh)
    whole = (tmp_path / "unbroken" / JOURNAL_NAME).read_bytes()
    assert (tmp_path / "killed" / JOURNAL_NAME).read_bytes() == whole
    assert resumed.steps == unbroken.steps
    assert len(fresh.requests) == 2


def test_a_broken_device_says_nothing_of_a_motif(tmp_path):
    ill = FakeEvaluator(statuses=dict.fromkeys((1, 2, 3), Status.INFRA_ERROR))
    model = Model(rewound(120, "one"), rewound(120, "two"))
    strategy, _ = search(tmp_path, model, budget=2, evaluator=ill, patience=1)
    assert _told(strategy) == [(0, 0, "two")]
    assert "## Tried in vain\n- nothing\n" in model.prompts[1]


def test_the_offline_model_rewinds_a_toy_without_repeating_itself(tmp_path):
    spec = make_spec(
        tiling="constexpr uint32_t TILE_LENGTH = 4096;\n",
        kernel="constexpr int32_t BUFFER_NUM = 2;\nclass K {\n    void Compute(uint32_t n)\n    {\n"
        "        Mul(d, a, b, n);\n        Add(d, d, c, n);\n    }\n};\n",
    )

    class SlowerEachTime(FakeEvaluator):
        def _answer(self, number, request):
            from conftest import ok_result

            return ok_result(request, 100.0 * 1.1**number)

    strategy = RewindStrategy(spec, ModelClient(OfflineModel(), seed=1), RewindSettings(TAU, length=5))
    with Journal(tmp_path) as journal:
        outcome = run_search(spec, strategy, SlowerEachTime(), BudgetLedger(Budget(10)), journal)
    assert all(not isinstance(step.proposal, UnusableProposal) for step in outcome.history)
    first = [(step.motif, step.site) for step in strategy.steps if step.trajectory == 0]
    assert len(first) == len(set(first)) == 5
    assert len({step.motif for step in strategy.steps}) >= 4


@pytest.mark.parametrize(
    ("answer", "motif", "site"),
    [
        (rewound(1, "double_buffer"), "double_buffer", "op_kernel/toy.cpp"),
        ("**Motif:** Double Buffering\n" + rewound(1, "other", site="x"), "double_buffering", "x"),
        ("- motif = `tile size`\n" + rewound(1, "other", site="`a   b`"), "tile_size", "a b"),
    ],
)
def test_answers_are_read_leniently(answer, motif, site):
    found = rewound_from_answer(answer, SPEC.baseline)
    assert (found.motif, found.site) == (motif, site)
    assert "latency: 1" in found.candidate.kernel_text


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", ProblemKind.EMPTY),
        ("### FILE: op_kernel/toy.cpp\n```cpp\nint x;\n```\n", ProblemKind.INCOMPLETE),
        ("Motif: ???\n### FILE: op_kernel/toy.cpp\n```cpp\nint x;\n```\n", ProblemKind.INCOMPLETE),
        ("Motif: tile_size\n", ProblemKind.NO_FILES),
        ("Motif: tile_size\n### FILE: op_kernel/toy.cpp\n```cpp\nint x\n", ProblemKind.TRUNCATED),
        ("Motif: tile_size\n### FILE: elsewhere.cpp\n```cpp\nint x;\n```\n", ProblemKind.UNKNOWN_PATH),
        ("\ud800 Motif: a\n", ProblemKind.NO_FILES),
    ],
)
def test_answers_that_cannot_be_used_are_values(answer, kind):
    found = rewound_from_answer(answer, make_candidate())
    assert isinstance(found, ParseProblem)
    assert found.kind is kind
    assert str(found).startswith("unusable answer")


def test_names_of_motifs():
    assert motif_named("  2 Buffers / Queue!") == "buffers_queue"
    assert motif_named("双缓冲") == ""
    assert len(motif_named("very " * 40)) <= 48

"""AscendOptimizer for language models: a question a step about both sides, tiling search when that is dry."""

import pytest
from conftest import FakeEvaluator, make_spec
from experiences import make_experience
from numbered_search import search, stages

from agents.ascend_optimizer.joint import TOLD_ANYWAY
from agents.ascend_optimizer.retrieval import Retrieved
from agents.ascend_optimizer.tiling_search import reads_tiling_data
from ascend_gym.cli.agent import agent_settings
from ascend_gym.cli.methods import RunSettings
from ascend_gym.core.protocols import Completion

SPEC = make_spec(tiling="int tiling = 0;\n", kernel="int kernel = 0;\n")
READS = make_spec(tiling="int tiling = 0;\n", kernel="GET_TILING_DATA(t, tiling);\nint kernel = 0;\n")


class Writer:
    """Answers with the next latency of a list, of both sides; what is no number is said as it stands."""

    def __init__(self, *latencies, kernel=""):
        self.latencies, self.kernel, self.conversations = list(latencies), kernel, []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.conversations.append(messages)
        wanted = self.latencies.pop(0)
        if isinstance(wanted, str):
            return Completion(wanted, 10, 5, "writer")
        number = len(self.conversations)
        tiling = f"### FILE: op_host/toy.cpp\n```cpp\nint tiling = {number};\n```\n"
        text = f"{self.kernel}int kernel = {number}; // latency: {wanted}\n"
        kernel = f"### FILE: op_kernel/toy.cpp\n```cpp\n{text}```\n"
        return Completion(f"Because {number}.\n{tiling}{kernel}", 10, 5, "writer")


class Bank:
    """Finds what it is given, and keeps the queries."""

    def __init__(self, *experiences):
        self.experiences, self.queries = experiences, []

    def top(self, query, k):
        self.queries.append(query)
        return [Retrieved(each, 0.5) for each in self.experiences]


def _search(folder, model, *, budget, spec=SPEC, **settings):
    evaluator = FakeEvaluator()
    return search(
        folder, model, budget=budget, spec=spec, evaluator=evaluator, refinement="joint", **settings
    )


def test_a_step_is_one_question_and_may_change_both_sides(tmp_path):
    model = Writer(90, 120, 80)
    outcome = _search(tmp_path, model, budget=3, refine_steps=3)
    assert len(model.conversations) == 3
    assert stages(outcome) == [("joint", 1, 0), ("joint", 1, 1), ("joint", 1, 2)]
    assert outcome.best_latency_us == pytest.approx(80)
    assert outcome.best.tiling_text == "int tiling = 3;\n"
    assert {messages[0].content for messages in model.conversations} == {model.conversations[0][0].content}


def test_answers_build_upon_attempts_and_repeat_none(tmp_path):
    repeated = (
        "### FILE: op_host/toy.cpp\n```cpp\nint tiling = 2;\n```\n"
        "### FILE: op_kernel/toy.cpp\n```cpp\nint kernel = 2; // latency: 120\n```\n"
    )
    model = Writer(90, 120, repeated, "TAKE: op_host/toy.cpp FROM attempt 2")
    outcome = _search(tmp_path, model, budget=3, refine_steps=3)
    assert "this is attempt 2 once more" in model.conversations[3][-1].content
    last = outcome.history[-1].proposal.candidate
    assert (last.tiling_text, last.kernel_text) == ("int tiling = 2;\n", "int kernel = 1; // latency: 90\n")


@pytest.mark.parametrize(("spec", "tiled"), [(SPEC, False), (READS, True)])
def test_tiling_is_searched_once_refinement_is_dry_and_there_is_something_to_tune(tmp_path, spec, tiled):
    assert reads_tiling_data(spec.baseline) == tiled
    nothing = "I know of nothing more to change."
    reading = "GET_TILING_DATA(t, tiling);\n" if tiled else ""
    model = Writer(90, nothing, nothing, *([nothing] * 2), kernel=reading)
    outcome = _search(tmp_path, model, budget=4, spec=spec, refine_steps=3, rounds=1)
    assert [stage for stage, *_ in stages(outcome)] == ["joint", "joint", *["tiling"] * tiled]


def test_experience_is_shown_above_a_gain_and_beyond_the_sheet(tmp_path):
    shown = make_experience(title="shown", fast_us=50.0, slow_us=100.0)
    small = make_experience(title="gains little", fast_us=99.0, slow_us=100.0)
    told = make_experience(title="told anyway", fast_us=50.0, slow_us=100.0, family=min(TOLD_ANYWAY))
    bank, model = Bank(small, told, shown), Writer(90)
    _search(tmp_path, model, budget=1, retriever=bank)
    prompt = model.conversations[0][-1].content
    assert ("### Experience 1: shown" in prompt, "gains little" in prompt, "told anyway" in prompt) == (
        *(True, False, False),
    )
    assert "dominant pipe" in bank.queries[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": "gpt"}, "joint"),
        ({"model": "offline"}, "paper"),
        ({"model": "gpt", "preset": "paper-v2"}, "paper"),
        ({"model": "gpt", "refinement": "paper"}, "paper"),
        ({"model": "offline", "refinement": "joint"}, "joint"),
    ],
)
def test_a_preset_and_the_offline_model_keep_the_form_of_the_paper(given, expected):
    settings = RunSettings(operator="add", method="ascend-optimizer", budget=8, **given)
    chosen = agent_settings(settings)
    assert chosen.refinement.value == expected
    assert (chosen.refine_steps == 8) == (expected == "joint")
    assert ("refinement" in settings.identity()) == ("refinement" in given)

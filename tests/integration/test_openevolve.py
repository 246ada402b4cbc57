"""The real OpenEvolve package under our driver: exact counts, runs that repeat, and nothing left behind."""

from pathlib import Path

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Completion, Proposal
from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.rewrites.fenced import sections
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm import model_named
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN, StopReason
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from baselines import openevolve as method
from baselines import package_link
from baselines.openevolve import Evolution, OpenEvolve

pytestmark = pytest.mark.slow

pytest.importorskip("openevolve", reason="openevolve is not installed: pip install 'ascend-gym[openevolve]'")

ENTRY = 'extern "C" __global__ __aicore__ void toy(GM_ADDR x)'
TOY = make_spec(tiling="int tile = 1024;\n", kernel=f"int buffers = 1;\n{ENTRY}\n{{\n    run();\n}}\n")
SMALL = Evolution(num_islands=2, population_size=4, archive_size=2, migration_interval=2, feature_bins=2)
ONE_ISLAND_SHORT_PROMPTS = Evolution(num_islands=1, max_prompt_characters=100)


class PricingEvaluator(FakeEvaluator):
    """Prices candidates by their digest; every fourth but the baseline is wrong."""

    def __init__(self, baseline):
        super().__init__()
        self.baseline = baseline

    def _answer(self, number, request):
        price = int(request.candidate.digest[:4], 16)
        if price % 4 == 0 and request.candidate != self.baseline:
            wrong = Diagnostic(phase=Phase.VERIFY, message=f"off by {price}")
            return failed_result(request, Status.INCORRECT, wrong)
        return ok_result(request, 50.0 + price / 600)


class ScriptedModel:
    """Answers from a list, over and over, and keeps the prompts."""

    def __init__(self, *answers):
        self.answers = answers
        self.prompts = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        answer = self.answers[len(self.prompts) % len(self.answers)]
        self.prompts.append(messages)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, 10, 5, "scripted")


@pytest.fixture
def children(monkeypatch):
    """Collect the processes that are started."""
    started = []
    original = method.Child
    monkeypatch.setattr(
        method, "Child", lambda *what, **also: started.append(original(*what, **also)) or started[-1]
    )
    return started


def _edit(old, new):
    return f"Because.\n\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def _search(folder, llm, *, budget, spec=TOY, evaluator=None, evolution=None, in_flight=2):
    strategy = OpenEvolve(spec, ModelClient(llm, seed=3), seed=3, evolution=evolution)
    ledger = BudgetLedger(Budget(budget))
    with Journal(folder) as journal:
        return run_search(spec, strategy, evaluator or FakeEvaluator(), ledger, journal, in_flight=in_flight)


def _offline(folder, budget, in_flight=1):
    """Search with the offline model on the sources of a real operator."""
    gelu = load_operator("gelu")
    evaluator = PricingEvaluator(gelu.baseline)
    outcome = _search(
        folder,
        model_named("offline"),
        budget=budget,
        spec=gelu,
        evaluator=evaluator,
        evolution=SMALL,
        in_flight=in_flight,
    )
    return outcome, evaluator


def _lines(file):
    return file.read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def run_of_ten(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ten")
    return folder, *_offline(folder, 10)


def test_with_the_offline_model_every_iteration_is_one_evaluation(run_of_ten, tmp_path):
    for (outcome, evaluator), budget in ((run_of_ten[1:], 10), (_offline(tmp_path, 5), 5)):
        assert outcome.stop_reason is StopReason.BUDGET_SPENT
        assert outcome.evaluations == budget
        assert len(outcome.history) == budget + 1
        submitted = [request.candidate.digest for request in evaluator.requests]
        assert len(submitted) == len(set(submitted)) > budget / 2
        assert set(submitted) == {step.proposal.candidate.digest for step in outcome.history}
        origins = [step.proposal.origin for step in outcome.history[1:]]
        assert [origin["iteration"] for origin in origins] == list(range(budget))
        assert all(origin["calls"][0]["prompt_tokens"] > 1000 for origin in origins)
    beginning = _lines(tmp_path / JOURNAL_NAME)[:-1]
    assert _lines(run_of_ten[0] / JOURNAL_NAME)[: len(beginning)] == beginning


def test_a_killed_run_is_resumed_to_the_same_journal_for_any_number_in_flight(run_of_ten, tmp_path):
    whole = _lines(run_of_ten[0] / JOURNAL_NAME)
    torn = [*whole[:8], whole[8][:40]]  # the fourth evaluation was under way
    (tmp_path / JOURNAL_NAME).write_bytes(b"".join(torn))
    (tmp_path / TIMINGS_NAME).write_bytes(b"".join(_lines(run_of_ten[0] / TIMINGS_NAME)[:4]))
    _, evaluator = _offline(tmp_path, 10, in_flight=3)
    assert _lines(tmp_path / JOURNAL_NAME) == whole
    assert run_of_ten[2].requests[-len(evaluator.requests) :] == evaluator.requests


UNUSABLE = {
    "I would rather not.": "No valid diffs found",
    "": "No valid diffs found",
    _edit("not there", "x"): "None of the 1 SEARCH block",
    _edit("int buffers = 1;", "int buffers = 1;"): "did not change",
    _edit("int buffers = 1;", "x" * 30_000): "exceeds maximum length",
    _edit("int buffers = 1;\n=======\nint b;", "int c;"): "delimiter",
    _edit(ENTRY, "void toy()"): "only text between EVOLVE-BLOCK markers may change",
    _edit("// EVOLVE-BLOCK-START", ""): "EVOLVE-BLOCK marker lines",
    _edit("### FILE: op_kernel/toy.cpp", "### FILE: /etc/passwd"): "only text between",
}


def test_answers_without_a_usable_program_cost_an_evaluation_each_and_are_told_to_the_model(tmp_path):
    evaluator, llm = FakeEvaluator(), ScriptedModel(*UNUSABLE)
    outcome = _search(
        tmp_path, llm, budget=2 * len(UNUSABLE), evaluator=evaluator, evolution=ONE_ISLAND_SHORT_PROMPTS
    )
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.evaluations == 2 * len(UNUSABLE) == len(llm.prompts)
    assert len(evaluator.requests) == 1
    proposals = [step.proposal for step in outcome.history[1 : len(UNUSABLE) + 1]]
    assert [proposal.origin["answer"] for proposal in proposals] == list(UNUSABLE)
    for proposal, problem in zip(proposals, UNUSABLE.values(), strict=True):
        assert problem in proposal.problem
    prompts = "".join(user.content for _, user in llm.prompts)
    assert "only text between EVOLVE-BLOCK markers may change" in prompts
    assert "### Program" not in prompts


def test_the_model_sees_task_program_measurement_and_history_and_duplicates_are_measured_once(tmp_path):
    faster = _edit("int buffers = 1;", "int buffers = 2; // latency: 50")
    wrong = _edit("    run();", "    run(); // status: incorrect")
    llm, evaluator = ScriptedModel(faster, wrong, faster, wrong), FakeEvaluator()
    outcome = _search(tmp_path, llm, budget=8, evaluator=evaluator, evolution=Evolution(num_islands=4))
    assert outcome.evaluations == 8
    assert outcome.speedup == pytest.approx(2.0)
    assert len(evaluator.requests) < 8
    (system, first), texts = llm.prompts[0], [user.content for _, user in llm.prompts]
    assert (system.role, first.role) == ("system", "user")
    assert first.content.startswith("# Task: rewrite\n")
    assert "small: (x float16 8x128)" in system.content
    assert "Fitness: 1.0000" in first.content
    assert "latency: 100.00 us" in first.content
    for text in texts:
        shown = [section for section in sections(text) if section.path and not section.has_edits]
        assert [section.path for section in shown] == ["op_host/toy.cpp", "op_kernel/toy.cpp"]
    assert any("Fitness: 2.0000" in text for text in texts)
    assert any("status: incorrect\n- [run_kernel]" in text for text in texts)
    assert any("### Program 1 (fitness" in text for text in texts)
    assert any("+    run(); // status: incorrect\n" in text for text in texts)  # an attempt that failed


def test_a_model_that_fails_ends_the_search_and_openevolve(tmp_path, children):
    llm = ScriptedModel(_edit("int buffers = 1;", "int buffers = 2;"), ModelError("quota"))
    outcome = _search(tmp_path, llm, budget=5)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "quota" in outcome.message
    assert outcome.evaluations == 1
    (child,) = children
    assert not Path(f"/proc/{child.pid}").exists()


def test_an_error_inside_openevolve_ends_the_search(tmp_path, monkeypatch, children):
    monkeypatch.setattr(method, "FEATURES", ("complexity", "unheard_of"))
    outcome = _search(tmp_path, ScriptedModel("no"), budget=2)
    assert outcome.stop_reason is StopReason.INFRASTRUCTURE
    assert "OpenEvolve ended with exit status" in outcome.message
    assert "unheard_of" in outcome.message
    assert not Path(f"/proc/{children[0].pid}").exists()


def test_one_proposal_at_a_time_until_the_evolution_is_over(children):
    llm = ScriptedModel("no")
    strategy = OpenEvolve(
        TOY, ModelClient(llm, seed=0), seed=0, evolution=Evolution(max_iterations=2, num_islands=1)
    )
    assert strategy.propose(4) == []
    baseline = ok_result(request_for(TOY, TOY.baseline, MeasureProtocol()), 100.0)
    strategy.observe(Proposal(TOY.baseline, BASELINE_ORIGIN), baseline)
    assert children == []
    try:
        for _ in range(2):
            (proposal,) = strategy.propose(4)
            assert strategy.propose(4) == []
            strategy.observe(proposal, baseline)
        assert strategy.propose(4) == []
    finally:
        strategy.close()
        strategy.close()
    assert not Path(f"/proc/{children[0].pid}").exists()


@pytest.mark.parametrize("installed", ["none", "0.3.9", "0.5.0"])
def test_another_version_is_refused_with_the_command_that_helps(monkeypatch, installed):
    def version(name):
        if installed == "none":
            raise package_link.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(package_link, "version", version)
    with pytest.raises(MisuseError, match=rf"{installed}.*pip install 'ascend-gym\[openevolve\]'"):
        OpenEvolve(TOY, ModelClient(ScriptedModel(), seed=0), seed=0)


@pytest.mark.parametrize(
    "setting", ["num_islands", "feature_bins", "num_top_programs", "num_diverse_programs"]
)
def test_settings_that_cannot_work_are_refused(setting):
    with pytest.raises(MisuseError, match=f"expected.*{setting}=-1"):
        Evolution(**{setting: -1})


@pytest.mark.parametrize(
    ("characters", "top", "diverse"),
    [(25_000, 3, 2), (25_001, 3, 1), (34_000, 3, 0), (100_000, 1, 0), (100_001, 0, 0), (300_000, 0, 0)],
)
def test_long_programs_are_shown_with_fewer_others(characters, top, diverse):
    shown = {"num_top_programs": top, "num_diverse_programs": diverse}
    assert Evolution().shown_programs(characters) == shown

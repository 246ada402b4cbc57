"""The real GEPA package under our driver: what is charged, what it goes on from, and what it is shown."""

from importlib.metadata import PackageNotFoundError

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Completion
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason, UnusableProposal
from baselines import package_link
from baselines.gepa import Gepa

SPEC = make_spec(tiling="int tile = 1024;\n", kernel="int buffers = 1;\nint passes = 9;\n")


class CountingEvaluator(FakeEvaluator):
    """The more buffers and the fewer passes, the faster."""

    def _answer(self, number, request):
        text = request.candidate.kernel_text
        buffers, passes = (int(text.split(f"{name} = ")[1][0]) for name in ("buffers", "passes"))
        return ok_result(request, 10.0 * passes / buffers)


class ScriptedModel:
    """Answers from a list and keeps the prompts."""

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.prompts.append(messages[1].content)
        return Completion(self.answers[len(self.prompts) - 1], 10, 5, "scripted")


def _edit(old, new):
    path = SPEC.baseline.kernel.main
    return f"### FILE: {path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


@pytest.mark.slow
def test_gepa_goes_on_from_what_improved_and_every_answer_costs_one_evaluation(tmp_path):
    pytest.importorskip("gepa", reason="GEPA is not installed: pip install 'ascend-gym[gepa]'")
    model = ScriptedModel(
        _edit("int buffers = 1;", "int buffers = 2;"),
        *["No changes today."] * 2,  # the second is the answer to the re-ask
        _edit("int passes = 9;", "int passes = 8;"),
        _edit("int passes = 8;", "int passes = 9;"),  # slower, known, and charged again
        _edit("int passes = 8;", "int passes = 7;"),
    )
    evaluator, ledger = CountingEvaluator(), BudgetLedger(Budget(5))
    strategy = Gepa(SPEC, ModelClient(model, seed=3), seed=3)
    with Journal(tmp_path) as journal:
        outcome = run_search(SPEC, strategy, evaluator, ledger, journal, in_flight=2)
    assert (outcome.stop_reason, outcome.evaluations) == (StopReason.BUDGET_SPENT, 5)
    unusable = [isinstance(step.proposal, UnusableProposal) for step in outcome.history]
    assert unusable == [False, False, True, False, False, False]
    latencies = [step.result.latency_us for step in outcome.history]
    told = [latency_us and round(latency_us, 3) for latency_us in latencies]
    assert told == [90.0, 45.0, None, 40.0, 45.0, 35.0]
    assert "int buffers = 1;" in model.prompts[0]
    assert all("int buffers = 2;" in prompt for prompt in model.prompts[1:])
    assert "latency: 40.00 us" in model.prompts[-1]


def test_the_extra_is_named_where_the_package_is_missing(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(package_link, "version", missing)
    with pytest.raises(MisuseError, match=r"none is installed.*pip install 'ascend-gym\[gepa\]'"):
        Gepa(SPEC, ModelClient(ScriptedModel(), seed=0), seed=0)

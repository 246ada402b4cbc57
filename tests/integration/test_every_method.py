"""What holds for every search method, composed as the command line composes it."""

import importlib.util
from contextlib import nullcontext
from unittest import mock

import pytest
from conftest import FakeEvaluator, ok_result
from openai_faults import faulty_server, log_of

from ascend_gym.cli.methods import Method, RunSettings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.outcome import StopReason, UnusableProposal

pytestmark = pytest.mark.slow

PACKAGE_OF = {
    Method.OPENEVOLVE: "openevolve",
    Method.GEPA: "gepa",
    Method.KNOB_SEARCH: "optuna",
    Method.PPO: "torch",
}
METHODS = [
    pytest.param(
        method,
        marks=pytest.mark.skipif(
            method in PACKAGE_OF and importlib.util.find_spec(PACKAGE_OF[method]) is None,
            reason=f"{PACKAGE_OF.get(method)} is not installed",
        ),
        id=method.value,
    )
    for method in Method
]
WITHOUT_MODEL = {Method.RANDOM_REWRITES, Method.GREEDY_RULES, Method.KNOB_SEARCH, Method.PPO}


class PricingEvaluator(FakeEvaluator):
    """Prices candidates by their digest."""

    def _answer(self, number, request):
        return ok_result(request, 20.0 + int(request.candidate.digest[:4], 16) / 600)


def _untrained(folder):
    """Return the folder of a policy that has learnt nothing."""
    from baselines.ppo_policy import network, save_policy

    folder.mkdir()
    save_policy(folder, "rules", network("rules", 0).state_dict())
    return str(folder)


def _run(folder, method, budget, evaluator=None, access=None, **settings):
    folder.mkdir()
    if method is Method.PPO:
        settings["checkpoint"] = _untrained(folder.with_name(f"{folder.name}-policy"))
    operator = "generate/softmax" if method is Method.ASCEND_CRAFT else "gelu"
    settings = RunSettings(operator=operator, method=method, budget=budget, **settings)
    spec = operator_of(settings)
    opening = nullcontext(evaluator or PricingEvaluator())
    return run_in_folder(opening, folder, spec, settings, access=access, in_flight=2)


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_spent_to_the_evaluation(tmp_path, method):
    for budget in (1, 7):
        evaluator = PricingEvaluator()
        outcome = _run(tmp_path / str(budget), method, budget, evaluator)
        assert (outcome.stop_reason, outcome.evaluations) == (StopReason.BUDGET_SPENT, budget)
        assert len(outcome.history) == budget + 1
        assert len(evaluator.requests) <= budget + 1


@pytest.mark.parametrize("method", METHODS)
def test_equal_runs_write_equal_journals(tmp_path, method):
    journals = []
    for name in ("first", "second"):
        _run(tmp_path / name, method, 4)
        journals.append((tmp_path / name / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1]


@pytest.mark.parametrize("method", [param for param in METHODS if param.values[0] not in WITHOUT_MODEL])
def test_every_answer_of_a_bad_server_is_accounted_for(tmp_path, monkeypatch, method):
    """Faults that may pass are asked again; refusals, nonsense and huge answers are failed builds."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    script = ["rate_limited", "fine", "refusal", "broken", "filtered", "cut", "not_json", "large", "fine"]
    with (
        faulty_server(*script, *script, "fine") as base_url,
        mock.patch("time.sleep"),  # the pauses before a server is asked again
    ):
        outcome = _run(tmp_path / "run", method, 5, access=ModelAccess(base_url=base_url), model="m")
        log = log_of(base_url)
    with Journal(tmp_path / "run") as journal:
        origins = [record["origin"] for record in journal.records if record["kind"] == "proposal"][1:]
    calls = [call for origin in origins for call in origin["calls"]]
    answered = [entry["fault"] for entry in log if entry["fault"] in ("fine", "refusal", "filtered", "large")]
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.evaluations == len(origins) == 5
    assert any(isinstance(step.proposal, UnusableProposal) for step in outcome.history)
    assert len(calls) == len(answered)
    assert outcome.spent.tokens == 120 * len(answered)
    assert "sk-secret" not in (tmp_path / "run" / JOURNAL_NAME).read_text("utf-8")

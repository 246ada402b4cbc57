"""Methods without a model on a real operator: what they propose builds, runs and gets faster."""

from contextlib import nullcontext

import pytest

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.client import connect
from ascend_gym.core.status import Status

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evaluator(simulator_daemon):
    evaluator = connect(simulator_daemon)
    yield evaluator
    evaluator.close()


@pytest.mark.parametrize("method", ["random-rewrites", "greedy-rules", "knob-search"])
def test_a_method_spends_its_budget_on_candidates_of_which_some_are_correct(evaluator, method, tmp_path):
    if method == "knob-search":
        pytest.importorskip("optuna")
    settings = RunSettings(operator="core/exp", method=method, budget=4, seed=1)
    outcome = run_in_folder(nullcontext(evaluator), tmp_path, operator_of(settings), settings, in_flight=2)
    statuses = [step.result.status for step in outcome.history]
    assert outcome.evaluations == 4
    assert Status.OK in statuses[1:]
    assert outcome.best_latency_us <= outcome.baseline_latency_us
    assert len({step.result.candidate_digest for step in outcome.history}) == 5

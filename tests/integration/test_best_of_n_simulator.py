"""Best-of-N with the offline model on the real simulator: faster and correct, and the same each time."""

import pytest

from ascend_gym.core.status import Status
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import StopReason
from ascend_gym.suite.loader import load_operator
from baselines.best_of_n import BestOfN
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

SAMPLES = 6


@pytest.fixture
def search(simulator, tmp_path):
    """Search an operator and return the outcome and the journal's bytes; nothing is cached between runs."""

    def run(name, in_flight):
        folder = tmp_path / f"{name}-{in_flight}"
        spec = load_operator(name)
        evaluator = InProcessEvaluator(simulator, folder / "cache")
        strategy = BestOfN(spec, ModelClient(OfflineModel(), seed=0), samples=SAMPLES)
        with Journal(folder) as journal:
            outcome = run_search(
                spec, strategy, evaluator, BudgetLedger(Budget(SAMPLES)), journal, in_flight=in_flight
            )
        evaluator.close()
        return outcome, (folder / JOURNAL_NAME).read_bytes()

    return run


@pytest.mark.parametrize("name", ["exp", "gelu"])
def test_six_samples_find_a_faster_correct_kernel(search, name):
    outcome, _ = search(name, 2)
    assert outcome.stop_reason is StopReason.BUDGET_SPENT
    assert outcome.evaluations == SAMPLES
    assert outcome.best_result.status is Status.OK
    assert outcome.speedup >= 1.01


def test_two_runs_give_the_same_journal_byte_for_byte(search):
    first, second = search("muls", 1), search("muls", 3)
    assert first[1] == second[1]
    assert first[0].best == second[0].best

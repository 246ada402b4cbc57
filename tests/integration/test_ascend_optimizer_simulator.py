"""AscendOptimizer with the offline model on the real simulator: both stages, faster and correct."""

import pytest
from experiences import make_experience

from agents.ascend_optimizer.agent import AscendOptimizer
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.embedders import LexicalEmbedder
from agents.ascend_optimizer.retrieval import Retriever
from agents.ascend_optimizer.settings import AgentSettings
from ascend_gym.core.status import Status
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.loader import load_operator
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

BUDGET = 4
BANK = ExperienceBank(
    [make_experience(motif="full_barrier_removal", title="No full barrier where queues order everything")]
)


def _search(simulator, folder, cache):
    spec, model_client = load_operator("gelu"), ModelClient(OfflineModel(), seed=0)
    embedder = LexicalEmbedder([experience.bottleneck for experience in BANK])
    strategy = AscendOptimizer(
        spec,
        online=model_client,
        offline=model_client,
        retriever=Retriever(BANK, embedder, "bottleneck"),
        settings=AgentSettings(tiling_steps=2, refine_steps=2),
    )
    evaluator = InProcessEvaluator(simulator, cache)
    with Journal(folder) as journal:
        outcome = run_search(spec, strategy, evaluator, BudgetLedger(Budget(BUDGET)), journal, in_flight=2)
    evaluator.close()
    return outcome


def test_both_stages_find_a_faster_correct_operator_and_the_same_one_again(simulator, tmp_path):
    outcome = _search(simulator, tmp_path / "first", tmp_path / "cache")
    assert outcome.evaluations == BUDGET
    assert outcome.best_result.status is Status.OK
    assert outcome.speedup > 1.02
    kinds = [step.proposal.origin["kind"] for step in outcome.history[1:]]
    assert kinds == ["refine"] * 2 + ["mutate-tiling"] * 2
    _search(simulator, tmp_path / "second", tmp_path / "cache")
    first, second = ((tmp_path / name / JOURNAL_NAME).read_bytes() for name in ("first", "second"))
    assert first == second

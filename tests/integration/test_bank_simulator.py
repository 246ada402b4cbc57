"""A small bank of ``add``, built on the real simulator twice: validated pairs, and the same bytes."""

import pytest

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.construction import ConstructionSettings, construct
from agents.ascend_optimizer.noise import FLOOR
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.loader import load_operator
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

SETTINGS = ConstructionSettings(budget=3, model="offline", seed=0, chip="910B2")


def test_rewinds_of_add_become_experience(simulator, tmp_path):
    evaluator = InProcessEvaluator(simulator, tmp_path / "cache")
    harvests = []
    for name in ("one", "two"):
        ledger = BudgetLedger(Budget(SETTINGS.budget))
        model_client = ModelClient(OfflineModel(), seed=SETTINGS.seed)
        harvests.append(
            construct(load_operator("add"), model_client, evaluator, ledger, tmp_path / name, SETTINGS)
        )
    evaluator.close()
    harvest = harvests[0]
    assert harvest.noise.spread == 0.0
    assert harvest.evaluations == 3
    assert len(harvest.experiences) >= 1
    assert not harvest.problems
    for experience in harvest.experiences:
        assert experience.slow_us > experience.fast_us * (1 + FLOOR)
        assert "aiv_" in experience.bottleneck
    for name, each in zip(("one", "two"), harvests, strict=True):
        ExperienceBank(each.experiences).in_order().save(tmp_path / f"{name}.jsonl")
    assert harvests[1] == harvest
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()

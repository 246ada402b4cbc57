"""AscendOptimizer composed from the settings of a run."""

import pytest
from conftest import make_spec
from experiences import make_experience

from agents.ascend_optimizer.agent import AscendOptimizer
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.retrieval import RandomRetriever, Retriever
from ascend_gym.cli.agent import agent_settings, retriever_of, rewind_steps_of
from ascend_gym.cli.methods import RunSettings, Setting, factory_of
from ascend_gym.cli.variants import variant_settings
from ascend_gym.core.errors import MisuseError
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient


@pytest.fixture
def bank(tmp_path):
    path = tmp_path / "bank.jsonl"
    ExperienceBank([make_experience()]).save(path)
    return path


def _settings(bank=None, **settings):
    values = {"operator": "toy", "method": "ascend-optimizer", "bank": str(bank) if bank else None}
    return RunSettings.model_validate({**values, **settings})


@pytest.mark.parametrize(("budget", "length"), [(1, 1), (5, 1), (20, 5), (40, 10), (400, 10)])
def test_stages_take_a_quarter_of_the_budget_and_ten_at_most(budget, length):
    settings = agent_settings(_settings(budget=budget))
    assert (settings.tiling_steps, settings.refine_steps) == (length, length)
    assert settings.first_steps == 2
    assert agent_settings(_settings(budget=budget, islands=3)).first_steps == 3  # a step for each island
    given = agent_settings(_settings(budget=budget, refine_steps=7))
    assert (given.refine_steps, given.first_steps) == (7, None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"preset": "paper-v1", "budget": 40}, ("alternate", 10, 10)),
        ({"preset": "paper-v2", "budget": 230}, ("refine-then-tile", 105, 105)),
        ({"preset": "paper-v2", "budget": 230, "refine_steps": 150}, ("refine-then-tile", 150, 60)),
        ({"preset": "paper-v2", "budget": 210, "rewind_steps": 0}, ("refine-then-tile", 105, 105)),
        ({"preset": "paper-v2", "budget": 1}, ("refine-then-tile", 1, 1)),
    ],
)
def test_presets_are_the_schedules_of_the_papers(settings, expected):
    agent = agent_settings(_settings(**settings))
    assert (agent.schedule.value, agent.refine_steps, agent.tiling_steps) == expected
    assert agent.first_steps is None


def test_version_2_of_the_paper_charges_twenty_evaluations_of_rewinding():
    assert rewind_steps_of(_settings(preset="paper-v2", budget=230)) == 20
    assert rewind_steps_of(_settings(preset="paper-v2", budget=230, rewind_steps=7)) == 7
    assert rewind_steps_of(_settings(preset="paper-v1", budget=230)) == 0
    assert rewind_steps_of(_settings(budget=230)) == 0


@pytest.mark.parametrize(
    ("ablate", "kind"),
    [([], Retriever), (["tiling"], Retriever), (["retrieval"], RandomRetriever), (["experience"], None)],
)
def test_ablations_decide_where_experience_comes_from(bank, ablate, kind):
    retriever = retriever_of(_settings(bank, ablate=ablate), "core/other")
    assert (type(retriever) if retriever else None) is kind


def test_the_operator_itself_is_left_out_unless_it_is_wanted(bank):
    assert retriever_of(_settings(bank), "core/toy").top("pipes wait", 3) == []
    assert retriever_of(_settings(bank), "cann-ops/foreach_toy_v2").top("pipes wait", 3) == []
    wanted = _settings(bank, leave_one_out=False)
    assert retriever_of(wanted, "core/toy").top("pipes wait", 3)
    assert _settings(bank).identity() != wanted.identity()


def test_nothing_is_found_for_what_is_not_alike(bank):
    assert retriever_of(_settings(bank), "core/other").top("pipes wait for each other", 3)
    assert retriever_of(_settings(bank, least_score=1.0), "core/other").top("quite another thing", 3) == []


def test_without_experience_no_bank_is_needed(tmp_path):
    missing = tmp_path / "nowhere.jsonl"
    assert retriever_of(_settings(missing, ablate=["experience"]), "core/other") is None
    assert retriever_of(_settings(missing, ablate=["kernel"]), "core/other") is None
    with pytest.raises(MisuseError, match="nowhere"):
        retriever_of(_settings(missing), "core/other")


def test_nothing_left_to_do_is_misuse():
    with pytest.raises(MisuseError, match="nothing to do"):
        agent_settings(_settings(ablate=["tiling", "kernel"]))


def test_the_contents_of_the_bank_are_part_of_the_identity_and_its_place_is_not(bank, tmp_path):
    identity = _settings(bank).identity()
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(bank.read_bytes())
    assert _settings(copy).identity() == identity
    ExperienceBank([make_experience(slow_us=13.0)]).save(copy)
    assert _settings(copy).identity() != identity
    assert {"schedule", "ablate", "embedder"} <= set(identity)


def test_other_methods_are_not_told_of_the_agent():
    identity = _settings(method="best-of-n").identity()
    assert not {"schedule", "ablate", "bank", "embedder"} & set(identity)


@pytest.mark.parametrize("method", ["ascend-craft", "iterate", "best-of-n"])
def test_settings_that_came_late_are_told_only_where_they_are_used(method):
    late = {"lowering", "examples", "pass_builds", "builds", "tools"}
    assert not late & set(_settings(method=method).identity())
    assert _settings(method=method, examples="basic").identity()["examples"] == "basic"


@pytest.mark.parametrize(
    "variant", ["no-tiling", "no-kernel", "no-experience", "no-retrieval", "no-tiling,no-experience"]
)
def test_every_ablation_is_composed(bank, variant):
    model_client = ModelClient(OfflineModel(), seed=0)
    settings = variant_settings(f"ascend-optimizer:{variant}", operator="toy", bank=str(bank))
    strategy = factory_of(settings.method)(Setting(make_spec(), settings, model_client, model_client))
    assert isinstance(strategy, AscendOptimizer)
    assert len(settings.ablate) == 1 + variant.count(",")

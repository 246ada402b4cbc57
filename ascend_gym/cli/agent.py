"""Composes AscendOptimizer from the settings of a run: bank, embedder, retrieval, stage lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agents.ascend_optimizer.settings import (
    SWITCH_EVERY,
    Ablation,
    AgentSettings,
    Preset,
    Refinement,
    Schedule,
)
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Embedder, Strategy
from ascend_gym.core.records import OpSpec
from ascend_gym.core.toml_file import reason_of
from ascend_gym.rewrites.fenced import fenced
from ascend_gym.search.llm import OFFLINE_MODEL, embedder_named
from ascend_gym.search.model_client import ModelClient
from ascend_gym.staged.examples import Examples, example_for

if TYPE_CHECKING:
    from agents.ascend_optimizer.bank import ExperienceBank
    from agents.ascend_optimizer.experience import Experience
    from agents.ascend_optimizer.own_rewinds import OwnRewinds
    from agents.ascend_optimizer.retrieval import ExperienceRetriever
    from ascend_gym.cli.methods import RunSettings, Setting

LEXICAL_EMBEDDER = "lexical"
_LEAST_SCORES = {LEXICAL_EMBEDDER: 0.13, "minilm": 0.36}  # nine of ten right answers reach them (measured)
_LEAST_GAIN = 1.01  # of experience from the bank: what gains less is not worth its length in a prompt
_FIRST_STEPS = 2  # of a pass of the first round, or one for each island: both sides gain early
_PATIENCE = 3  # steps in vain after which a pass ends
_LEAST_SCORE = 0.1  # of other embedders, whose scores are not known


def ascend_optimizer_of(setting: Setting) -> Strategy:
    """Compose the agent.

    Raises:
        MisuseError: the settings contradict each other, or bank or embedder are not available.
        ModelError: the endpoint gave no embeddings of the bank.
    """
    from agents.ascend_optimizer.agent import AscendOptimizer

    return AscendOptimizer(
        setting.spec,
        online=setting.online,
        offline=setting.offline,
        retriever=retriever_of(setting.settings, setting.spec.op_id, setting.embedder),
        settings=agent_settings(setting.settings),
        own_rewinds=_own_rewinds_of(setting),
    )


def rewind_steps_of(settings: RunSettings) -> int:
    """Return the evaluations spent on rewinding; for version 2 of the paper, 20 of 230."""
    if settings.rewind_steps is not None:
        return settings.rewind_steps
    return settings.budget * 20 // 230 if settings.preset is Preset.PAPER_V2 else 0


def _own_rewinds_of(setting: Setting) -> OwnRewinds | None:
    from agents.ascend_optimizer.own_rewinds import OwnRewinds

    settings, steps = setting.settings, rewind_steps_of(setting.settings)
    if steps == 0 or {Ablation.EXPERIENCE, Ablation.KERNEL} & set(settings.ablate):
        return None

    def retriever_with(learnt: Sequence[Experience]) -> ExperienceRetriever | None:
        return retriever_of(settings, setting.spec.op_id, setting.embedder, learnt=learnt)

    return OwnRewinds(
        setting.spec, setting.offline, steps=steps, seed=settings.seed, retriever_with=retriever_with
    )


def agent_settings(settings: RunSettings) -> AgentSettings:
    """Return the agent's own settings; passes grow to a quarter of the budget, like 10 of 40.

    A preset determines the schedule, and the lengths that are not given.

    Raises:
        MisuseError: the settings contradict each other.
    """
    quarter = min(SWITCH_EVERY, max(1, settings.budget // 4))
    online = settings.budget - rewind_steps_of(settings)
    half = max(1, online // 2)
    schedule, length = {
        None: (settings.schedule, quarter),
        Preset.PAPER_V1: (Schedule.ALTERNATE, SWITCH_EVERY),
        Preset.PAPER_V2: (Schedule.REFINE_THEN_TILE, half),
    }[settings.preset]
    refine_steps = settings.refine_steps or length
    rest = max(1, online - refine_steps)
    grows = settings.preset is None and settings.tiling_steps is None and settings.refine_steps is None
    refinement = refinement_of(settings)
    if refinement is Refinement.JOINT and settings.refine_steps is None:
        refine_steps = max(1, online)  # until patience ends it
    try:
        return AgentSettings(
            schedule=schedule,
            refinement=refinement,
            ablate=settings.ablate,
            tiling_steps=settings.tiling_steps or (rest if settings.preset is Preset.PAPER_V2 else length),
            refine_steps=refine_steps,
            first_steps=max(_FIRST_STEPS, settings.islands)
            if grows and refinement is Refinement.PAPER
            else None,
            patience=_PATIENCE if settings.preset is None else None,
            top_k=settings.top_k,
            islands=settings.islands,
        )
    except ValidationError as error:
        raise MisuseError(f"ascend-optimizer: {reason_of(error)}") from error


def refinement_of(settings: RunSettings) -> Refinement:
    """Return what refinement asks: as in the papers for a preset and for the offline model, else of both."""
    if settings.refinement is not None:
        return settings.refinement
    faithful = settings.preset is not None or not settings.asks_language_model
    return Refinement.PAPER if faithful else Refinement.JOINT


def bank_of(settings: RunSettings) -> ExperienceBank:
    """Return the bank that the settings name: the included one, or a file.

    Raises:
        MisuseError: the bank does not exist or cannot be read.
    """
    from agents.ascend_optimizer.bank import bank_at

    return bank_at(None if settings.bank is None else Path(settings.bank))


def agent_identity(settings: RunSettings) -> dict[str, Any]:
    """Return the parts of the agent's identity that the settings do not contain: the bank's contents."""
    if {Ablation.EXPERIENCE, Ablation.KERNEL} & set(settings.ablate):
        return {"bank": None}
    return {"bank": bank_of(settings).digest}


def retriever_of(
    settings: RunSettings,
    op_id: str,
    embedder: Callable[[str], Embedder] = embedder_named,
    learnt: Sequence[Experience] = (),
) -> ExperienceRetriever | None:
    """Return the source of experience; ``None`` if the ablations make it unnecessary.

    By default the bank's experience with the operator itself, or with a near twin, is left out, and always
    what gained no more than a hundredth.

    Args:
        settings: settings of the run.
        op_id: operator.
        embedder: returns the embedding model of a given name.
        learnt: experience of the run itself, which is never left out.

    Raises:
        MisuseError: bank or embedder are not available.
        ModelError: the endpoint gave no embeddings of the bank.
    """
    from agents.ascend_optimizer.bank import ExperienceBank
    from agents.ascend_optimizer.embedders import retriever_named
    from agents.ascend_optimizer.retrieval import RandomRetriever

    if {Ablation.EXPERIENCE, Ablation.KERNEL} & set(settings.ablate):
        return None
    known = bank_of(settings)
    others = known.without_kin_of(op_id) if settings.leave_one_out else known
    bank = ExperienceBank([*others.gaining(_LEAST_GAIN), *learnt])
    if Ablation.RETRIEVAL in settings.ablate:
        return RandomRetriever(bank, settings.seed)
    key = agent_settings(settings).retrieval_key
    least_score = settings.least_score
    if least_score is None:
        least_score = _LEAST_SCORES.get(settings.embedder, _LEAST_SCORE)
    return retriever_named(settings.embedder, bank, key, endpoint=embedder, least_score=least_score)


def ascend_craft_of(setting: Setting) -> Strategy:
    """Compose AscendCraft from the settings.

    The offline model drafts by rules, and lowers by rules with seeded faults.
    """
    from agents.ascend_craft.agent import AscendCraft
    from agents.ascend_craft.draft import ModelDrafter, RuleDrafter
    from agents.ascend_craft.lowering import ModelLowerer, RuleLowerer
    from agents.ascend_craft.rule_model import RuleModel
    from agents.ascend_craft.settings import Lowering

    spec, settings = setting.spec, setting.settings
    offline = settings.model == OFFLINE_MODEL
    drafter = RuleDrafter(spec) if offline else ModelDrafter(spec, setting.online, settings.examples)
    if settings.lowering is Lowering.RULES:
        return AscendCraft(spec, drafter, RuleLowerer())
    model_client = ModelClient(RuleModel(spec), seed=settings.seed) if offline else setting.online
    lowerer = ModelLowerer(
        spec,
        model_client,
        lowering=settings.lowering,
        examples=settings.examples,
        builds=settings.pass_builds,
    )
    return AscendCraft(spec, drafter, lowerer)


def example_text(spec: OpSpec, wanted: Examples) -> str:
    """Return the example operator shown in direct generation; empty for operators with sources."""
    example = None if spec.has_sources else example_for(spec, wanted)
    if example is None:
        return ""
    candidate = example.lowered()
    host, kernel = fenced(candidate.tiling_text, "cpp"), fenced(candidate.kernel_text, "cpp")
    return (
        f"\n\n## An example: the operator {example.spec.name}, complete\n\n{example.spec.description}\n\n"
        f"Its host side:\n\n{host}\nIts kernel:\n\n{kernel}"
    )

"""Composes AscendCraft (drafting and lowering), and the example shown in direct generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_gym.core.protocols import Strategy
from ascend_gym.core.records import OpSpec
from ascend_gym.rewrites.fenced import fenced
from ascend_gym.search.llm import OFFLINE_MODEL
from ascend_gym.search.model_client import ModelClient
from ascend_gym.staged.examples import Examples, example_for

if TYPE_CHECKING:
    from ascend_gym.cli.methods import Setting


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

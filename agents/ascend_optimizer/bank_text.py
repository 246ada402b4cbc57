"""An experience bank as text for people and for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.experience import Experience
from ascend_gym.rewrites.fenced import fenced


def to_markdown(bank: ExperienceBank) -> str:
    """Return a page with a section for each experience."""
    sections = ("\n".join(_section(number, each)) for number, each in enumerate(bank, 1))
    return "\n".join(
        [f"# Experience bank: {len(bank)} experiences of {len(bank.motifs)} motifs", "", *sections]
    )


def to_json(bank: ExperienceBank) -> str:
    """Return a JSON list of all experiences with their fields."""
    return json.dumps([each.model_dump(mode="json") for each in bank], indent=2, ensure_ascii=False)


def one_line(experience: Experience) -> str:
    """Return operator, motif, effect and title."""
    return f"{experience.operator}  {experience.motif}  {_effect(experience)}  {experience.title}"


def _effect(experience: Experience) -> str:
    return f"{experience.slow_us:.2f} -> {experience.fast_us:.2f} us ({experience.speedup:.2f}x)"


def _section(number: int, experience: Experience) -> Iterator[str]:
    yield f"## {number}. {experience.title}"
    yield ""
    yield f"- operator: {experience.operator}"
    yield f"- motif: {experience.motif} ({experience.family})"
    yield f"- measured on {experience.provenance.chip}: {_effect(experience)}"
    yield f"- affects: {', '.join(experience.metric_groups) or 'waiting alone'}"
    yield f"- bottleneck: {experience.bottleneck}"
    yield f"- applicability: {experience.applicability}"
    yield f"- expected effect: {experience.expected_effect}"
    yield f"- root mechanism: {experience.root_mechanism}"
    yield f"- causal chain: {' -> '.join(experience.causal_chain)}"
    for change in experience.profile_evidence:
        yield f"- {change.metric}: {change.before:.5g} -> {change.after:.5g}"
    yield f"- reusable when: {'; '.join(experience.reusable_when)}"
    yield f"- avoid when: {'; '.join(experience.avoid_when)}"
    yield f"- reuse guidance: {experience.reuse_guidance}"
    yield ""
    yield experience.description
    yield ""
    yield fenced(experience.code_diff, "diff")

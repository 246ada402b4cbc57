"""Refining a kernel: rules that the experience in the prompt speaks for, and that were not attempted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Rule, Side, Site
from ascend_gym.search.llm.offline.attempts import attempts_in, is_doomed, repeats
from ascend_gym.search.llm.offline.lessons import Lessons, Trends, lessons_of, trends_of
from ascend_gym.search.llm.offline.picking import SeededChoice, novel, told
from ascend_gym.search.llm.offline.reading import (
    Experience,
    PromptEvidence,
    candidate_in,
    evidence_of,
    experience_in,
    recommendation,
)
from ascend_gym.search.llm.offline.ub_estimate import fits_ub

_RULES = tuple(rule for rule in RULES if rule.side is not Side.TILING)
_STEPS = {1: 0.3, 2: 0.3, 3: 0.2, 4: 0.2}
_EMPHASIS = 20.0


@dataclass(frozen=True)
class _Advised:
    """Preferences from the prompt, with more weight on what experience favours and less after failures."""

    evidence: PromptEvidence
    experience: Sequence[Experience]
    lessons: Lessons
    trends: Trends

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        advice = recommendation(rule, self.experience, _EMPHASIS) * self.lessons.weight(rule.name)
        return self.evidence.rule_weight(rule, sites) * advice * max(map(self.site_weight, sites))

    def site_weight(self, site: Site) -> float:
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        return self.evidence.choice_weight(choice, rank) * self.trends.weight(choice.label)


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the reasons and the changed files."""
    before = candidate_in(prompt)
    if before is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to refine."
    evidence, attempts = evidence_of(prompt), attempts_in(prompt)

    def accepts(after: Candidate) -> bool:
        fits = fits_ub(after, before, evidence.element_bytes)
        return fits and not is_doomed(before, after, attempts)

    def is_new(after: Candidate) -> bool:
        return not repeats(before, after, attempts)

    count = draws.pick(list(_STEPS), lambda wanted: _STEPS[wanted])
    preferences = _Advised(evidence, experience_in(prompt), lessons_of(attempts), trends_of(attempts))
    after, steps = novel(before, _RULES, preferences, draws, count=count, accepts=accepts, is_new=is_new)
    if not steps:
        return "I know of no rewrite of this kernel that was not attempted."
    return told(before, after, steps)

"""Refining a kernel: a rule that the experience in the prompt speaks for, and that was not attempted.

It is one, so that it is known what helped; several together where attempts speak for them, or where no single
one is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES, Move
from ascend_gym.rewrites.rule import Choice, Rule, Side, Site
from ascend_gym.search.llm.offline.attempts import Untried, attempts_in
from ascend_gym.search.llm.offline.axes import (
    Axes,
    NumberedChoices,
    WithNumbers,
    hopeful,
    offers_numbers,
    without_doubtful,
)
from ascend_gym.search.llm.offline.combining import at_all_places, combined
from ascend_gym.search.llm.offline.lessons import Lessons, lessons_of
from ascend_gym.search.llm.offline.picking import SeededChoice, novel, told
from ascend_gym.search.llm.offline.reading import (
    PromptEvidence,
    ShownExperience,
    candidate_in,
    evidence_of,
    experience_in,
    recommendation,
)

_RULES = tuple(rule for rule in RULES if rule.side is not Side.TILING)
_EMPHASIS = 20.0
_SHARPNESS = 1.5  # of the choice between rules: steps are few, and what is unlikely can wait
_FURTHER = 0.3  # numbers beyond what is expected to help, such as a third buffer
_EVERYWHERE = (
    3.0  # all places of a rule first: what they gain together, or that they gain nothing, is soon known
)


@dataclass(frozen=True)
class _Advised(WithNumbers):
    """Preferences from the prompt, with more weight on what experience favours and less after failures."""

    evidence: PromptEvidence
    experience: Sequence[ShownExperience]
    lessons: Lessons
    takes_any: bool  # rules that are hopeless, too

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        has_numbers = offers_numbers(sites)
        if self.lessons.is_hopeless(rule.name) and not (has_numbers or self.takes_any):
            return 0.0
        lesson = self.lessons.weight(rule.name, has_numbers=has_numbers)
        advice = recommendation(rule, self.experience, _EMPHASIS) * lesson
        weight = self.evidence.rule_weight(rule, sites) * advice * max(map(self._promise, sites))
        return float(weight**_SHARPNESS)

    def site_weight(self, site: Site) -> float:
        return self._promise(site) * (_EVERYWHERE if site.covers_all else 1.0)

    def _promise(self, site: Site) -> float:
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        known = self.numbers.weight(choice)
        if known is None:
            return self.evidence.choice_weight(choice, rank)
        return hopeful(known) * (_FURTHER if known > 1.0 and not choice.forward else 1.0)


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the reasons and the changed files."""
    before = candidate_in(prompt)
    if before is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to refine."
    evidence, attempts = evidence_of(prompt), attempts_in(prompt)
    telling = without_doubtful(attempts)
    untried = Untried(before, telling, evidence.ub_room)
    numbers = NumberedChoices(Axes(attempts), before)
    lessons = lessons_of(telling)
    after, steps = combined(before, _RULES, untried, lessons)
    if steps:
        return told(before, after, steps)
    for takes_any in (False, True):
        preferences = _Advised(numbers, evidence, experience_in(prompt), lessons, takes_any)
        worth = untried.accepts if takes_any else untried.promises
        after, steps = novel(
            before, _RULES, preferences, draws, count=1, accepts=worth, is_new=untried.is_new
        )
        if steps:
            return told(before, *_everywhere(before, after, steps, untried, lessons))
    return "I know of no rewrite of this kernel that was not attempted."


def _everywhere(
    before: Candidate, after: Candidate, steps: list[Move], untried: Untried, lessons: Lessons
) -> tuple[Candidate, list[Move]]:
    """Return a single move at all places of its rule, if the rule is new: whether it helps is soon known."""
    if len(steps) > 1 or lessons.was_tried(steps[0].rule.name):
        return after, steps
    rule = steps[0].rule
    move = at_all_places(before, rule, rule.sites(before))
    wider = move.applied_to(before) if move is not None else before
    if move is None or not (untried.promises(wider) and untried.is_new(wider)):
        return after, steps
    return wider, [move]

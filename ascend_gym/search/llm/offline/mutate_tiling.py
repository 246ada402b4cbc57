"""Mutating a tiling program inside its evolve blocks: one or two rules of the host side."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.evolve_blocks import frozen_parts
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Rule, Side, Site
from ascend_gym.search.llm.offline.attempts import attempts_in, is_doomed, repeats
from ascend_gym.search.llm.offline.lessons import Lessons, Trends, lessons_of, trends_of
from ascend_gym.search.llm.offline.picking import SeededChoice, novel, told
from ascend_gym.search.llm.offline.reading import FEWER_BLOCKS, PromptEvidence, candidate_in, evidence_of
from ascend_gym.search.llm.offline.ub_estimate import fits_ub

_RULES = tuple(rule for rule in RULES if rule.side is Side.TILING)
_STEPS = {1: 0.5, 2: 0.5}
_ASKED_FOR = 3.0
_HOPELESS = 0.05  # weight after attempts in vain: where half of the cores are slower, so is a quarter
_BACKWARD_WEIGHT = 0.15
_EITHER_WAY = {True: 1.0, False: 3.0}
_NUMBERS_ONLY = re.compile(r".*: [\w() */+-]+ -> [\w() */+-]+")


@dataclass(frozen=True)
class _Mutation:
    """The preferences of a mutation.

    Attributes:
        evidence: what the prompt says about the parent.
        of_numbers: whether the prompt asks for numbers rather than logic.
        trends: which way numbers went well.
        lessons: which rules were tried in vain.
        backward_weight: weight of choices that go another way than is expected to help.
    """

    evidence: PromptEvidence
    of_numbers: bool
    trends: Trends
    lessons: Lessons
    backward_weight: float

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        hope = self.lessons.weight(rule.name)
        if rule.name in FEWER_BLOCKS and hope < _HOPELESS:
            return 0.0
        promise = self.evidence.rule_weight(rule, sites) * hope
        return promise * max(self.site_weight(site) for site in sites)

    def site_weight(self, site: Site) -> float:
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        numbers = _NUMBERS_ONLY.fullmatch(choice.label) is not None
        fits = _ASKED_FOR if numbers == self.of_numbers else 1.0
        return (
            fits
            * self.trends.weight(choice.label)
            * (1.0 if choice.forward else self.backward_weight)
            / (1 + rank)
        )


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with an offspring of the parent in the prompt."""
    parent = candidate_in(prompt)
    if parent is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to mutate."
    evidence, attempts = evidence_of(prompt), attempts_in(prompt)
    of_numbers = "fine-tune parameters" in prompt

    def accepts(offspring: Candidate) -> bool:
        allowed = _outside_blocks(offspring) == _outside_blocks(parent)
        fits = allowed and fits_ub(offspring, parent, evidence.element_bytes)
        return fits and not is_doomed(parent, offspring, attempts)

    def is_new(offspring: Candidate) -> bool:
        return not repeats(parent, offspring, attempts)

    count = draws.pick(list(_STEPS), lambda wanted: _STEPS[wanted])
    either_way = draws.pick(list(_EITHER_WAY), lambda either: _EITHER_WAY[either])
    for backward_weight in (_BACKWARD_WEIGHT,) if either_way else (0.0, _BACKWARD_WEIGHT):
        preferences = _Mutation(
            evidence, of_numbers, trends_of(attempts), lessons_of(attempts), backward_weight
        )
        offspring, steps = novel(
            parent, _RULES, preferences, draws, count=count, accepts=accepts, is_new=is_new
        )
        if steps:
            return told(parent, offspring, steps)
    return "I know of no mutation inside the marked blocks that was not attempted and promises anything."


def _outside_blocks(candidate: Candidate) -> list[list[str]]:
    return [frozen_parts(file.text) for file in candidate.host.files]

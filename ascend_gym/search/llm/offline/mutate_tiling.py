"""Mutating a tiling program inside its evolve blocks: one rule of the host side, so that its effect is known.

Several together where no single one is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, product

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.evolve_blocks import frozen_parts
from ascend_gym.rewrites.library import RULES
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
from ascend_gym.search.llm.offline.combining import balanced, exchanged
from ascend_gym.search.llm.offline.lessons import Lessons, lessons_of
from ascend_gym.search.llm.offline.picking import SeededChoice, novel, told
from ascend_gym.search.llm.offline.reading import FEWER_BLOCKS, PromptEvidence, candidate_in, evidence_of

_RULES = tuple(rule for rule in RULES if rule.side is Side.TILING)
_ASKED_FOR = 3.0
_BACKWARD_WEIGHT = 0.15
_SHARPNESS = 1.5  # of the choice between rules: steps are few, and what is unlikely can wait
_EITHER_WAY = {True: 1.0, False: 3.0}
_NUMBERS_ONLY = re.compile(r".*: [\w() */+-]+ -> [\w() */+-]+")


@dataclass(frozen=True)
class _Mutation(WithNumbers):
    """The preferences of a mutation.

    Attributes:
        evidence: what the prompt says about the parent.
        of_numbers: whether the prompt asks for numbers rather than logic.
        lessons: which rules were tried in vain.
        takes_any: whether rules that are hopeless are tried again; those that take cores away never are.
        backward_weight: weight of choices that go another way than is expected to help.
    """

    evidence: PromptEvidence
    of_numbers: bool
    lessons: Lessons
    takes_any: bool
    backward_weight: float

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        has_numbers = offers_numbers(sites)
        given_up = rule.name in FEWER_BLOCKS or not self.takes_any
        if given_up and not has_numbers and self.lessons.is_hopeless(rule.name):
            return 0.0
        lesson = self.lessons.weight(rule.name, has_numbers=has_numbers)
        promise = self.evidence.rule_weight(rule, sites) * lesson
        return float((promise * max(self.site_weight(site) for site in sites)) ** _SHARPNESS)

    def site_weight(self, site: Site) -> float:
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        numbers = _NUMBERS_ONLY.fullmatch(choice.label) is not None
        fits = _ASKED_FOR if numbers == self.of_numbers else 1.0
        known = self.numbers.weight(choice)
        if known is not None:
            return fits * hopeful(known)
        return fits * (1.0 if choice.forward else self.backward_weight) / (1 + rank) ** 2


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with an offspring of the parent in the prompt."""
    parent = candidate_in(prompt)
    if parent is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to mutate."
    evidence, attempts = evidence_of(prompt), attempts_in(prompt)
    of_numbers = "fine-tune parameters" in prompt

    untried = Untried(parent, without_doubtful(attempts), evidence.ub_room)
    numbers = NumberedChoices(Axes(attempts), parent)
    accepts = partial(_is_worth, parent, untried.accepts)
    for steps in chain(balanced(parent, _RULES, untried), exchanged(parent, _RULES, untried)):
        offspring = steps[1].applied_to(steps[0].applied_to(parent))
        if accepts(offspring) and untried.is_new(offspring):
            return told(parent, offspring, steps)
    either_way = draws.pick(list(_EITHER_WAY), lambda either: _EITHER_WAY[either])
    backward = (_BACKWARD_WEIGHT,) if either_way else (0.0, _BACKWARD_WEIGHT)
    for takes_any, backward_weight in product((False, True), backward):
        preferences = _Mutation(
            numbers, evidence, of_numbers, lessons_of(attempts), takes_any, backward_weight
        )
        accepts = partial(_is_worth, parent, untried.accepts if takes_any else untried.promises)
        offspring, steps = novel(
            parent, _RULES, preferences, draws, count=1, accepts=accepts, is_new=untried.is_new
        )
        if steps:
            return told(parent, offspring, steps)
    return "I know of no mutation inside the marked blocks that was not attempted and promises anything."


def _is_worth(parent: Candidate, worth: Callable[[Candidate], bool], offspring: Candidate) -> bool:
    """Say whether an offspring stays within the blocks and is worth an evaluation."""
    return _outside_blocks(offspring) == _outside_blocks(parent) and worth(offspring)


def _outside_blocks(candidate: Candidate) -> list[list[str]]:
    return [frozen_parts(file.text) for file in candidate.host.files]

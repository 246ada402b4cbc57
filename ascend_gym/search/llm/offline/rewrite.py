"""Rewriting a complete operator: one to four rules, picked by the seed and by what the profile says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Family, Rule, Site
from ascend_gym.search.llm.answer import render_edits
from ascend_gym.search.llm.offline.dice import Dice
from ascend_gym.search.llm.offline.reading import candidate_in

_REWRITES = {1: 0.2, 2: 0.3, 3: 0.3, 4: 0.2}
_FAMILY_WEIGHTS = {
    Family.TILING: 4.0,
    Family.PIPELINING: 3.0,
    Family.DATA_MOVEMENT: 1.5,
    Family.COMPUTE: 1.5,
    Family.MEMORY: 0.5,
}
_BACKWARD_WEIGHT = 0.05
_PROFILE_EMPHASIS = 2.0
_PIPE_RATIO = re.compile(r"\baiv_(\w+)_ratio\s*[=:]\s*(\d+(?:\.\d+)?)")
_UB_SHORTAGE = re.compile(r"^- .*(?:\bUB\b|unified buffer).*(?:overflow|exceed|does not fit)", re.I | re.M)


@dataclass(frozen=True)
class _Step:
    """A rewrite that was made."""

    rule: Rule
    site: Site
    choice: Choice


@dataclass(frozen=True)
class _Impression:
    """What the prompt says about the present implementation.

    Attributes:
        pipe_ratios: share of time of each pipe, the largest over the cases.
        ub_is_short: whether a diagnostic complains about too little UB.
    """

    pipe_ratios: Mapping[str, float]
    ub_is_short: bool

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how likely a rule is to be tried: by family, busy pipes, and the best that it offers."""
        busy = max(self.pipe_ratios.get(pipe.value, 0.0) for pipe in rule.effect.pipes)
        best = max(self.site_weight(site) for site in sites)
        return _FAMILY_WEIGHTS[rule.family] * (1.0 + _PROFILE_EMPHASIS * busy) * best

    def site_weight(self, site: Site) -> float:
        """Return how promising a site is: as its best choice."""
        return max(self.choice_weight(choice, rank) for rank, choice in enumerate(site.choices))

    def choice_weight(self, choice: Choice, rank: int) -> float:
        """Return how likely a choice is: the first most, the way back hardly, unless UB is short."""
        goes_well = choice.forward != self.ub_is_short
        return (1.0 if goes_well else _BACKWARD_WEIGHT) / (1 + rank)


def answer(prompt: str, dice: Dice) -> str:
    """Answer with the reasons and the changed files."""
    before = candidate_in(prompt)
    if before is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to rewrite."
    impression = _impression_of(prompt)
    after, steps = _rewritten(before, impression, dice)
    if not steps:
        return "None of my rewrite rules applies to these sources."
    reasons = [f"- {step.rule.name} at {step.site.label}: {step.choice.label}" for step in steps]
    old, new = before.texts, after.texts
    changes = [render_edits(path, old[path], new[path]) for path in old if old[path] != new[path]]
    return "\n".join([*reasons, "", *changes])


def _impression_of(prompt: str) -> _Impression:
    ratios: dict[str, float] = defaultdict(float)
    for match in _PIPE_RATIO.finditer(prompt):
        ratios[match[1]] = max(ratios[match[1]], min(1.0, float(match[2])))
    return _Impression(ratios, _UB_SHORTAGE.search(prompt) is not None)


def _rewritten(candidate: Candidate, impression: _Impression, dice: Dice) -> tuple[Candidate, list[_Step]]:
    """Apply a few rules one after the other, each at most once."""
    steps: list[_Step] = []
    wanted = dice.pick(list(_REWRITES), lambda count: _REWRITES[count])
    while len(steps) < wanted:
        used = {step.rule.name for step in steps}
        found = [(rule, rule.sites(candidate)) for rule in RULES if rule.name not in used]
        options = [(rule, sites) for rule, sites in found if sites]
        if not options:
            break
        rule, sites = dice.pick(options, lambda option: impression.option_weight(*option))
        step = _picked(rule, sites, impression, dice)
        candidate = rule.apply(candidate, step.site, step.choice)
        steps.append(step)
    return candidate, steps


def _picked(rule: Rule, sites: list[Site], impression: _Impression, dice: Dice) -> _Step:
    """Pick a site and a choice; a site for all of several comes as often as the others together."""

    def weight(site: Site) -> float:
        return impression.site_weight(site) * (len(sites) - 1 if site.covers_all else 1)

    site = dice.pick(sites, weight)
    ranked = list(enumerate(site.choices))
    _, choice = dice.pick(ranked, lambda item: impression.choice_weight(item[1], item[0]))
    return _Step(rule, site, choice)

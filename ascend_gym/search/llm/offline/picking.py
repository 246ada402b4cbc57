"""Picking rewrite rules, by weights and by what may come of it; seeded choices, the same on every Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import render_edits
from ascend_gym.rewrites.library import Move
from ascend_gym.rewrites.rule import Choice, Rule, Site

_Item = TypeVar("_Item")

_REDRAWS = 9
_REFUSALS = 40  # choices that are looked at and refused before a step is given up


class SeededChoice:
    """Weighted choices that are the same on every version of Python."""

    def __init__(self, digest: str) -> None:
        self._random = random.Random(int(digest[:16], 16))

    def pick(self, items: Sequence[_Item], weight: Callable[[_Item], float]) -> _Item:
        """Return one of ``items``, each as likely as its weight says."""
        weights = [weight(item) for item in items]
        point = self._random.random() * sum(weights)
        for item, share in zip(items, weights, strict=True):
            point -= share
            if point < 0:
                return item
        return items[-1]


class Preferences(Protocol):
    """How promising rules, sites and choices look; weights are not negative."""

    def on(self, candidate: Candidate) -> Preferences:
        """Return the preferences about rewrites of ``candidate``."""

    def sites_of(self, rule: Rule, candidate: Candidate) -> list[Site]:
        """Return the places of a rule, with what may be chosen there."""

    def option_weight(self, rule: Rule, sites: list[Site]) -> float:
        """Return how likely a rule is to be tried."""

    def site_weight(self, site: Site) -> float:
        """Return how likely a site is, among those of its rule."""

    def choice_weight(self, choice: Choice, rank: int) -> float:
        """Return how likely a choice is, ``rank`` being its place among those of its site."""


def rewritten(
    candidate: Candidate,
    rules: Sequence[Rule],
    preferences: Preferences,
    draws: SeededChoice,
    *,
    count: int,
    accepts: Callable[[Candidate], bool],
) -> tuple[Candidate, list[Move]]:
    """Apply up to ``count`` rules one after the other, each at most once; ``accepts`` has the last word."""
    steps: list[Move] = []
    while len(steps) < count:
        used = {step.rule.name for step in steps}
        step = _accepted(
            candidate, [rule for rule in rules if rule.name not in used], preferences, draws, accepts
        )
        if step is None:
            break
        candidate = step.applied_to(candidate)
        steps.append(step)
    return candidate, steps


def novel(
    candidate: Candidate,
    rules: Sequence[Rule],
    preferences: Preferences,
    draws: SeededChoice,
    *,
    count: int,
    accepts: Callable[[Candidate], bool],
    is_new: Callable[[Candidate], bool],
) -> tuple[Candidate, list[Move]]:
    """Like ``rewritten``, with a result that is new.

    Several rules together may be new though each alone is not; where one rule alone leaves nothing new,
    two or more are tried.
    """

    def one() -> tuple[Candidate, list[Move]]:
        return rewritten(
            candidate,
            rules,
            preferences,
            draws,
            count=1,
            accepts=lambda after: accepts(after) and is_new(after),
        )

    after, steps = one() if count == 1 else (candidate, [])
    for redraw in range(_REDRAWS):
        if steps and is_new(after):
            return after, steps
        wanted = max(2, count) + redraw // 3
        after, steps = rewritten(candidate, rules, preferences, draws, count=wanted, accepts=accepts)
    return (after, steps) if steps and is_new(after) else one()


def told(before: Candidate, after: Candidate, steps: Sequence[Move]) -> str:
    """Return an answer: the rules, a line of reasons for each step, then the changed files as edits."""
    names = ", ".join(step.rule.name for step in steps)
    reasons = [f"- {step.rule.name} at {step.site.label}: {step.choice.label}" for step in steps]
    return "\n".join([f"Rules: {names}.", *reasons, "", *changes_between(before, after)])


def changes_between(before: Candidate, after: Candidate) -> list[str]:
    """Return the changed files as edits."""
    old, new = before.texts, after.texts
    return [render_edits(path, old[path], new[path]) for path in old if old[path] != new[path]]


def _accepted(
    candidate: Candidate,
    rules: list[Rule],
    preferences: Preferences,
    draws: SeededChoice,
    accepts: Callable[[Candidate], bool],
) -> Move | None:
    """Pick steps until one is accepted."""
    preferences = preferences.on(candidate)
    refused: set[tuple[str, str, str]] = set()
    found = [(rule, preferences.sites_of(rule, candidate)) for rule in rules]
    for _ in range(_REFUSALS):
        options = [(rule, left) for rule, sites in found if (left := _without(refused, rule, sites))]
        options = [option for option in options if preferences.option_weight(*option) > 0]
        if not options:
            return None
        rule, sites = draws.pick(options, lambda option: preferences.option_weight(*option))
        step = _picked(rule, sites, preferences, draws)
        if accepts(step.applied_to(candidate)):
            return step
        refused.add((rule.name, step.site.label, step.choice.label))
    return None


def _without(refused: set[tuple[str, str, str]], rule: Rule, sites: list[Site]) -> list[Site]:
    """Return the sites with the choices that are left."""
    left = []
    for site in sites:
        choices = tuple(
            choice for choice in site.choices if (rule.name, site.label, choice.label) not in refused
        )
        if choices:
            left.append(Site(site.label, choices, site.covers_all))
    return left


def _picked(rule: Rule, sites: list[Site], preferences: Preferences, draws: SeededChoice) -> Move:
    """Pick a site and a choice; a site for all of several comes as often as the others together."""

    def weight(site: Site) -> float:
        return preferences.site_weight(site) * (len(sites) - 1 if site.covers_all else 1)

    site = draws.pick(sites, weight)
    ranked = list(enumerate(site.choices))
    _, choice = draws.pick(ranked, lambda item: preferences.choice_weight(item[1], item[0]))
    return Move(rule, site, choice)

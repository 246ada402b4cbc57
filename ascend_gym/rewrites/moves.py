"""All single rewrites of a candidate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Rule, Site, View


@dataclass(frozen=True)
class Move:
    """One rewrite of a candidate: a rule, a place, and a choice."""

    rule: Rule
    site: Site
    choice: Choice

    @property
    def note(self) -> dict[str, str]:
        """Names for the origin of a proposal."""
        return {"rule": self.rule.name, "site": self.site.label, "choice": self.choice.label}

    def applied_to(self, candidate: Candidate) -> Candidate:
        """Return the rewritten candidate.

        Raises:
            MisuseError: the move belongs to another candidate.
        """
        return self.rule.apply(candidate, self.site, self.choice)


def moves_of(candidate: Candidate, rules: Iterable[Rule] = RULES) -> list[Move]:
    """Return all moves, ordered by rule as in the library, then by site, then by choice."""
    view = View(candidate)
    return [Move(rule, site, choice) for rule in rules for site in rule.find(view) for choice in site.choices]

"""All rules, in a fixed order, and all single rewrites of a candidate."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites import (
    barriers,
    buffers,
    caching,
    casts,
    core_parts,
    cores,
    events,
    fusion,
    hand_over,
    hoisting,
    keys,
    loads,
    long_calls,
    memory,
    movement,
    operands,
    passes,
    placement,
    reductions,
    rows,
    scalar_code,
    tails,
    tiling,
    tiling_data,
)
from ascend_gym.rewrites.rule import Choice, Rule, Site, View

_TILING = (tiling, cores, core_parts, keys)
_DATA_MOVEMENT = (movement, rows, caching)
_PIPELINING = (buffers, barriers, events, hand_over, placement, tails, passes, loads, tiling_data)
_COMPUTE = (fusion, operands, casts, hoisting, scalar_code, long_calls, reductions)
_ROOMS = (*_TILING, *_DATA_MOVEMENT, *_PIPELINING, *_COMPUTE, memory)

RULES: tuple[Rule, ...] = tuple(rule for room in _ROOMS for rule in room.RULES)
"""Optimisations: the forward choices of each are expected to help."""

REWINDS: tuple[Rule, ...] = tuple(rule for room in _ROOMS for rule in room.REWINDS)
"""De-optimisations, each the inverse of a rule that cannot undo itself; no choice of theirs is forward."""


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


def moves_of(candidate: Candidate) -> list[Move]:
    """Return all moves, ordered by rule as in the library, then by site, then by choice."""
    view = View(candidate)
    return [Move(rule, site, choice) for rule in RULES for site in rule.find(view) for choice in site.choices]

"""Random rewrites: one to four rewrite rules applied blindly to the operator's own sources; no model.

A control for methods that know something: neither the profile, nor what a rule is for, nor earlier results
have any influence. Each sample begins at the baseline, so that it is Best-of-N with random draws in place of
a model: sample k is the same for every budget and every number of workers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.rewrites.library import Move, moves_of
from ascend_gym.search.seeds import derived_seed

MAX_REWRITES = 4
MAX_DRAWS = 200  # in a row that give known candidates, before the sources count as exhausted

_Item = TypeVar("_Item")


class RandomRewrites:
    """Proposes random rewrites of the baseline, each once. A ``Strategy``."""

    def __init__(self, spec: OpSpec, *, seed: int) -> None:
        """Rewrite the sources of ``spec`` at random; ``seed`` is that of the run."""
        self._baseline, self._seed = spec.baseline, seed
        self._known = {spec.baseline.digest}
        self._draws = 0

    def propose(self, limit: int) -> list[Proposal]:
        """Return ``limit`` rewrites; fewer when the rules have nothing more to offer."""
        proposals: list[Proposal] = []
        last = self._draws + MAX_DRAWS
        while len(proposals) < limit and self._draws < last:
            proposal = self._drawn(self._draws)
            self._draws += 1
            if proposal.candidate.digest not in self._known:
                self._known.add(proposal.candidate.digest)
                proposals.append(proposal)
                last = self._draws + MAX_DRAWS
        return proposals

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Results teach nothing."""

    def close(self) -> None:
        """Nothing is held."""

    def _drawn(self, draw: int) -> Proposal:
        rng = random.Random(derived_seed(self._seed, "random-rewrites", draw))
        candidate, notes = self._baseline, []
        for _ in range(1 + int(rng.random() * MAX_REWRITES)):
            moves = moves_of(candidate)
            if not moves:
                break
            move = _random_move(moves, rng)
            candidate = move.applied_to(candidate)
            notes.append(move.note)
        return _proposal(candidate, draw, notes)


def _random_move(moves: Sequence[Move], rng: random.Random) -> Move:
    """Pick a rule, then one of its sites, then one of the choices there, each as likely as the others."""
    rule = _one_of(list(dict.fromkeys(move.rule.name for move in moves)), rng)
    sites = [move.site for move in moves if move.rule.name == rule]
    site = _one_of(list(dict.fromkeys(sites)), rng)
    return _one_of([move for move in moves if move.rule.name == rule and move.site == site], rng)


def _one_of(items: Sequence[_Item], rng: random.Random) -> _Item:
    """Pick by ``random()``, whose numbers are the same on every version of Python."""
    return items[int(rng.random() * len(items))]


def _proposal(candidate: Candidate, draw: int, notes: list[dict[str, Any]]) -> Proposal:
    return Proposal(candidate, {"kind": "random-rewrites", "draw": draw, "rewrites": notes})

"""Greedy rule search: one rewrite rule at a time at the fastest candidate so far; no model, no chance.

What promises most is tried first: rules whose pipes are busiest in the incumbent's profile, each rule's
first choice before any rule's second, and the ways back that are not expected to help last of all. An
improvement becomes the incumbent, and the rule that made it is in front again. The search ends when no
rewrite of the incumbent is left that was not tried: no rule improves it.
"""

from __future__ import annotations

from collections import Counter

from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.rewrites.library import RULES, Move, moves_of
from ascend_gym.rewrites.rule import Rule

_LIBRARY_ORDER = {rule.name: position for position, rule in enumerate(RULES)}


class GreedyRules:
    """Climbs by single rewrites, one evaluation at a time. A ``Strategy``."""

    def __init__(self, spec: OpSpec) -> None:
        """Climb from the sources of ``spec``."""
        self._incumbent = spec.baseline
        self._latency_us = float("inf")
        self._pipe_ratios: dict[str, float] = {}
        self._moves: list[Move] = []  # of the incumbent, not tried yet
        self._failures: Counter[str] = Counter()  # of each rule since it last improved something
        self._known = {spec.baseline.digest}
        self._waiting = True

    def propose(self, limit: int) -> list[Proposal]:
        """Return the incumbent's most promising rewrite; none while a result is awaited or at the end."""
        while limit and self._moves and not self._waiting:
            move = min(self._moves, key=self._promise)
            self._moves.remove(move)
            candidate = move.applied_to(self._incumbent)
            if candidate.digest not in self._known:
                self._known.add(candidate.digest)
                self._waiting = True
                origin = {"kind": "greedy-rules", "parent": self._incumbent.digest, **move.note}
                return [Proposal(candidate, origin)]
        return []

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Climb if it is an improvement."""
        self._waiting = False
        rule = proposal.origin.get("rule", "")
        if result.latency_us is not None and result.latency_us < self._latency_us:
            self._latency_us = result.latency_us
            self._failures[rule] = 0
            self._climb_to(proposal.candidate, result)
        else:
            self._failures[rule] += 1

    def close(self) -> None:
        """Nothing is held."""

    def _climb_to(self, candidate: Candidate, result: EvalResult) -> None:
        self._incumbent = candidate
        profile = result.mean_profile or {}
        self._pipe_ratios = {name: value for name, value in profile.items() if name.endswith("_ratio")}
        self._moves = sorted(moves_of(candidate), key=_rank_in_rule)

    def _promise(self, move: Move) -> tuple[bool, int, float, int]:
        """Return what orders moves, the most promising first."""
        return (
            not move.choice.forward,
            self._failures[move.rule.name],
            -self._busiest_pipe(move.rule),
            _LIBRARY_ORDER[move.rule.name],
        )

    def _busiest_pipe(self, rule: Rule) -> float:
        """Return the share of time of the busiest of the pipes that a rule is meant to relieve."""
        return max(self._pipe_ratios.get(f"aiv_{pipe.value}_ratio", 0.0) for pipe in rule.effect.pipes)


def _rank_in_rule(move: Move) -> tuple[bool, int]:
    """Order the moves of one rule: everywhere at once first, then the first choice of every site."""
    return not move.site.covers_all, move.site.choices.index(move.choice)

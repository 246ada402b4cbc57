"""A search method: climbs by one rewrite at a time, each drawn at random.

ascend-gym optimize add --method docs/examples/own_method.py:Climb --budget 6
"""

import random

from ascend_gym.core.protocols import Proposal
from ascend_gym.rewrites.library import moves_of


class Climb:
    """Goes on from the fastest candidate so far."""

    def __init__(self, setting):
        self.best, self.best_us = setting.spec.baseline, float("inf")
        self.random = random.Random(setting.settings.seed)
        self.tried = {self.best.digest}
        self.waiting = True  # for the operator's own sources, which are measured first

    def propose(self, limit):
        """Return a rewrite of the best; nothing while a result is awaited or when all were tried."""
        if self.waiting or limit < 1:
            return []
        rewritten = ((move, move.applied_to(self.best)) for move in moves_of(self.best))
        new = [(move, candidate) for move, candidate in rewritten if candidate.digest not in self.tried]
        if not new:
            return []
        move, candidate = self.random.choice(new)
        self.tried.add(candidate.digest)
        self.waiting = True
        return [Proposal(candidate, {"kind": "climb", **move.note})]

    def observe(self, proposal, result):
        """Keep what is faster."""
        self.waiting = False
        if result.latency_us is not None and result.latency_us < self.best_us:
            self.best, self.best_us = proposal.candidate, result.latency_us

    def close(self):
        """Nothing is held."""

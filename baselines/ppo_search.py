"""Search with a trained policy: what PPO learnt on other operators proposes rewrites. Needs PyTorch.

The search is an episode of the environment that the policy was trained in: the incumbent is rewritten, one
rewrite at a time, and the policy sees the same numbers. Actions are drawn from its distribution by a seeded
generator; candidates that the run knows are not proposed again.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.env.episode import Episode
from ascend_gym.env.rewrite_actions import KNOB_POSITIONS, numbered_moves
from ascend_gym.env.task import Task, Trial
from ascend_gym.search.outcome import BASELINE_ORIGIN
from ascend_gym.search.seeds import derived_seed
from baselines.ppo_policy import OBSERVATIONS, RULED_OUT, Policy

MAX_DRAWS = 200  # in a row that give known candidates, before the search counts as finished

Logits = np.ndarray[Any, np.dtype[np.float64]]


class PpoSearch:
    """Proposes what a policy draws, one evaluation at a time. A ``Strategy``."""

    def __init__(self, spec: OpSpec, policy: Policy, *, seed: int, budget: int, chip: str = "910B2") -> None:
        """Rewrite the sources of ``spec``.

        Args:
            spec: the operator.
            policy: a trained policy.
            seed: seed of the run.
            budget: evaluations of the run; the policy knows what share of them is left.
            chip: the chip that is measured.
        """
        observations = OBSERVATIONS[policy.family]
        self._task = Task(
            spec, actions=policy.family, observations=observations, budget=max(1, budget), chip=chip
        )
        self._spec, self._policy, self._seed = spec, policy, seed
        self._episode: Episode | None = None
        self._trial: Trial | None = None
        self._known = {spec.baseline.digest}
        self._draws = 0

    def propose(self, limit: int) -> list[Proposal]:
        """Return what the policy draws next; none while a result is awaited or at the end."""
        if not limit or self._episode is None or self._trial is not None or not self._episode.budget_left:
            return []
        logits = self._policy.logits(self._task.observe(self._episode))
        for _ in range(MAX_DRAWS):
            action = self._drawn(logits)
            if action is None:
                return []
            trial = self._task.trial(self._episode, action)
            if trial.candidate.digest not in self._known:
                self._known.add(trial.candidate.digest)
                self._trial = trial
                return [Proposal(trial.candidate, self._origin(self._episode, action))]
            if self._policy.family == "rules":
                logits[action] = RULED_OUT
        return []

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Go on with the episode."""
        if proposal.origin == BASELINE_ORIGIN:
            self._episode = None if result.latency_us is None else self._task.begun(self._spec, result)
        elif self._episode is not None and self._trial is not None:
            self._episode, _ = self._task.after(self._episode, self._trial, result)
            self._trial = None

    def close(self) -> None:
        """Nothing is held."""

    def _drawn(self, logits: Logits) -> Any:
        """Return an action, or ``None`` if all are ruled out."""
        rng = random.Random(derived_seed(self._seed, "ppo", self._draws))
        self._draws += 1
        if self._policy.family == "rules":
            return None if logits.max() <= RULED_OUT else np.int64(_sampled(logits, rng))
        return np.array([_sampled(row, rng) for row in logits.reshape(-1, KNOB_POSITIONS)])

    def _origin(self, episode: Episode, action: Any) -> dict[str, Any]:
        parent = {"kind": "ppo", "draw": self._draws - 1, "parent": episode.incumbent.digest}
        if self._policy.family == "rules":
            return {**parent, **numbered_moves(episode.incumbent)[int(action)].note}
        return {**parent, "positions": action.tolist()}


def _sampled(logits: Logits, rng: random.Random) -> int:
    """Return an index, each as likely as the softmax of the logits says."""
    cumulated = np.cumsum(np.exp(logits - logits.max()))
    return int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))

"""``AscendOp-v0``: optimise an Ascend C operator by rewriting its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, OpSpec
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import Connection
from ascend_gym.env.rendering import RENDER_MODES, rendered, require_render_mode
from ascend_gym.env.task import Task, is_over, is_terminated, is_truncated


@dataclass(frozen=True)
class EnvState:
    """Saved state of an environment; it can be restored repeatedly and in other environments.

    Attributes:
        episode: the episode.
        actions: action family of the environment.
        cases: number of cases that it evaluates; ``None`` for all.
        chip: simulated or measured chip.
        rng_state: state of the random generator that draws operators.
    """

    episode: Episode
    actions: str
    cases: int | None
    chip: str
    rng_state: Mapping[str, Any]


class AscendOpEnv(gymnasium.Env[Any, Any]):
    """An episode of optimising one operator under a budget of evaluations.

    The state is the incumbent, the fastest correct candidate so far (initially the operator's own
    sources). Each action produces a candidate: in the family ``sources``, ``{"tiling": ..., "kernel": ...}``
    replaces the complete text of the incumbent's main sources, and an empty text keeps it. The candidate
    is compiled, run, checked and timed; if it is correct and faster, it becomes the incumbent. No candidate,
    however faulty, raises an exception.

    The episode terminates when the budget is spent. ``budget_left`` is part of the observation, so
    termination is a property of the state and not an external time limit. The episode is truncated after
    ``MAX_NEUTRAL_IN_A_ROW`` consecutive evaluations that failed for reasons outside the candidate (for
    example a broken daemon); these are not charged. The evaluation of the baseline on reset is not charged
    either. A result from the cache is charged like a fresh one, so that an episode does not depend on the
    cache.

    A copy, by ``copy.deepcopy`` or ``pickle``, continues the same episode independently of the original.

    Args:
        operator: name in an installed suite (``gelu``, ``core/gelu``), a loaded operator, a list of these, or
            the name of a suite (``core``); of several, each reset draws one by its seed.
        op_dir: folder of an operator of your own, whose name is ``operator``.
        actions: action family in ``ascend_gym.env.actions.ACTIONS``.
        observations: observation family in ``ascend_gym.env.observations.OBSERVATIONS``.
        budget: evaluations per episode, at least 1.
        cases: evaluate on this many of the operator's cases, the smallest first; by default on all. Fewer are
            cheaper, but errors on the other cases go unnoticed.
        daemon: one or several addresses such as ``tcp://10.0.0.5:5710``; by default ``$ASCEND_GYM_DAEMON``,
            else a private daemon with the simulator, started on the first reset.
        chip: simulated or measured chip.
        reward: name in ``ascend_gym.env.reward.REWARDS``, or a function of an ``Outcome``. ``speedup``,
            ``hap`` and ``negative_latency`` rate each candidate on its own, so repeating the incumbent
            is rewarded again; the others reward improvements only.
        failure_penalty: penalty for a failed candidate, for rewards given by name.
        max_source_chars: maximum length of source texts in the spaces, in characters.
        max_diagnostic_chars: maximum length of diagnostics, in characters; longer ones are cut.
        render_mode: ``ansi`` for a text summary, ``rgb_array`` for a plot of the evaluations so far,
            or ``None``.
        evaluator: an evaluator of the caller in place of a daemon; the caller closes it.

    Raises:
        MisuseError: an argument is invalid, or the operator's sources exceed ``max_source_chars``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [*RENDER_MODES], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        operator: str | OpSpec | Sequence[str | OpSpec] = "gelu",
        *,
        daemon: str | Sequence[str] | None = None,
        render_mode: str | None = None,
        evaluator: Evaluator | None = None,
        **task: Any,
    ) -> None:
        require_render_mode(render_mode)
        self.render_mode = render_mode
        self._task = Task.of_arguments({"operator": operator, **task})
        self._connection = Connection(daemon, self._task.chip, evaluator)
        self._episode: Episode | None = None
        self.observation_space = self._task.observation_space
        self.action_space = self._task.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the operator's own sources.

        Args:
            seed: seed of ``np_random``, which draws the operator if there are several; nothing else is
                random.
            options: ``{"operator": ...}`` switches permanently to another operator or several.

        Returns:
            Observation and info.

        Raises:
            MisuseError: an unknown option or operator, or a request that the daemon rejects as invalid.
            OperatorFormatError: the evaluation of the operator's own sources fails.
            InfrastructureError: nothing could be evaluated.
        """
        super().reset(seed=seed)
        self._task.set_options(options or {})
        spec = self._task.draw(self.np_random)
        (result,) = self._connection.evaluate([self._task.baseline_request(spec)])
        self._episode = self._task.begun(spec, result)
        return self._task.observe(self._episode), self._task.info(self._episode)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Evaluate the candidate that ``action`` produces.

        Returns:
            Observation, reward, terminated (the budget is spent), truncated (too many evaluations without a
            verdict), info.

        Raises:
            ResetNeeded: there is no episode, or it is over.
            MisuseError: the action is outside the action space.
        """
        before = self._under_way()
        if is_over(before):
            raise ResetNeeded("the episode is over: call reset() first")
        trial = self._task.trial(before, action)
        result = trial.result or self._connection.evaluate([trial.request])[0]
        after, reward = self._task.after(before, trial, result)
        self._episode = after
        seen, info = self._task.observe(after), self._task.info(after)
        return seen, reward, is_terminated(after), is_truncated(after), info

    def render(self) -> Any:
        """Render the episode in ``render_mode``: a text, uint8 of shape (300, 480, 3), or ``None``."""
        return rendered(self.render_mode, self._episode, [spec.op_id for spec in self._task.operators])

    def close(self) -> None:
        """Close the connection and stop the private daemon, if this environment opened them."""
        self._connection.close()
        self._episode = None

    @property
    def incumbent(self) -> Candidate:
        """The fastest correct candidate so far.

        Raises:
            ResetNeeded: there is no episode.
        """
        return self._under_way().incumbent

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return the mask of valid actions in the form that ``sb3_contrib.MaskablePPO`` expects.

        Returns:
            bool of shape ``(actions,)``; for knobs, the settings of one knob after the other.

        Raises:
            ResetNeeded: there is no episode.
            MisuseError: the action family has no mask.
        """
        mask = self._task.mask(self._under_way())
        if mask is None:
            raise MisuseError(
                f"actions={self._task.kind['actions']!r} has no mask: every action may be taken"
            )
        return mask.astype(np.bool_).ravel()

    def get_state(self) -> EnvState:
        """Return the state of the environment for ``set_state``; it can be pickled.

        Raises:
            ResetNeeded: there is no episode.
        """
        rng_state = deepcopy(dict(self.np_random.bit_generator.state))
        return EnvState(self._under_way(), **self._task.kind, rng_state=rng_state)

    def set_state(self, state: EnvState) -> tuple[Any, dict[str, Any]]:
        """Restore a saved state without an evaluation.

        Returns:
            Observation and info at the time of saving.

        Raises:
            MisuseError: the state belongs to an environment with another budget, action family, chip or
                number of cases, or its sources exceed the limit of this one.
        """
        if state.episode.budget != self._task.budget:
            budgets = f"{state.episode.budget} evaluations, this environment {self._task.budget}"
            raise MisuseError(f"the state has a budget of {budgets}")
        kind = {"actions": state.actions, "cases": state.cases, "chip": state.chip}
        if kind != self._task.kind:
            raise MisuseError(f"the state is of an environment with {kind}, this one has {self._task.kind}")
        self._task.require_fits(state.episode.spec, state.episode.incumbent)
        self._episode = state.episode
        self.np_random.bit_generator.state = deepcopy(state.rng_state)
        return self._task.observe(state.episode), self._task.info(state.episode)

    def _under_way(self) -> Episode:
        if self._episode is None:
            raise ResetNeeded("no episode is under way: call reset() first")
        return self._episode

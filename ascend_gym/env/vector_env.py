"""``AscendOp-v0`` as a native vector environment: all candidates of a step are evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from ascend_gym.core.errors import AscendGymError, MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import Connection
from ascend_gym.env.rendering import RENDER_MODES, rendered, require_render_mode
from ascend_gym.env.task import Task, Trial, is_over, is_terminated, is_truncated

Flags = np.ndarray[Any, np.dtype[np.bool_]]


class AscendOpVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` parallel episodes on one connection.

    Spaces, rewards and infos are those of ``gymnasium.vector.SyncVectorEnv`` over ``AscendOpEnv``; only the
    evaluations of a step are submitted together.

    Args:
        num_envs: number of episodes.
        autoreset_mode: what happens after an episode ends. ``NextStep`` begins a new one at the next
            step, whose action is ignored. ``SameStep`` begins it at once, with ``final_obs`` and
            ``final_info`` in the infos; if that fails, it tries again at the next step, which raises if it
            fails too. ``Disabled`` leaves it to ``reset(options={"reset_mask": ...})``.
        daemon: one or several addresses; by default ``$ASCEND_GYM_DAEMON``, else a private daemon.
        render_mode: as for ``AscendOpEnv``.
        evaluator: an evaluator of the caller in place of a daemon; the caller closes it.
        **task: the other arguments of ``AscendOpEnv``.

    Raises:
        MisuseError: an argument is invalid.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        daemon: str | Sequence[str] | None = None,
        render_mode: str | None = None,
        evaluator: Evaluator | None = None,
        **task: Any,
    ) -> None:
        self.closed = True  # there is nothing to close if this fails
        if num_envs < 1:
            raise MisuseError(f"num_envs must be at least 1, got {num_envs}")
        try:
            self._autoreset = AutoresetMode(autoreset_mode)
        except ValueError as error:
            modes = ", ".join(mode.value for mode in AutoresetMode)
            raise MisuseError(f"autoreset_mode must be one of {modes}, got {autoreset_mode!r}") from error
        require_render_mode(render_mode)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.metadata = {
            "render_modes": [*RENDER_MODES],
            "render_fps": 1,
            "autoreset_mode": self._autoreset,
        }
        self._task = Task.of_arguments(task)
        self._connection = Connection(daemon, self._task.chip, evaluator)
        self.single_observation_space = self._task.observation_space
        self.single_action_space = self._task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._episodes: list[Episode | None] = [None] * num_envs
        self._drawn: dict[int, OpSpec] = {}  # operators of episodes that could not be begun
        self._rngs = [seeding.np_random(None)[0] for _ in range(num_envs)]
        self.closed = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, or those of ``options["reset_mask"]``; see ``AscendOpEnv.reset``.

        Args:
            seed: one seed per episode, or a single seed from which they count up.
            options: ``reset_mask``, bool of shape ``(num_envs,)``, and those of ``AscendOpEnv``.

        Returns:
            Observations and infos.

        Raises:
            MisuseError: seeds or mask have a wrong length, the mask is empty or is combined with an operator;
                or as for ``AscendOpEnv.reset``.
            ClosedEnvironmentError: the environment is closed.
        """
        if self.closed:
            raise ClosedEnvironmentError("the environment is closed: make another one")
        seeds = [seed + number for number in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is not None and len(seeds) != self.num_envs:
            raise MisuseError(f"seed must be one number or {self.num_envs} of them, got {len(seeds)}")
        others = dict(options or {})
        chosen = self._masked(others.pop("reset_mask", np.ones(self.num_envs, np.bool_)))
        if "operator" in others and len(chosen) < self.num_envs:
            raise MisuseError("options['operator'] is for all episodes: it does not go with a reset_mask")
        self._task.set_options(others)
        for number in chosen:
            self._drawn.pop(number, None)
            if seeds is not None and seeds[number] is not None:
                self._rngs[number] = seeding.np_random(seeds[number])[0]
        self._begin(chosen)
        infos: dict[str, Any] = {}
        for number in chosen:
            infos = self._add_info(infos, self._task.info(self._of(number)), number)
        return self._observed(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Flags, Flags, dict[str, Any]]:
        """Evaluate the candidates of all actions together.

        Returns:
            Observations; rewards (float64), terminations and truncations (bool), each of shape
            ``(num_envs,)``; infos.

        Raises:
            MisuseError: an action is outside the action space, or an episode is over.
            ResetNeeded: an episode was never begun.
        """
        over = [number for number in range(self.num_envs) if is_over(self._of(number))]
        if over and self._autoreset is AutoresetMode.DISABLED:
            raise MisuseError(f"episodes {over} are over: reset them first, with reset_mask")
        given = self._apart(actions)
        trials = {
            number: self._task.trial(self._of(number), given[number])
            for number in range(self.num_envs)
            if number not in over
        }
        results = self._results(trials)
        self._begin(over)
        rewards = np.zeros(self.num_envs, np.float64)
        advanced: dict[int, Episode] = {}
        for number, trial in trials.items():
            advanced[number], rewards[number] = self._task.after(self._of(number), trial, results[number])
        for number, episode in advanced.items():
            self._episodes[number] = episode
        return self._step_ended(rewards)

    def render(self) -> tuple[Any, ...] | None:
        """Return the renderings of all episodes; ``None`` without a ``render_mode``."""
        if self.render_mode is None:
            return None
        operators = [spec.op_id for spec in self._task.operators]
        return tuple(rendered(self.render_mode, episode, operators) for episode in self._episodes)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the connection and stop the private daemon, if this environment opened them."""
        self._connection.close()
        self._episodes = [None] * self.num_envs

    def _step_ended(self, rewards: Any) -> tuple[Any, Any, Flags, Flags, dict[str, Any]]:
        terminations = np.array([is_terminated(self._of(number)) for number in range(self.num_envs)])
        truncations = np.array([is_truncated(self._of(number)) for number in range(self.num_envs)])
        infos: dict[str, Any] = {}
        ended = np.flatnonzero(terminations | truncations).tolist()
        if self._autoreset is AutoresetMode.SAME_STEP:
            for number in ended:
                last = self._of(number)
                final = {"final_obs": self._task.observe(last), "final_info": self._task.info(last)}
                infos = self._add_info(infos, final, number)
            with suppress(AscendGymError):  # the next step tries again and raises: this one has its rewards
                self._begin(ended)
        for number in range(self.num_envs):
            infos = self._add_info(infos, self._task.info(self._of(number)), number)
        return self._observed(), rewards, terminations, truncations, infos

    def _results(self, trials: dict[int, Trial]) -> dict[int, EvalResult]:
        known = {number: trial.result for number, trial in trials.items() if trial.result is not None}
        asked = [number for number in trials if number not in known]
        results = self._connection.evaluate([trials[number].request for number in asked])
        return {**known, **dict(zip(asked, results, strict=True))}

    def _begin(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number not in self._drawn:
                self._drawn[number] = self._task.draw(self._rngs[number])
        specs = [self._drawn[number] for number in numbers]
        results = self._connection.evaluate([self._task.baseline_request(spec) for spec in specs])
        begun = [self._task.begun(spec, result) for spec, result in zip(specs, results, strict=True)]
        for number, episode in zip(numbers, begun, strict=True):
            self._episodes[number] = episode
            del self._drawn[number]

    def _observed(self) -> Any:
        seen = [self._task.observe(self._of(number)) for number in range(self.num_envs)]
        empty: Any = create_empty_array(self.single_observation_space, n=self.num_envs, fn=np.zeros)
        return concatenate(self.single_observation_space, seen, empty)

    def _masked(self, mask: Any) -> list[int]:
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise MisuseError(
                f"reset_mask must be a bool array of shape ({self.num_envs},), got {mask!r:.80}"
            )
        numbers: list[int] = np.flatnonzero(mask).tolist()
        if not numbers:
            raise MisuseError("reset_mask chooses no episode")
        return numbers

    def _apart(self, actions: Any) -> list[Any]:
        try:
            given = list(iterate(self.action_space, actions))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise MisuseError(f"actions must be a batch of {self.num_envs}, got {actions!r:.200}") from error
        if len(given) != self.num_envs:
            raise MisuseError(f"actions must be a batch of {self.num_envs}, got {len(given)}")
        return given

    def _of(self, number: int) -> Episode:
        episode = self._episodes[number]
        if episode is None:
            raise ResetNeeded(f"episode {number} was never begun: call reset() first")
        return episode

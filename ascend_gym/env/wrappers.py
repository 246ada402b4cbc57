"""Wrappers of ``AscendOp-v0`` in gymnasium's style; gymnasium's own wrappers work as well."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from ascend_gym.core.append_log import AppendLog, read_log
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status, rule_of
from ascend_gym.env.text_observation import STATUSES
from ascend_gym.env.unicode_text import UnicodeText

OpEnv = gymnasium.Env[Any, Any]
OpWrapper = gymnasium.Wrapper[Any, Any, Any, Any]

_COMPARED = ("operator", "status", "candidate_digest", "incumbent_digest", "latency_us")


class BudgetLimit(OpWrapper, RecordConstructorArgs):
    """Limits the charged evaluations of all episodes together.

    The last evaluation truncates its episode, and ``reset`` raises afterwards, so that training stops
    spending.

    >>> import ascend_gym
    >>> env = BudgetLimit(gymnasium.make("AscendOp-v0", operator="gelu"), evaluations=4000)
    >>> env.evaluations_left
    4000
    """

    def __init__(self, env: OpEnv, evaluations: int) -> None:
        """Limit the total to ``evaluations``.

        Raises:
            MisuseError: it is not a positive number.
        """
        if evaluations < 1:
            raise MisuseError(f"evaluations must be at least 1, got {evaluations}")
        RecordConstructorArgs.__init__(self, evaluations=evaluations)
        super().__init__(env)
        self.evaluations_left = evaluations

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Raises:
            MisuseError: the budget is spent.
        """
        self._require_budget()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Evaluate an action; the last evaluation of the budget truncates the episode.

        Raises:
            MisuseError: the budget is spent.
        """
        self._require_budget()
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.evaluations_left -= rule_of(Status(info["status"])).charged
        return observation, reward, terminated, truncated or self.evaluations_left == 0, info

    def _require_budget(self) -> None:
        if self.evaluations_left == 0:
            raise MisuseError("the budget of evaluations is spent: make another environment to continue")


class EpisodeRecorder(OpWrapper, RecordConstructorArgs):
    """Logs every reset and step to a JSON-lines file, from which ``replay`` repeats an episode.

    >>> import ascend_gym, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     env = EpisodeRecorder(gymnasium.make("AscendOp-v0", operator="gelu"), f"{folder}/episodes.jsonl")
    ...     env.close()
    """

    def __init__(self, env: OpEnv, path: str) -> None:
        """Open the file, or create it.

        Raises:
            MisuseError: it cannot be written, is not a recording, or another recorder has it open.
        """
        RecordConstructorArgs.__init__(self, path=path)
        super().__init__(env)
        self._log = AppendLog(Path(path), alone=True)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and record its operator."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._log.append({"kind": "reset", **{name: info[name] for name in _COMPARED}})
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Evaluate an action and record the outcome."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        known = {name: info[name] for name in _COMPARED}
        self._log.append({"kind": "step", "action": _as_json(action), "reward": float(reward), **known})
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the file and the environment."""
        self._log.close()
        super().close()


def replay(env: OpEnv, path: str | Path, episode: int = -1) -> tuple[Any, dict[str, Any]]:
    """Repeat a recorded episode and check that every step gives the same outcome.

    Args:
        env: an environment with the same action family.
        path: file written by ``EpisodeRecorder``.
        episode: number of the episode in the file; negative numbers count from its end.

    Returns:
        The last observation and info.

    Raises:
        MisuseError: the file or episode does not exist, or the replay gives another outcome.
    """
    records = read_log(Path(path))
    starts = [number for number, record in enumerate(records) if record["kind"] == "reset"]
    if not -len(starts) <= episode < len(starts):
        raise MisuseError(f"{path} has {len(starts)} episodes, there is no number {episode}")
    start = starts[episode]
    end = next((later for later in starts if later > start), len(records))
    seen = env.reset(options={"operator": records[start]["operator"]})
    _require_same(path, 0, records[start], seen[1])
    for number, record in enumerate(records[start + 1 : end], 1):
        action = _from_json(env.action_space, record["action"])
        observation, reward, _, _, info = env.step(action)
        seen = observation, info
        _require_same(path, number, record, {**info, "reward": float(reward)})
    return seen


class IncumbentOnly(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Reduces observations to the sources of the incumbent, a ``Dict`` of ``tiling`` and ``kernel``.

    >>> import ascend_gym
    >>> env = IncumbentOnly(gymnasium.make("AscendOp-v0", operator="gelu"))
    >>> sorted(env.observation_space)
    ['kernel', 'tiling']
    """

    def __init__(self, env: OpEnv) -> None:
        """Restrict the observation space.

        Raises:
            MisuseError: the environment's observations are not text.
        """
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        seen = _text_space(env)
        self.observation_space = spaces.Dict({name: seen[name] for name in ("tiling", "kernel")})

    def observation(self, observation: Any) -> Any:
        """Return the two texts."""
        return {name: observation[name] for name in ("tiling", "kernel")}


class TextToFeatures(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Drops the texts of a text observation and flattens its numbers into a ``Box``.

    The family ``features`` has more features; this is for agents that also need the text of the same
    environment.

    >>> import ascend_gym
    >>> env = TextToFeatures(gymnasium.make("AscendOp-v0", operator="gelu"))
    >>> env.observation_space.dtype
    dtype('float32')
    """

    def __init__(self, env: OpEnv) -> None:
        """Create the space: ln(1 + x) of the numbers, and the status one-hot.

        Raises:
            MisuseError: the environment's observations are not text.
        """
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._names = [name for name, space in _text_space(env).items() if isinstance(space, spaces.Box)]
        length = sum(_text_space(env)[name].shape[0] for name in self._names) + len(STATUSES) + 1
        self.observation_space = spaces.Box(0.0, 64.0, (length,), np.float32)

    def observation(self, observation: Any) -> Any:
        """Return the numbers by name, then the remaining budget, then the status."""
        status = np.zeros(len(STATUSES))
        status[int(observation["status"])] = 1.0
        numbers = np.concatenate([observation[name] for name in self._names])
        return np.concatenate(
            [np.log1p(numbers), np.log1p([observation["budget_left"]]), status], dtype=np.float32
        )


class SuccessHistory(OpWrapper, RecordConstructorArgs):
    """Adds the previous incumbents as text, the latest and fastest first, for prompts of language models.

    The entry ``history`` has a paragraph for each: its latency and the text of its kernel.

    >>> import ascend_gym
    >>> env = SuccessHistory(gymnasium.make("AscendOp-v0", operator="gelu"), length=3)
    >>> "history" in env.observation_space.spaces
    True
    """

    def __init__(self, env: OpEnv, length: int = 3) -> None:
        """Keep the last ``length`` candidates.

        Raises:
            MisuseError: it is not a positive number, or the environment's observations are not text.
        """
        if length < 1:
            raise MisuseError(f"length must be at least 1, got {length}")
        RecordConstructorArgs.__init__(self, length=length)
        super().__init__(env)
        seen = _text_space(env)
        longest = length * (seen["kernel"].max_length + 64)
        self.observation_space = spaces.Dict({**seen.spaces, "history": UnicodeText(longest)})
        self._best: deque[tuple[float, str]] = deque(maxlen=length)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the operator's own sources as history."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._best.clear()
        return self._with_history(observation, info, improved=True), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Evaluate an action; a new incumbent is put first in the history."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_history(observation, info, info["improved"]), reward, terminated, truncated, info

    def _with_history(self, observation: Any, info: dict[str, Any], improved: bool) -> Any:
        if improved:
            self._best.appendleft((info["latency_us"], observation["kernel"]))
        paragraphs = [f"// {latency_us:.3f} us\n{kernel}\n" for latency_us, kernel in self._best]
        return {**observation, "history": "\n".join(paragraphs)}


def _text_space(env: OpEnv) -> Any:
    space = env.observation_space
    if not isinstance(space, spaces.Dict) or not {"tiling", "kernel", "status"} <= set(space):
        raise MisuseError("this wrapper needs an environment with observations='text'")
    return space


def _as_json(action: Any) -> Any:
    if isinstance(action, dict):
        return {name: _as_json(part) for name, part in action.items()}
    return action if isinstance(action, str) else np.asarray(action).tolist()


def _from_json(space: spaces.Space[Any], action: Any) -> Any:
    return np.array(action, space.dtype) if isinstance(space, spaces.MultiDiscrete) else action


def _require_same(path: str | Path, number: int, record: dict[str, Any], info: dict[str, Any]) -> None:
    for name in (name for name in (*_COMPARED, "reward") if name in record):
        if record[name] != info[name]:
            differ = f"{name} {record[name]!r} on file, the replay came to {info[name]!r}"
            raise MisuseError(f"{path}: step {number} has {differ}")

"""A conversation with an evaluator, for adapters and training loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ascend_gym.chat.conversation import Conversation, Turn
from ascend_gym.core.closing import Closing
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator, Message
from ascend_gym.core.records import OpSpec
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import Connection
from ascend_gym.env.task import is_over


class ChatSession(Closing):
    """One episode at a time, played as a conversation.

    Args:
        operator: as in ``AscendOpEnv``.
        daemon: one or several addresses; by default ``$ASCEND_GYM_DAEMON``, else a private daemon.
        chip: simulated or measured chip.
        evaluator: an evaluator of the caller in place of a daemon; the caller closes it.
        **options: other arguments of ``Conversation``.

    Raises:
        MisuseError: an argument is invalid.
    """

    def __init__(
        self,
        operator: str | OpSpec | Sequence[str | OpSpec] = "gelu",
        *,
        daemon: str | Sequence[str] | None = None,
        chip: str = "910B2",
        evaluator: Evaluator | None = None,
        **options: Any,
    ) -> None:
        self._conversation = Conversation(operator, chip=chip, **options)
        self._connection = Connection(daemon, chip, evaluator)
        self._rng = np.random.default_rng()
        self._episode: Episode | None = None
        self.turns = 0

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            MisuseError: there is none.
        """
        if self._episode is None:
            raise MisuseError("no episode is under way: call reset() first")
        return self._episode

    def reset(self, *, seed: int | None = None, operator: str | None = None) -> list[Message]:
        """Begin an episode.

        Args:
            seed: draws the operator if there are several.
            operator: switches permanently to another operator.

        Returns:
            The system message and the first user message.

        Raises:
            MisuseError: an unknown operator, or a request that the daemon rejects as invalid.
            OperatorFormatError: the evaluation of the operator's own sources fails.
            InfrastructureError: nothing could be evaluated.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        task = self._conversation.task
        task.set_options({} if operator is None else {"operator": operator})
        spec = task.draw(self._rng)
        (result,) = self._connection.evaluate([task.baseline_request(spec)])
        self._episode, self.turns = task.begun(spec, result), 0
        return self._conversation.opening(self._episode)

    def step(self, answer: str) -> Turn:
        """Evaluate an answer; no text of a model raises.

        Raises:
            MisuseError: there is no episode, it is over, or the answer is not a string.
        """
        before = self.episode
        if is_over(before):
            raise MisuseError("the episode is over: call reset() first")
        trial = self._conversation.trial(before, answer)
        result = trial.result or self._connection.evaluate([trial.request])[0]
        self._episode, turn = self._conversation.after(before, trial, result)
        self.turns += 1
        return turn

    def close(self) -> None:
        """Close the connection and stop the private daemon, if this session opened them."""
        self._connection.close()
        self._episode = None

"""Conversations as an OpenEnv environment, and its server. Needs the extra ``openenv``.

    uvicorn --factory my_module:make_app

where ``make_app`` is a function that returns ``app(operator=["gelu", "add"], budget=8)``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import Field

from ascend_gym.chat.session import ChatSession
from ascend_gym.core.protocols import Message

if TYPE_CHECKING:
    from fastapi import FastAPI


class AnswerAction(Action):
    """The answer of a model: an assistant message with edits or whole files."""

    content: str = Field(description="SEARCH/REPLACE edits or whole files under '### FILE: path' headers")


class EpisodeObservation(Observation):
    """New messages: first the system and user message, then a user message after each answer."""

    messages: list[dict[str, str]] = Field(description="new messages, each with 'role' and 'content'")


class EpisodeState(State):
    """State of an episode."""

    operator: str = Field(default="", description="id of the operator; empty before the first reset")
    speedup: float = Field(
        default=1.0, description="baseline latency over that of the fastest version so far"
    )
    budget_left: int = Field(default=0, description="evaluations that are left")


class AscendOpenEnv(Environment[AnswerAction, EpisodeObservation, EpisodeState]):
    """One conversation per client session.

    Args:
        **options: arguments of ``ChatSession``.

    Raises:
        MisuseError: an argument is invalid.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._session = ChatSession(**options)
        self._episode_state = EpisodeState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        operator: str | None = None,
        **kwargs: Any,
    ) -> EpisodeObservation:
        """Begin an episode; ``operator`` switches to another one. See ``ChatSession.reset``."""
        messages = self._session.reset(seed=seed, operator=operator)
        self._episode_state = EpisodeState(episode_id=episode_id or str(uuid4()), **self._where())
        return EpisodeObservation(
            messages=_plain(messages), metadata={"operator": self._episode_state.operator}
        )

    def step(self, action: AnswerAction, timeout_s: float | None = None, **kwargs: Any) -> EpisodeObservation:
        """Evaluate an answer; see ``ChatSession.step``. The evaluator bounds the time, not ``timeout_s``."""
        turn = self._session.step(action.content)
        count = self._episode_state.step_count + 1
        episode_id = self._episode_state.episode_id
        self._episode_state = EpisodeState(episode_id=episode_id, step_count=count, **self._where())
        metadata = {name: turn.info[name] for name in ("status", "unusable", "improved", "latency_us")}
        return EpisodeObservation(
            messages=_plain([turn.message]), reward=turn.reward, done=turn.done, metadata=metadata
        )

    @property
    def state(self) -> EpisodeState:
        """State of the episode."""
        return self._episode_state

    def close(self) -> None:
        """Close the connection and stop the private daemon, if this environment opened them."""
        self._session.close()

    def _where(self) -> dict[str, Any]:
        episode = self._session.episode
        return {
            "operator": episode.spec.op_id,
            "speedup": episode.speedup,
            "budget_left": episode.budget_left,
        }


def app(*, max_concurrent_envs: int = 16, **options: Any) -> FastAPI:
    """Return the web application that serves environments.

    Args:
        max_concurrent_envs: maximum number of sessions at a time.
        **options: arguments of ``ChatSession``.
    """
    return create_app(
        partial(AscendOpenEnv, **options),
        AnswerAction,
        EpisodeObservation,
        env_name="ascend-gym",
        max_concurrent_envs=max_concurrent_envs,
    )


def _plain(messages: list[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]

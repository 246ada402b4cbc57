"""Conversations as an environment of ``verifiers`` (its version 1 API). Needs the extra ``verifiers``.

verifiers finds plugins by package name: ``eval ascend_gym`` loads this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

from ascend_gym.chat.conversation import system_prompt
from ascend_gym.chat.session import ChatSession
from ascend_gym.suite.loader import is_suite, list_operators


class AscendTasksetConfig(vf.TasksetConfig):
    """Configuration of the task set: one task per operator."""

    operators: list[str] = Field(default_factory=lambda: ["core"])
    """Names of operators and suites."""


class AscendData(vf.TaskData):
    """One operator."""

    operator: str


class AscendTask(vf.Task[AscendData]):
    """Make one operator faster; the environment computes the reward."""


class AscendTaskset(vf.Taskset[AscendTask, AscendTasksetConfig]):
    """The operators of the configuration, in order."""

    def load(self) -> Iterator[AscendTask]:
        """Yield one task per operator."""
        for name in self.config.operators:
            for operator in [spec.op_id for spec in list_operators(name)] if is_suite(name) else [name]:
                data = AscendData(name=operator, operator=operator, system_prompt=system_prompt())
                yield AscendTask(data, self.config.task)


class AscendHarnessConfig(vf.HarnessConfig):
    """Empty configuration."""


class AscendHarness(vf.Harness[AscendHarnessConfig]):
    """A chat without tools: one model call per user message, in this process."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask the model for its next message; verifiers records it in the trace.

        Args:
            ctx: model to ask.
            trace: not used here.
            runtime: not used; candidates run in the daemon's sandbox.
            endpoint: base address of the model.
            secret: its API key.
            mcp_urls: not used; there are no tools.
            data: task with its prompt.
        """
        system, prompt = self.resolve_prompt(data)
        messages_so_far = (
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else map(message_to_wire, prompt)
        )
        messages: list[Any] = [{"role": "system", "content": system}, *messages_so_far]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class AscendEnvConfig(vf.EnvConfig):
    """Configuration of the environment; the fields are arguments of ``ChatSession``."""

    optimizer: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    daemon: list[str] | None = None
    chip: str = "910B2"
    budget: int = 8
    reward: str = "log_improvement"
    failure_penalty: float = 0.0
    unusable_penalty: float = 0.1
    repeat_sources: bool = True
    max_source_chars: int = 65536


class AscendEnv(vf.Env[AscendEnvConfig]):
    """The environment plays the user: it sends the state, and the model answers with edits.

    The reward of a rollout, ``ascend_gym``, is the sum of the rewards of its turns; metrics are ``speedup``,
    ``evaluations`` and ``unusable_answers``.
    """

    async def run(self, task: AscendTask, agents: vf.Agents) -> None:
        """Play one episode."""
        with self._session(task) as session:
            opening = await asyncio.to_thread(session.reset)
            message, total, unusable = opening[-1], 0.0, 0
            async with agents.optimizer.interaction(task) as interaction:
                segment = await interaction.turn(message.content)
                while not segment.terminated:
                    turn = await asyncio.to_thread(session.step, segment.last_reply)
                    total, unusable = total + turn.reward, unusable + turn.info["unusable"]
                    if turn.done:
                        break
                    segment = await interaction.turn(turn.message.content)
            interaction.trace.record_reward("ascend_gym", total)
            interaction.trace.record_metrics(
                {
                    "speedup": session.episode.speedup,
                    "evaluations": session.episode.spent,
                    "unusable_answers": unusable,
                }
            )

    def _session(self, task: AscendTask) -> ChatSession:
        config = self.config
        return ChatSession(
            task.data.operator,
            daemon=config.daemon,
            chip=config.chip,
            budget=config.budget,
            reward=config.reward,
            failure_penalty=config.failure_penalty,
            unusable_penalty=config.unusable_penalty,
            repeat_sources=config.repeat_sources,
            max_source_chars=config.max_source_chars,
        )

"""Episodes as chat messages: prompts, parsing of answers, and their rewards; pure, without evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.core.text import well_formed
from ascend_gym.env.episode import Episode
from ascend_gym.env.task import Task, Trial, is_terminated, is_truncated
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import chip_of, operator_fields, render_sources
from ascend_gym.search.llm.sheets import sheets
from ascend_gym.search.llm.template import render


@dataclass(frozen=True)
class Turn:
    """The outcome of one answer.

    Attributes:
        message: next user message; at the end of an episode it reports the outcome of the last answer.
        reward: reward of the answer.
        terminated: whether the budget of evaluations is spent.
        truncated: whether there were too many consecutive evaluations without a verdict.
        info: the last evaluation in plain values, as in ``AscendOp-v0``, and ``unusable``: whether the
            answer produced no candidate.
    """

    message: Message
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class Conversation:
    """Rules of episodes that are played as conversations.

    The state is a self-contained user message: operator, cases, outcome of the last answer, the
    fastest correct version so far with its latency and sources, and the evaluations left. An action is an
    assistant message with SEARCH/REPLACE edits or whole files. An answer that produces no candidate costs
    an evaluation and ``unusable_penalty``, and the next message says what was wrong with it.

    Args:
        operator: as in ``AscendOpEnv``.
        budget: evaluations per episode.
        unusable_penalty: penalty for an answer that produces no candidate, on top of ``failure_penalty``.
        repeat_sources: whether each message contains the sources, or only after they changed, which is
            shorter but makes a message depend on the earlier ones.
        **options: other arguments of ``Task``: ``op_dir``, ``chip``, ``reward``, ``failure_penalty``,
            ``max_source_chars``.

    Raises:
        MisuseError: an argument is invalid.
    """

    def __init__(
        self,
        operator: str | OpSpec | Sequence[str | OpSpec] = "gelu",
        *,
        budget: int = 8,
        unusable_penalty: float = 0.1,
        repeat_sources: bool = True,
        **options: Any,
    ) -> None:
        if not (math.isfinite(unusable_penalty) and unusable_penalty >= 0):
            raise MisuseError(f"unusable_penalty must be finite and at least 0, got {unusable_penalty}")
        self.task = Task(operator, budget=budget, actions="edits", observations="text", **options)
        self._unusable_penalty, self._repeat_sources = unusable_penalty, repeat_sources

    def opening(self, episode: Episode) -> list[Message]:
        """Return the first messages of an episode: the system message and the first state."""
        first = self._state(episode, "This is the first attempt.", shown=True)
        return [Message("system", system_prompt()), first]

    def trial(self, episode: Episode, answer: str) -> Trial:
        """Parse an answer and return its effect; any text is accepted.

        Raises:
            MisuseError: it is not a string.
        """
        if not isinstance(answer, str):
            raise MisuseError(f"an answer is a str, got {type(answer).__name__}")
        answer = well_formed(answer)
        if len(answer) > self.task.max_source_chars:
            limit = f"answers may have {self.task.max_source_chars}"
            return self.task.refused(episode, f"the answer has {len(answer)} characters, {limit}")
        return self.task.trial(episode, answer)

    def after(self, episode: Episode, trial: Trial, result: EvalResult) -> tuple[Episode, Turn]:
        """Return the episode after the evaluation of an answer, and the resulting turn."""
        after, reward = self.task.after(episode, trial, result)
        unusable = trial.result is not None
        message = self._state(after, _verdict(episode, after, unusable), shown=after.improved)
        turn = Turn(
            message=message,
            reward=reward - (self._unusable_penalty if unusable else 0.0),
            terminated=is_terminated(after),
            truncated=is_truncated(after),
            info={**self.task.info(after), "unusable": unusable},
        )
        return after, turn

    def _state(self, episode: Episode, last_answer: str, *, shown: bool) -> Message:
        spec, best = episode.spec, episode.incumbent_result
        sources = render_sources(episode.incumbent)
        unchanged = "Its sources are the same as before."
        text = render(
            "state",
            package=__package__,
            **operator_fields(spec),
            category=spec.category,
            description=spec.description,
            chip=chip_of(best),
            last_answer=last_answer,
            best_us=f"{episode.best_latency_us:.2f}",
            baseline_us=f"{episode.baseline_latency_us:.2f}",
            measurement=describe_result(best),
            sources=f"Its sources:\n\n{sources}" if shown or self._repeat_sources else unchanged,
            sheets=sheets(spec, episode.incumbent, best.device.target if best.device else None),
            budget=_budget(episode),
        )
        return Message("user", text)


def system_prompt() -> str:
    """Return the system message of all episodes: kernel knowledge, the rules, and the answer format."""
    return f"{render('system')}\n{render('answer_files')}"


def _budget(episode: Episode) -> str:
    if episode.budget_left == 0:
        return "There are no evaluations left: the episode is over."
    return f"Evaluations left, with that of your next answer: {episode.budget_left}."


def _verdict(before: Episode, after: Episode, unusable: bool) -> str:
    """Describe the outcome of the last answer."""
    result = after.last_result
    if result.latency_us is not None:
        gain = before.best_latency_us / result.latency_us
        compared = f"{gain:.3f} times as fast as the fastest before"
        effect = "It is the fastest so far." if after.improved else "It is not faster, and not kept."
        return f"Your last answer is correct and takes {result.latency_us:.2f} us, {compared}. {effect}"
    report = describe_result(result)
    if unusable:
        return f"Your last answer could not be used, and counts as an evaluation:\n{report}"
    if rule_of(result.status).reward is RewardRule.NEUTRAL:
        return (
            f"Your last answer could not be evaluated, through no fault of its own. Answer again:\n{report}"
        )
    return f"Your last answer failed and is not kept:\n{report}"

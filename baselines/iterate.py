"""Iterate: conversations with a model that sees what every answer of it came to, and goes on from the best.

An island is one conversation. Its model sees the target, the cases, the profile of the fastest version and
its sources. It may change tiling and kernel together, and is told how each answer did in every case, what
the compiler or the check said, and what was changed. What is correct and faster becomes the version to go on
from.

Islands take turns, all of them once a round. One that found nothing for ``patience`` rounds is told so; where
another has a faster version, it goes on from that in a new conversation. What an island is asked depends on
completed rounds alone, so the journal does not depend on how many evaluations are under way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ascend_gym.core.best import becomes_best, is_unwritten
from ascend_gym.core.errors import BudgetExceededError, MisuseError, ModelError
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.rewrites.answer import CODE_BEGINS, ParseProblem
from ascend_gym.search.llm.attempts import Attempt, describe_attempts
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import (
    case_fields,
    chip_of,
    render_sources,
    system_message,
    task_fields,
)
from ascend_gym.search.llm.sheets import calls_for
from ascend_gym.search.llm.template import render
from ascend_gym.search.llm.tools import Toolbox
from ascend_gym.search.model_client import ModelClient, candidate_reader
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal

_TURNS_KEPT = 6
_REASON_CHARACTERS = 2000
_ANSWER_CHARACTERS = 6000  # of an answer that could not be used
_APPLIED = "(The changes, as they were applied, are told next.)"
_GO_ON = (
    "Find the change that gains most now. Several changes that do not depend on each other can go together."
)
_FOLLOWING = "What was attempted follows, answer by answer."
_STUCK = (
    "The last {count} answers gained nothing. Try something of another kind: another way to divide the work, "
    "other instructions, fewer passes over the data."
)


@dataclass(frozen=True)
class _Turn:
    """An answer and what it came to."""

    answer: str
    attempt: Attempt

    @property
    def said(self) -> str:
        """The answer as the conversation repeats it: its reason alone, where its changes were applied."""
        if not self.attempt.diff:
            return _shortened(self.answer, _ANSWER_CHARACTERS) or "(no answer)"
        changes = CODE_BEGINS.search(self.answer)
        reason = self.answer[: changes.start()] if changes else self.answer
        return "\n\n".join(part for part in (_shortened(reason, _REASON_CHARACTERS), _APPLIED) if part)


@dataclass
class _Island:
    """One conversation: the version that it goes on from, and what was tried."""

    baseline: EvalResult
    best: Candidate
    result: EvalResult
    attempts: list[Attempt] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)
    asked: int = 0
    in_vain: int = 0

    @property
    def latency_us(self) -> float:
        """Latency of the version that it goes on from."""
        return self.result.latency_us or float("inf")


class Iterate:
    """Holds the conversations. A ``Strategy`` for ``ascend_gym.search.driver.run_search``."""

    def __init__(
        self,
        spec: OpSpec,
        model_client: ModelClient,
        *,
        budget: int,
        islands: int = 1,
        patience: int = 5,
        example: str = "",
        tools: bool = False,
    ) -> None:
        """Converse about ``spec``.

        Args:
            spec: the operator.
            model_client: asks the model.
            budget: evaluations of the run; the model is told how many are left.
            islands: conversations.
            patience: rounds without gain after which an island takes over the fastest version of all.
            example: what the task shows of another operator.
            tools: whether the model may look up calls and profiles before it answers.

        Raises:
            MisuseError: there would be no conversation.
        """
        if islands < 1 or patience < 1:
            raise MisuseError(f"expected at least one island and a patience of 1, got {islands}, {patience}")
        self._spec, self._model_client, self._budget = spec, model_client, budget
        self._count, self._patience, self._with_tools = islands, patience, tools
        self._example = example
        self._islands: list[_Island] = []
        self._to_ask: deque[int] = deque()  # islands that have not answered in this round
        self._awaited: dict[int, str] = {}  # answers under evaluation, by island

    def propose(self, limit: int) -> list[Proposal]:
        """Return up to one candidate of each island; none of the next round before this one is over.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
        """
        if not self._to_ask and not self._awaited:
            self._begin_round()
        proposals: list[Proposal] = []
        while self._to_ask and len(proposals) < limit:
            try:
                proposals.append(self._proposal(self._to_ask[0]))
            except (ModelError, BudgetExceededError):
                if not proposals:
                    raise
                break
            self._to_ask.popleft()
        return proposals

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Begin with the baseline; tell an island how its answer did."""
        if proposal.origin == BASELINE_ORIGIN:
            if result.status is Status.OK:
                start = proposal.candidate
                self._islands = [_Island(result, start, result) for _ in range(self._count)]
            return
        number = int(proposal.origin["island"])
        island, answer = self._islands[number], self._awaited.pop(number)
        if rule_of(result.status).reward is RewardRule.NEUTRAL:
            return
        unwritten = is_unwritten(self._spec, island.best)
        attempt = Attempt.of(
            island.best,
            island.result,
            proposal.candidate,
            result,
            first=unwritten and result.status is Status.OK,
        )
        island.attempts.append(attempt)
        island.turns.append(_Turn(answer, attempt))
        if becomes_best(result.latency_us, island.latency_us, unwritten=unwritten):
            island.best, island.result, island.in_vain = proposal.candidate, result, 0
        else:
            island.in_vain += 1

    def close(self) -> None:
        """Nothing is held."""

    def _begin_round(self) -> None:
        """Let every island speak once more; those that are stuck take over the fastest version."""
        self._to_ask.extend(range(len(self._islands)))
        if not self._islands:
            return
        fastest = min(self._islands, key=lambda each: each.latency_us)
        for island in self._islands:
            if island.in_vain >= self._patience and island.latency_us > fastest.latency_us:
                island.best, island.result, island.in_vain = fastest.best, fastest.result, 0
                island.attempts, island.turns = list(fastest.attempts), []

    def _proposal(self, number: int) -> Proposal:
        island = self._islands[number]
        shown = (call.name for call in calls_for(self._spec, island.best))
        toolbox = Toolbox(island.result, shown) if self._with_tools else None
        reading = self._model_client.read(
            self._messages(island, toolbox),
            candidate_reader(island.best),
            *("iterate", number, island.asked),
            tools=toolbox.reply if toolbox else None,
        )
        origin = {"kind": "iterate", "island": number, "turn": island.asked, "calls": [*reading.calls]}
        island.asked += 1
        self._awaited[number] = reading.text
        if isinstance(reading.value, ParseProblem):
            return UnusableProposal(island.best, {**origin, "answer": reading.text}, str(reading.value))
        return Proposal(reading.value, origin)

    def _messages(self, island: _Island, toolbox: Toolbox | None) -> list[Message]:
        """Return the conversation: the task, the last answers with their outcomes, the state at its end."""
        turns = island.turns[-_TURNS_KEPT:]
        earlier = island.attempts[: len(island.attempts) - len(turns)]
        system = system_message(self._spec, island.best, island.result)
        if toolbox is not None:
            system = Message(system.role, f"{system.content}\n{toolbox.described}")
        messages = [system, self._task(island, earlier, follow=bool(turns))]
        for number, turn in enumerate(turns, len(earlier) + 1):
            told = describe_attempts([turn.attempt], first=number)
            messages.append(Message("assistant", turn.said))
            messages.append(Message("user", f"{told}\n"))
        last = messages.pop()
        return [*messages, Message(last.role, f"{last.content}\n{self._state(island)}")]

    def _task(self, island: _Island, earlier: list[Attempt], *, follow: bool) -> Message:
        """Return the task; of a baseline that was left behind, what does not need its sources.

        Attempts that ``follow`` as turns of the conversation are not told here.
        """
        baseline, at_hand = island.baseline, island.result is island.baseline
        fields = task_fields(self._spec, baseline)
        if not at_hand:
            fields["present"] = f"What the run began with, measured on {chip_of(baseline)}"
        text = render(
            "iterate",
            package=__package__,
            **case_fields(self._spec),
            **fields,
            baseline=describe_result(baseline, pauses=at_hand),
            attempts=_FOLLOWING if follow and not earlier else describe_attempts(earlier),
        )
        return Message("user", f"{text}{self._example}")

    def _state(self, island: _Island) -> str:
        left = self._budget - sum(each.asked for each in self._islands)
        stuck = island.in_vain >= self._patience
        return render(
            "iterate_state",
            package=__package__,
            best="none yet" if is_unwritten(self._spec, island.best) else f"{island.latency_us:.2f} us",
            measurement="As above." if island.result is island.baseline else describe_result(island.result),
            sources=render_sources(island.best),
            advice=_STUCK.format(count=island.in_vain) if stuck else _GO_ON,
            left=f"Evaluations left, with that of this answer: {left}.",
        )


def _shortened(text: str, most: int) -> str:
    """Return the beginning of a text, and say so where there is more of it."""
    whole = text.strip()
    return whole if len(whole) <= most else f"{whole[:most]}\n(... {len(whole) - most} more characters)"

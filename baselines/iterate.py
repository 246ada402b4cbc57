"""Iterate: conversations with a model that sees what every answer of it came to, and goes on from the best.

An island is one conversation. Its model sees the target, the cases, the profile of the fastest version and
its sources. It may change tiling and kernel together, and is told how each answer did in every case, what
the compiler or the check said, and what was changed. What is correct and faster becomes the version to go on
from.

Islands take turns, all of them once a round. One that found nothing for ``patience`` rounds is told so; where
another has a faster version, it goes on from that in a new conversation. What an island is asked depends on
completed rounds alone, so the journal does not depend on how many evaluations are under way.

What a language model is told (``concise``) is short and begins alike from question to question, so that
providers cache it: the last two attempts in full, those before in a line each. Its answers may build upon
any attempt, and are asked for again where they repeat one. The offline model, which reads attempts as its
memory, is told all of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from ascend_gym.core.best import becomes_best, is_unwritten
from ascend_gym.core.errors import BudgetExceededError, MisuseError, ModelError
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.rewrites.answer import CODE_BEGINS, ParseProblem, ProblemKind
from ascend_gym.rewrites.bases import ORIGINAL, Combined, combined_from_answer
from ascend_gym.search.llm.attempts import Attempt, describe_attempts
from ascend_gym.search.llm.measurement import describe_result, told_latencies
from ascend_gym.search.llm.merging import Version, told_merge
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
from ascend_gym.search.model_client import Answer, ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal

_TURNS_KEPT = 6
_TURNS_KEPT_CONCISELY = 2
_REASON_CHARACTERS = 2000
_CONCISE_REASON_CHARACTERS = 600
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

    def said(self, most: int = _REASON_CHARACTERS) -> str:
        """Return the answer as the conversation repeats it: its reason, where its changes were applied."""
        if not self.attempt.diff:
            return _shortened(self.answer, 3 * most) or "(no answer)"
        changes = CODE_BEGINS.search(self.answer)
        reason = self.answer[: changes.start()] if changes else self.answer
        return "\n\n".join(part for part in (_shortened(reason, most), _APPLIED) if part)


@dataclass
class _Island:
    """One conversation: the version that it goes on from, and what was tried."""

    baseline: EvalResult
    best: Candidate
    result: EvalResult
    attempts: list[Attempt] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)
    versions: dict[int, Version] = field(default_factory=dict)  # by the number of the attempt
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
        concise: bool = False,
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
            concise: whether it is told what is short and cached, and may build upon any attempt.

        Raises:
            MisuseError: there would be no conversation.
        """
        if islands < 1 or patience < 1:
            raise MisuseError(f"expected at least one island and a patience of 1, got {islands}, {patience}")
        self._spec, self._model_client, self._budget = spec, model_client, budget
        self._count, self._patience, self._with_tools = islands, patience, tools
        self._example, self._concise = example, concise
        self._islands: list[_Island] = []
        self._to_ask: deque[int] = deque()  # islands that have not answered in this round
        self._awaited: dict[int, tuple[str, int | None]] = {}  # answer and base under evaluation, by island

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
        island = self._islands[number]
        answer, base = self._awaited.pop(number)
        if rule_of(result.status).reward is RewardRule.NEUTRAL:
            return
        unwritten = is_unwritten(self._spec, island.best)
        attempt = Attempt.of(
            island.best,
            island.result,
            proposal.candidate,
            result,
            first=unwritten and result.status is Status.OK,
            answer=answer if self._concise else "",
        )
        if base is not None:
            attempt = self._since_base(island, attempt, base, proposal, result)
        island.attempts.append(attempt)
        island.turns.append(_Turn(answer, attempt))
        if not isinstance(proposal, UnusableProposal):
            island.versions[len(island.attempts)] = Version(proposal.candidate, result)
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
                island.versions = dict(fastest.versions)

    def _since_base(
        self, island: _Island, attempt: Attempt, base: int, proposal: Proposal, result: EvalResult
    ) -> Attempt:
        """Return an attempt as it is told that came from another version than the fastest."""
        if base == ORIGINAL:
            origin, name = Version(self._spec.baseline, island.baseline), "the original"
        else:
            origin, name = island.versions[base], f"attempt {base}"
        own = Attempt.of(origin.candidate, origin.result, proposal.candidate, result)
        return replace(attempt, diff=own.diff, changes=own.changes or attempt.changes, base=name)

    def _proposal(self, number: int) -> Proposal:
        island = self._islands[number]
        shown = (call.name for call in calls_for(self._spec, island.best))
        toolbox = Toolbox(island.result, shown) if self._with_tools else None
        reading = self._model_client.read(
            self._messages(island, toolbox),
            lambda answer: self._combined(island, answer),
            *("iterate", number, island.asked),
            tools=toolbox.reply if toolbox else None,
        )
        origin = {"kind": "iterate", "island": number, "turn": island.asked, "calls": [*reading.calls]}
        island.asked += 1
        if isinstance(reading.value, ParseProblem):
            self._awaited[number] = reading.text, None
            return UnusableProposal(island.best, {**origin, "answer": reading.text}, str(reading.value))
        self._awaited[number] = reading.text, reading.value.base
        if reading.value.base is not None:
            origin["base"] = reading.value.base
        return Proposal(reading.value.candidate, origin)

    def _combined(self, island: _Island, answer: Answer) -> Combined | ParseProblem:
        """Return what an answer proposes; a repetition of an attempt is none where that is asked about."""
        if not self._concise:
            return combined_from_answer(answer.text, island.best, {}, ending=answer.ending)
        known = {ORIGINAL: Version(self._spec.baseline, island.baseline), **island.versions}
        candidates = {number: each.candidate for number, each in known.items()}
        combined = combined_from_answer(answer.text, island.best, candidates, ending=answer.ending)
        if isinstance(combined, ParseProblem):
            return combined
        for number, each in known.items():
            if each.candidate.digest == combined.candidate.digest:
                name = f"attempt {number}" if number != ORIGINAL else "the original"
                said = f"this is {name} once more, whose result is known: propose something else"
                return ParseProblem(ProblemKind.REPEATED, said)
        return combined

    def _messages(self, island: _Island, toolbox: Toolbox | None) -> list[Message]:
        """Return the conversation: the task, the last answers with their outcomes, the state at its end."""
        kept = _TURNS_KEPT_CONCISELY if self._concise else _TURNS_KEPT
        most = _CONCISE_REASON_CHARACTERS if self._concise else _REASON_CHARACTERS
        turns = island.turns[-kept:]
        earlier = island.attempts[: len(island.attempts) - len(turns)]
        if self._concise:  # the same calls, whatever the fastest version makes of them
            system = system_message(self._spec, self._spec.baseline, island.baseline)
            system = Message(system.role, f"{system.content}\n{render('combine')}")
        else:
            system = system_message(self._spec, island.best, island.result)
        if toolbox is not None:
            system = Message(system.role, f"{system.content}\n{toolbox.described}")
        messages = [system, self._task(island, earlier, follow=bool(turns))]
        for number, turn in enumerate(turns, len(earlier) + 1):
            attempt = replace(turn.attempt, reason="")
            told = describe_attempts([attempt], first=number, in_full=1 if self._concise else None)
            messages.append(Message("assistant", turn.said(most)))
            messages.append(Message("user", f"{told}\n"))
        last = messages.pop()
        return [*messages, Message(last.role, f"{last.content}\n{self._state(island)}")]

    def _task(self, island: _Island, earlier: list[Attempt], *, follow: bool) -> Message:
        """Return the task; of a baseline that was left behind, what does not need its sources.

        Attempts that ``follow`` as turns of the conversation are not told here.
        """
        baseline, at_hand = island.baseline, island.result is island.baseline
        fields = task_fields(self._spec, baseline)
        if not at_hand or (self._concise and not is_unwritten(self._spec, self._spec.baseline)):
            fields["present"] = f"What the run began with, measured on {chip_of(baseline)}"
        measured = told_latencies(baseline) if self._concise else describe_result(baseline, pauses=at_hand)
        in_full = 0 if self._concise else None
        text = render(
            "iterate",
            package=__package__,
            **case_fields(self._spec),
            **fields,
            baseline=measured,
            attempts=_FOLLOWING if follow and not earlier else describe_attempts(earlier, in_full=in_full),
        )
        return Message("user", f"{text}{self._example}")

    def _state(self, island: _Island) -> str:
        left = self._budget - sum(each.asked for each in self._islands)
        stuck = island.in_vain >= self._patience
        as_above = island.result is island.baseline and not self._concise
        merge = told_merge(Version(island.best, island.result), island.versions) if self._concise else ""
        return render(
            "iterate_state",
            package=__package__,
            best="none yet" if is_unwritten(self._spec, island.best) else f"{island.latency_us:.2f} us",
            measurement="As above." if as_above else describe_result(island.result),
            sources=render_sources(island.best, fold=self._concise),
            merge=merge,
            advice=_STUCK.format(count=island.in_vain) if stuck else _GO_ON,
            left=f"Evaluations left, with that of this answer: {left}.",
        )


def _shortened(text: str, most: int) -> str:
    """Return the beginning of a text, and say so where there is more of it."""
    whole = text.strip()
    return whole if len(whole) <= most else f"{whole[:most]}\n(... {len(whole) - most} more characters)"

"""Calls of a strategy to a language model: a seed for each purpose, a note of each call for the journal."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import Any, Generic, TypeVar

from ascend_gym.core.protocols import Ending, Llm, Message
from ascend_gym.core.records import Candidate
from ascend_gym.core.text import shortened
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.search.llm.prompts import prompt_digest
from ascend_gym.search.llm.template import render
from ascend_gym.search.llm.tools import MOST_ROUNDS
from ascend_gym.search.seeds import derived_seed

MAX_TOKENS = 16384
TIMEOUT_S = 600.0

Purpose = tuple[str | int, ...]
T = TypeVar("T")

_MAX_QUOTED_CHARS = 24_000  # of an answer that could not be used
_WAIT_S = 0.5


@dataclass(frozen=True)
class Answer:
    """What a model said.

    Attributes:
        text: its answer.
        call: purpose, seed, model, prompt digest and token counts, for a proposal's ``origin["calls"]``;
            ``cached_tokens`` where the provider had some in its cache, ``ending`` where the model did not
            stop by itself.
        ending: why the model stopped.
    """

    text: str
    call: Mapping[str, Any]
    ending: Ending = Ending.COMPLETE


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What was read out of what a model said.

    Attributes:
        value: what was asked for, or what was wrong with the last answer.
        text: the last answer.
        calls: a note of each call, for a proposal's ``origin["calls"]``.
    """

    value: T | ParseProblem
    text: str
    calls: tuple[Mapping[str, Any], ...]


class ModelClient:
    """The calls of one run to one model: seeds, limits, re-asks and notes for the journal."""

    def __init__(
        self,
        llm: Llm,
        *,
        seed: int,
        max_tokens: int = MAX_TOKENS,
        deadline_s: float = TIMEOUT_S,
        concurrency: int = 1,
    ) -> None:
        """Ask ``llm``.

        Args:
            llm: the model.
            seed: seed of the run.
            max_tokens: upper limit of one answer's length.
            deadline_s: wall seconds for one answer.
            concurrency: questions under way at a time in ``read_all``.
        """
        self._llm, self._seed = llm, seed
        self._max_tokens, self._deadline_s = max_tokens, deadline_s
        self.concurrency = concurrency

    def ask(self, messages: Sequence[Message], *purpose: str | int) -> Answer:
        """Return the answer; the same messages for the same purpose of the same run get the same seed.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover the question.
        """
        seed = derived_seed(self._seed, *purpose)
        completion = self._llm.complete(
            messages, seed=seed, max_tokens=self._max_tokens, deadline_s=self._deadline_s
        )
        call = {
            "purpose": list(purpose),
            "seed": seed,
            "model": completion.model,
            "prompt_digest": prompt_digest(messages),
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
        }
        if completion.cached_tokens:
            call["cached_tokens"] = completion.cached_tokens
        if completion.ending is not Ending.COMPLETE:
            call["ending"] = completion.ending.value
        return Answer(completion.text, call, completion.ending)

    def read(
        self,
        messages: Sequence[Message],
        reader: Callable[[Answer], T | ParseProblem],
        *purpose: str | int,
        tools: Callable[[str], str | None] | None = None,
    ) -> Reading[T]:
        """Ask, and once more with the reason where the answer cannot be used.

        The second question costs tokens and no evaluation. It is left out after a refusal.

        Args:
            messages: the question.
            reader: makes what is wanted of an answer, or says what is wrong with it.
            *purpose: as for ``ask``; the second question's ends in ``again``.
            tools: says what an answer asks for that wants to know something first, ``None`` for others; such
                answers cost tokens and no evaluation, and there are up to ``MOST_ROUNDS`` of them.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover a question.
        """
        answer, messages, calls = self._after_tools(messages, tools, *purpose)
        value = reader(answer)
        if not isinstance(value, ParseProblem) or value.kind is ProblemKind.REFUSED:
            return Reading(value, answer.text, calls)
        again = self.ask([*messages, _quoted(answer), _question_again(value)], *purpose, "again")
        return Reading(reader(again), again.text, (*calls, again.call))

    def _after_tools(
        self, messages: Sequence[Message], tools: Callable[[str], str | None] | None, *purpose: str | int
    ) -> tuple[Answer, Sequence[Message], tuple[Mapping[str, Any], ...]]:
        """Return the first answer that asks for no tool, what it answers, and the calls until then."""
        answer = self.ask(messages, *purpose)
        calls: tuple[Mapping[str, Any], ...] = (answer.call,)
        for number in range(1, MOST_ROUNDS + 1):
            said = tools(answer.text) if tools is not None else None
            if said is None:
                break
            left = "Now give your changes." if number == MOST_ROUNDS else ""
            messages = [*messages, _quoted(answer), Message("user", f"{said}\n\n{left}".strip())]
            answer = self.ask(messages, *purpose, "tool", number)
            calls = (*calls, answer.call)
        return answer, messages, calls

    def read_all(
        self,
        messages: Sequence[Message],
        reader: Callable[[Answer], T | ParseProblem],
        purposes: Sequence[Purpose],
    ) -> Iterator[Reading[T]]:
        """Yield what is read for each purpose, in their order, asking up to ``concurrency`` at a time.

        After an error no question is begun, and those under way are waited for. A Ctrl-C, or a caller that
        takes no more answers, does not wait: calls under way end with the process at the latest.

        Raises:
            ModelError: the model could not answer one of them.
            BudgetExceededError: the budget does not cover one of them.
        """
        if self.concurrency == 1 or len(purposes) < 2:
            yield from (self.read(messages, reader, *purpose) for purpose in purposes)
            return
        pool = ThreadPool(min(self.concurrency, len(purposes)))
        waits = True
        try:
            boxes = [queue.SimpleQueue[Reading[T] | BaseException]() for _ in purposes]
            for purpose, box in zip(purposes, boxes, strict=True):
                question = (messages, reader, *purpose)
                pool.apply_async(self.read, question, callback=box.put, error_callback=box.put)
            yield from map(_taken, boxes)
        except (KeyboardInterrupt, GeneratorExit):
            waits = False
            raise
        finally:
            pool.terminate()
            if waits:
                pool.join()


def _quoted(answer: Answer) -> Message:
    said = shortened(answer.text.strip(), _MAX_QUOTED_CHARS) or "(no answer)"
    return Message("assistant", said)


def _question_again(problem: ParseProblem) -> Message:
    return Message("user", render("again", problem=problem.message))


def _taken(box: queue.SimpleQueue[Reading[T] | BaseException]) -> Reading[T]:
    """Return or raise what arrives; waits are short, as Python misses a signal that comes as one begins."""
    while True:
        try:
            reading = box.get(timeout=_WAIT_S)
        except queue.Empty:
            continue
        if isinstance(reading, BaseException):
            raise reading
        return reading


def candidate_reader(base: Candidate) -> Callable[[Answer], Candidate | ParseProblem]:
    """Return what makes candidates of answers to a question that showed ``base``."""
    return lambda answer: candidate_from_answer(answer.text, base, ending=answer.ending)

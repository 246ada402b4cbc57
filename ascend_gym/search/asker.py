"""How strategies ask a model: with a seed for the purpose, and a note of each call for the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import Any

from ascend_gym.core.protocols import Llm, Message
from ascend_gym.core.records import Candidate
from ascend_gym.search.llm.prompts import prompt_digest
from ascend_gym.search.outcome import UnusableProposal
from ascend_gym.search.seeds import derived_seed

MAX_TOKENS = 16384
TIMEOUT_S = 600.0

Purpose = tuple[str | int, ...]


@dataclass(frozen=True)
class Answer:
    """What a model said.

    Attributes:
        text: its answer.
        call: purpose, seed, model, prompt digest and token counts, for a proposal's ``origin["calls"]``.
        cut_off_tokens: the limit at which the answer ended, reasoning included; 0 if it ended by itself.
    """

    text: str
    call: Mapping[str, Any]
    cut_off_tokens: int = 0

    def unusable(self, problem: object, base: Candidate, origin: Mapping[str, Any]) -> UnusableProposal:
        """Return the proposal that stands for an answer from which no candidate can be read.

        Args:
            problem: what is wrong with it; that it was cut off is added.
            base: the candidate that it was meant to rewrite.
            origin: where it came from; the text is added.
        """
        told = str(problem)
        if self.cut_off_tokens:
            where = "before its end" if self.text.strip() else "before it said anything"
            advice = "raise --max-tokens, or have the model reason less"
            told += f" (cut off at the limit of {self.cut_off_tokens} tokens {where}: {advice})"
        return UnusableProposal(base, {**origin, "answer": self.text}, told)


class Asker:
    """Asks one model on behalf of one run."""

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
            concurrency: questions under way at a time in ``ask_all``.
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
        return Answer(completion.text, call, self._max_tokens if completion.cut_off else 0)

    def ask_all(self, messages: Sequence[Message], purposes: Sequence[Purpose]) -> Iterator[Answer]:
        """Yield one answer for each purpose, in their order, asking up to ``concurrency`` at a time.

        After an error no question is begun, and those under way are waited for. A Ctrl-C, or a caller that
        takes no more answers, does not wait: calls under way end with the process at the latest.

        Raises:
            ModelError: the model could not answer one of them.
            BudgetExceededError: the budget does not cover one of them.
        """
        if self.concurrency == 1 or len(purposes) < 2:
            yield from (self.ask(messages, *purpose) for purpose in purposes)
            return
        pool = ThreadPool(min(self.concurrency, len(purposes)))
        waits = True
        try:
            yield from pool.imap(lambda purpose: self.ask(messages, *purpose), purposes)
        except (KeyboardInterrupt, GeneratorExit):
            waits = False
            raise
        finally:
            pool.terminate()
            if waits:
                pool.join()

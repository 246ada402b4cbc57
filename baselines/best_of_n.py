"""Best-of-N: N independent single-shot rewrites of the complete operator; the fastest correct one wins.

Each sample sees the same prompt: host and kernel sources, cases, and how the operator's own sources
were measured. Nothing is learned between samples, so sample k is the same for every N >= k and every
number of workers: its seed depends on the run's seed and k alone.
"""

from __future__ import annotations

from ascend_gym.core.errors import BudgetExceededError, ModelError
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.rewrites.answer import ParseProblem
from ascend_gym.search.llm.prompts import best_of_n_messages
from ascend_gym.search.model_client import ModelClient, Reading, candidate_reader
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal


class BestOfN:
    """Samples a model ``samples`` times. A ``Strategy`` for ``ascend_gym.search.driver.run_search``."""

    def __init__(
        self, spec: OpSpec, model_client: ModelClient, *, samples: int, example: str = "", fold: bool = False
    ) -> None:
        """Sample ``model_client`` for ``spec``.

        Args:
            spec: the operator.
            model_client: asks the model, up to its ``concurrency`` samples at a time.
            samples: N.
            example: what the prompt shows of another operator.
            fold: whether it leaves licence headers out.
        """
        self._spec, self._model_client, self._samples = spec, model_client, samples
        self._example, self._fold = example, fold
        self._messages: list[Message] = []
        self._drawn: list[Proposal] = []  # not proposed yet
        self._next = 0

    def propose(self, limit: int) -> list[Proposal]:
        """Return up to ``limit`` further samples; none before the baseline was observed.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
        """
        if not self._messages:
            return []
        try:
            while len(self._drawn) < limit and self._next < self._samples:
                self._draw(min(max(limit, self._model_client.concurrency), self._samples - self._next))
        except (ModelError, BudgetExceededError):
            if not self._drawn:
                raise
        taken, self._drawn = self._drawn[:limit], self._drawn[limit:]
        return taken

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Write the prompt once the baseline is measured; samples teach nothing."""
        if proposal.origin == BASELINE_ORIGIN:
            self._messages = best_of_n_messages(self._spec, result, self._example, fold=self._fold)

    def _draw(self, count: int) -> None:
        purposes = [("best-of-n", self._next + ahead) for ahead in range(count)]
        for reading in self._model_client.read_all(
            self._messages, candidate_reader(self._spec.baseline), purposes
        ):
            self._drawn.append(self._proposal(self._next, reading))
            self._next += 1

    def close(self) -> None:
        """Nothing is held."""

    def _proposal(self, sample: int, reading: Reading[Candidate]) -> Proposal:
        origin = {"kind": "sample", "sample": sample, "calls": [*reading.calls]}
        if isinstance(reading.value, ParseProblem):
            origin |= {"answer": reading.text}
            return UnusableProposal(self._spec.baseline, origin, str(reading.value))
        return Proposal(reading.value, origin)

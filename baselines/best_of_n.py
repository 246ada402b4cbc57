"""Best-of-N: N independent single-shot rewrites of the complete operator; the fastest correct one wins.

Each sample sees the same prompt: host and kernel sources, cases, and how the operator's own sources
were measured. Nothing is learned between samples, so sample k is the same for every N >= k and every
number of workers: its seed depends on the run's seed and k alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascend_gym.core.protocols import Llm, Message, Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.search.driver import BASELINE_ORIGIN, UnusableProposal
from ascend_gym.search.llm.answer import ParseProblem, candidate_from_answer
from ascend_gym.search.llm.prompts import best_of_n_messages, prompt_digest
from ascend_gym.search.seeds import derived_seed


class BestOfN:
    """Samples a model ``samples`` times. A ``Strategy`` for ``ascend_gym.search.driver.run_search``."""

    def __init__(
        self,
        spec: OpSpec,
        llm: Llm,
        *,
        samples: int,
        seed: int,
        max_tokens: int = 16384,
        deadline_s: float = 600.0,
    ) -> None:
        """Sample ``llm`` for ``spec``.

        Args:
            spec: the operator.
            llm: the model.
            samples: N.
            seed: seed of the run.
            max_tokens: upper limit of one answer's length.
            deadline_s: wall seconds for one answer.
        """
        self._spec, self._llm = spec, llm
        self._samples, self._seed = samples, seed
        self._max_tokens, self._deadline_s = max_tokens, deadline_s
        self._messages: list[Message] = []
        self._drawn = 0

    def propose(self, limit: int) -> list[Proposal]:
        """Draw up to ``limit`` further samples; none before the baseline was observed.

        Raises:
            ModelError: the model could not answer.
        """
        if not self._messages:
            return []
        return [self._sample() for _ in range(min(limit, self._samples - self._drawn))]

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Write the prompt once the baseline is measured; samples teach nothing."""
        if proposal.origin == BASELINE_ORIGIN:
            self._messages = best_of_n_messages(self._spec, result)

    def state(self) -> dict[str, Any]:
        """Return the number of samples drawn; everything else follows from the seed and the baseline."""
        return {"drawn": self._drawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue after that many samples; the baseline has to be observed again."""
        self._drawn = state["drawn"]

    def _sample(self) -> Proposal:
        seed = derived_seed(self._seed, "best-of-n", self._drawn)
        completion = self._llm.complete(
            self._messages, seed=seed, max_tokens=self._max_tokens, deadline_s=self._deadline_s
        )
        origin = {
            "kind": "sample",
            "sample": self._drawn,
            "seed": seed,
            "model": completion.model,
            "prompt_digest": prompt_digest(self._messages),
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
        }
        self._drawn += 1
        answer = candidate_from_answer(completion.text, self._spec.baseline)
        if isinstance(answer, ParseProblem):
            return UnusableProposal(self._spec.baseline, {**origin, "answer": completion.text}, str(answer))
        return Proposal(answer, origin)

"""Rewinding within a run (version 2 counts it): what an operator's own sources teach, charged like all else.

The first steps of a run take optimisations out of the operator's sources, one at a time; what each was worth
joins the bank for the steps after them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from agents.ascend_optimizer.distill import distil
from agents.ascend_optimizer.experience import Experience
from agents.ascend_optimizer.incumbent import Incumbent, is_better
from agents.ascend_optimizer.noise import tau_noise_of
from agents.ascend_optimizer.retrieval import ExperienceRetriever
from agents.ascend_optimizer.rewind import RewindSettings, RewindStrategy, Unreadable
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.search.llm.prompts import chip_of
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN

RetrieverWith = Callable[[Sequence[Experience]], ExperienceRetriever | None]
"""Makes the retriever of a run that knows some experiences more than its bank."""


class OwnRewinds:
    """Rewinds the operator of a run before it is optimised."""

    def __init__(
        self, spec: OpSpec, model_client: ModelClient, *, steps: int, seed: int, retriever_with: RetrieverWith
    ) -> None:
        """Rewind ``spec``.

        Args:
            spec: the operator.
            model_client: asks the model that rewinds and distils.
            steps: evaluations to spend.
            seed: seed of the run, for the provenance of what is learnt.
            retriever_with: makes the retriever of the steps after.
        """
        self._spec, self._model_client, self._steps, self._seed = spec, model_client, steps, seed
        self._retriever_with = retriever_with

    def rewind(
        self, start: Incumbent
    ) -> Generator[Proposal, EvalResult, tuple[Incumbent, ExperienceRetriever | None]]:
        """Yield the rewinds; return the fastest version seen and where experience comes from now."""
        settings = RewindSettings(tau_noise=tau_noise_of(start.result))
        strategy = RewindStrategy(self._spec, self._model_client, settings)
        strategy.observe(Proposal(start.candidate, BASELINE_ORIGIN), start.result)
        best = start
        for _ in range(self._steps):
            proposals = strategy.propose(1)
            if not proposals:
                break
            result = yield proposals[0]
            strategy.observe(proposals[0], result)
            if is_better(self._spec, result, best):
                best = Incumbent(proposals[0].candidate, result)
        return best, self._retriever_with(self._learnt(strategy, chip_of(start.result)))

    def _learnt(self, strategy: RewindStrategy, chip: str) -> list[Experience]:
        """Return what the validated pairs teach; answers that cannot be used teach nothing."""
        told = [
            distil(self._spec, step, self._model_client, chip=chip, seed=self._seed)
            for step in strategy.steps
        ]
        return [each for each in told if not isinstance(each, Unreadable)]

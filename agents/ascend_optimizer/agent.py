"""AscendOptimizer (arXiv 2603.23566): tiling search and experience-guided kernel refinement in turn.

One operator O = <T, K, S> is optimised by block coordinate descent: Stage I searches the tiling program T
under a fixed kernel K, Stage II refines K under a fixed T. The algorithms are generators that yield what
they want evaluated and are sent the result, so that they read as in the papers. Each step depends on the one
before: one evaluation is under way at a time, whatever the driver allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from agents.ascend_optimizer.incumbent import Evaluations, Incumbent, Memory
from agents.ascend_optimizer.joint import JointRefinement
from agents.ascend_optimizer.own_rewinds import OwnRewinds
from agents.ascend_optimizer.refine import KernelRefinement
from agents.ascend_optimizer.retrieval import ExperienceRetriever
from agents.ascend_optimizer.settings import Ablation, AgentSettings, Refinement, Schedule
from agents.ascend_optimizer.tiling_search import TilingSearch, reads_tiling_data
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import EvalResult, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.search.model_client import ModelClient
from ascend_gym.search.outcome import BASELINE_ORIGIN


class AscendOptimizer:
    """The agent. A ``Strategy`` for ``ascend_gym.search.driver.run_search``."""

    def __init__(
        self,
        spec: OpSpec,
        *,
        online: ModelClient,
        offline: ModelClient,
        retriever: ExperienceRetriever | None,
        settings: AgentSettings,
        own_rewinds: OwnRewinds | None = None,
    ) -> None:
        """Optimise ``spec``.

        Args:
            spec: the operator.
            online: asks the model that mutates, diagnoses and refines.
            offline: asks the model that synthesises the evolvable template.
            retriever: finds experience; ``None`` to go without.
            settings: schedule, ablations and lengths.
            own_rewinds: what the run learns first from the operator itself; ``None`` for nothing.
        """
        self._settings, self._own_rewinds = settings, own_rewinds
        memory = Memory()
        self._tiling = TilingSearch(spec, online=online, offline=offline, settings=settings, memory=memory)
        refinement = JointRefinement if settings.refinement is Refinement.JOINT else KernelRefinement
        self._kernel: KernelRefinement | JointRefinement = refinement(
            spec, online=online, retriever=retriever, settings=settings, memory=memory
        )
        self._algorithm: Evaluations | None = None
        self._waiting = False
        self._result: EvalResult | None = None

    def propose(self, limit: int) -> list[Proposal]:
        """Return the next step's candidate; nothing while the result of the last one is awaited.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer.
        """
        if self._algorithm is None or self._waiting or limit < 1:
            return []
        result, self._result = self._result, None
        try:
            proposal = next(self._algorithm) if result is None else self._algorithm.send(result)
        except StopIteration:
            return []
        self._waiting = True
        return [proposal]

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Begin with the baseline's result; hand any other to the step that awaits it."""
        if proposal.origin != BASELINE_ORIGIN:
            self._result, self._waiting = result, False
        elif result.status is Status.OK:
            algorithms = {
                Schedule.ALTERNATE: self._alternate,
                Schedule.REFINE_THEN_TILE: self._refine_then_tile,
            }
            optimise = algorithms[self._settings.schedule]
            self._algorithm = self._run(optimise, Incumbent(proposal.candidate, result))

    def close(self) -> None:
        """Nothing is held."""

    def _run(self, optimise: Callable[[Incumbent], Evaluations], best: Incumbent) -> Evaluations:
        """Learn from the operator itself, if that is wanted, then optimise it."""
        if self._own_rewinds is not None:
            best, retriever = yield from self._own_rewinds.rewind(best)
            self._kernel.retriever = retriever
        best = yield from optimise(best)
        return best

    def _alternate(self, best: Incumbent) -> Evaluations:
        """Version 1, section 3.5, Algorithm 1: rounds of tiling search, then kernel refinement."""
        for round_ in self._rounds():
            best = yield from self._stage_tiling(best, round_)
            best = yield from self._stage_kernel(best, round_)
        return best

    def _refine_then_tile(self, best: Incumbent) -> Evaluations:
        """Version 2, Algorithm 2: passes of kernel refinement, then tiling search under the refined K."""
        for round_ in self._rounds():
            best = yield from self._stage_kernel(best, round_)
            best = yield from self._stage_tiling(best, round_)
        return best

    def _stage_tiling(self, best: Incumbent, round_: int) -> Evaluations:
        """Optimise T with K fixed, unless that is ablated, or there is nothing in it and K can change."""
        refines = not self._settings.without(Ablation.KERNEL)
        exhausted = refines and self._tiling.is_exhausted(best)
        if refines and self._settings.refinement is Refinement.JOINT:
            exhausted = exhausted or not reads_tiling_data(best.candidate)
        if not (self._settings.without(Ablation.TILING) or exhausted):
            best = yield from self._tiling.search(best, round_)
        return best

    def _stage_kernel(self, best: Incumbent, round_: int) -> Evaluations:
        """Optimise K with T fixed, unless that is ablated."""
        if not self._settings.without(Ablation.KERNEL):
            best = yield from self._kernel.refine(best, round_)
        return best

    def _rounds(self) -> Iterator[int]:
        """Yield the rounds r = 1 to R; without R the driver stops asking when the budget is spent."""
        rounds = self._settings.rounds
        return iter(range(1, rounds + 1)) if rounds else count(1)

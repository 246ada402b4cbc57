"""Refinement for language models: one question a step, about kernel and tiling program together.

The papers diagnose by a question of its own, fix T while K is refined, and show experience whatever it
gained. A capable model diagnoses by itself, loses where the tiling data may not change, and reads what it
knows. So a step asks once; its evidence is what was measured, by which experience is retrieved too;
experience is shown where it gained a tenth and says more than the system prompt; and an answer may build upon
any attempt.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from agents.ascend_optimizer.incumbent import Evaluations, Incumbent, Memory, evaluate, is_better
from agents.ascend_optimizer.markers import unmarked
from agents.ascend_optimizer.refine import describe_experience
from agents.ascend_optimizer.retrieval import ExperienceRetriever, Retrieved
from agents.ascend_optimizer.settings import AgentSettings
from agents.ascend_optimizer.template import PACKAGE
from ascend_gym.core.protocols import Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.rewrites.bases import ORIGINAL, Combined, combined_from_answer
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.merging import Version, told_merge
from ascend_gym.search.llm.prompts import operator_fields, render_sources, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import Answer, ModelClient

LEAST_GAIN = 1.1
"""Least speedup of experience that is shown."""
TOLD_ANYWAY = frozenset(
    {
        "kernel.pipelining.buffer_count",
        "kernel.pipelining.full_barrier_removal",
        "kernel.pipelining.vector_barrier_removal",
        "host.tiling.block_dim_from_platform",
    }
)
"""Families that the system prompt tells of by itself: two buffers a queue, needless barriers, all cores."""

_IN_FULL = 2
_CANDIDATES_PER_PLACE = 8


class JointRefinement:
    """Refines T and K together. What was attempted is remembered from one pass to the next.

    Attributes:
        retriever: where experience comes from; ``None`` to go without.
    """

    def __init__(
        self,
        spec: OpSpec,
        *,
        online: ModelClient,
        retriever: ExperienceRetriever | None,
        settings: AgentSettings,
        memory: Memory,
    ) -> None:
        """Refine ``spec``; ``memory`` is shared with the tiling search."""
        self._spec, self._online, self._settings, self._memory = spec, online, settings, memory
        self.retriever = retriever
        self._baseline: Version | None = None

    def refine(self, incumbent: Incumbent, round_: int) -> Evaluations:
        """Run the steps of one round; return the best (T, K).

        The pass ends early where the model proposes no change, and after ``patience`` steps in vain.
        """
        self._baseline = self._baseline or Version(unmarked(incumbent.candidate), incumbent.result)
        in_vain = 0
        for step in range(self._settings.steps_in(round_, self._settings.refine_steps)):
            refined, is_exhausted = yield from self._step(incumbent, round_, step)
            in_vain = 0 if refined is not None else in_vain + 1
            incumbent = refined or incumbent
            if in_vain == self._settings.patience or is_exhausted:
                break
        return incumbent

    def _step(
        self, incumbent: Incumbent, round_: int, step: int
    ) -> Generator[Proposal, EvalResult, tuple[Incumbent | None, bool]]:
        """Ask for one rewrite; return it if it is better, and whether the model knows no more."""
        base = Incumbent(unmarked(incumbent.candidate), incumbent.result)
        retrieved = self._retrieve(base)
        place = self._settings.place_in(round_, step, self._settings.refine_steps)
        reading = self._online.read(
            self._messages(base, retrieved, place),
            lambda answer: self._candidate(base.candidate, answer),
            *("refine-both", round_, step),
        )
        origin = {"kind": "refine", "stage": "joint", "round": round_, "step": step}
        origin["experience"] = [each.experience.digest[:16] for each in retrieved]
        origin["calls"] = [*reading.calls]
        rewritten = reading.value
        proposal, result = yield from evaluate(rewritten, base, origin, reading.text)
        self._memory.note(base, proposal, result, "kernel and tiling", reading.text)
        if isinstance(rewritten, ParseProblem):
            return None, rewritten.kind is ProblemKind.NO_FILES
        return (Incumbent(rewritten, result) if is_better(self._spec, result, base) else None), False

    def _candidate(self, shown: Candidate, answer: Answer) -> Candidate | ParseProblem:
        """Return what an answer proposes; an attempt once more is none."""
        versions = {number: each.candidate for number, each in self._versions().items()}
        combined = combined_from_answer(answer.text, shown, versions, ending=answer.ending)
        if not isinstance(combined, Combined):
            return combined
        for number, candidate in versions.items():
            if candidate.digest == combined.candidate.digest:
                name = f"attempt {number}" if number != ORIGINAL else "the original"
                said = f"this is {name} once more, whose result is known: propose something else"
                return ParseProblem(ProblemKind.REPEATED, said)
        return combined.candidate

    def _versions(self) -> dict[int, Version]:
        """Return what answers may build upon, by the number of the attempt."""
        original = {} if self._baseline is None else {ORIGINAL: self._baseline}
        return {**original, **self._memory.versions}

    def _retrieve(self, incumbent: Incumbent) -> list[Retrieved]:
        """Return the top k for what was measured, without what gained little or is told anyway."""
        if self.retriever is None:
            return []
        query = describe_result(incumbent.result, pauses=False)
        found = self.retriever.top(query, self._settings.top_k * _CANDIDATES_PER_PLACE)
        kept = [
            each
            for each in found
            if each.experience.speedup >= LEAST_GAIN and each.experience.family not in TOLD_ANYWAY
        ]
        return kept[: self._settings.top_k]

    def _messages(self, incumbent: Incumbent, retrieved: Sequence[Retrieved], place: str) -> list[Message]:
        """Return the prompt: what stays the same first, so that providers cache it."""
        baseline = self._baseline or Version(incumbent.candidate, incumbent.result)
        system = system_message(self._spec, baseline.candidate, baseline.result)
        told = (describe_experience(number, each.experience) for number, each in enumerate(retrieved, 1))
        user = render(
            "refine_joint",
            package=PACKAGE,
            **operator_fields(self._spec),
            attempts=self._memory.describe(in_full=_IN_FULL),
            experience="\n".join(told) or "None that gained a tenth and says more than is said above.",
            measurement=describe_result(incumbent.result),
            sources=render_sources(incumbent.candidate, fold=True),
            merge=told_merge(Version(incumbent.candidate, incumbent.result), self._memory.versions),
            place=place,
        )
        return [Message(system.role, f"{system.content}\n{render('combine')}"), Message("user", user)]

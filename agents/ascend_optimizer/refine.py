"""Stage II, retrieval-augmented kernel refinement (version 1, section 3.4.2): K is rewritten under a fixed T.

A step diagnoses the bottleneck, retrieves experience for it, has K rewritten by it, and keeps what is valid
and faster. What failed, and why, is told to the steps after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

from agents.ascend_optimizer.diagnose import Diagnosis, diagnose
from agents.ascend_optimizer.experience import Experience
from agents.ascend_optimizer.incumbent import Evaluations, Incumbent, Memory, evaluate, is_faster
from agents.ascend_optimizer.retrieval import ExperienceRetriever, Retrieved
from agents.ascend_optimizer.settings import AgentSettings
from agents.ascend_optimizer.shared_constants import only_shared_constants_differ
from agents.ascend_optimizer.template import PACKAGE
from ascend_gym.core.protocols import Ending, Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.search.llm.attempts import diff_block
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import operator_fields, render_sources, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient

_CANDIDATES_PER_PLACE = 8
_HOST_FAMILIES = "host."
_DIFF_FURNITURE = ("--- ", "+++ ", "@@", "\\")


class KernelRefinement:
    """Refines K under a fixed T. What was attempted is remembered from one pass to the next.

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
        """Refine the kernel of ``spec``, without experience where there is no ``retriever``."""
        self._spec, self._online, self._settings = spec, online, settings
        self.retriever = retriever
        self._memory = memory
        self._in_vain: Counter[str] = Counter()  # motifs shown for attempts that did not help this kernel

    def refine(self, incumbent: Incumbent, round_: int) -> Evaluations:
        """Run Stage II of one round: up to S steps under the incumbent's T; return the best (T, K)."""
        in_vain = 0
        for step in range(self._settings.refine_steps):
            rewritten = yield from self._kernel_refine(incumbent, round_, step)
            in_vain = 0 if rewritten is not None else in_vain + 1
            if rewritten is not None:
                incumbent = rewritten
            elif in_vain == self._settings.patience:
                break
        return incumbent

    def _kernel_refine(
        self, incumbent: Incumbent, round_: int, step: int
    ) -> Generator[Proposal, EvalResult, Incumbent | None]:
        """KernelRefine of Algorithm 1: diagnose, retrieve, rewrite; return the kernel if valid and faster."""
        attempts = self._memory.describe()
        diagnosis = diagnose(self._spec, incumbent, attempts, self._online, round_, step)
        retrieved = self._retrieve(diagnosis)
        messages = refine_messages(self._spec, incumbent, diagnosis, retrieved, attempts)
        reading = self._online.read(
            messages,
            lambda answer: kernel_from_answer(answer.text, incumbent.candidate, ending=answer.ending),
            *("refine", round_, step),
        )
        rewritten = reading.value
        origin = {"kind": "refine", "stage": "kernel", "round": round_, "step": step}
        origin["experience"] = [each.experience.digest[:16] for each in retrieved]
        origin["calls"] = [diagnosis.call, *reading.calls]
        proposal, result = yield from evaluate(rewritten, incumbent, origin, reading.text)
        self._memory.note(incumbent, proposal, result, "kernel", reading.text)
        if isinstance(rewritten, ParseProblem) or not is_faster(result, incumbent):
            self._in_vain.update(each.experience.motif for each in retrieved)
            return None
        self._in_vain.clear()
        return Incumbent(rewritten, result)

    def _retrieve(self, diagnosis: Diagnosis) -> list[Retrieved]:
        """Return the top k for the diagnosis; what was shown in vain for this kernel comes after the rest.

        Experience with tiling programs is left out: T is fixed here.
        """
        if self.retriever is None:
            return []
        with_applicability = self._settings.retrieval_key != "bottleneck"
        parts = (diagnosis.bottleneck, diagnosis.applicability if with_applicability else "")
        query = "\n".join(part for part in parts if part)
        found = self.retriever.top(query, self._settings.top_k * _CANDIDATES_PER_PLACE)
        found = [each for each in found if not each.experience.family.startswith(_HOST_FAMILIES)]
        found.sort(key=lambda each: self._in_vain[each.experience.motif])
        return found[: self._settings.top_k]


def kernel_from_answer(
    answer: str, incumbent: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Candidate | ParseProblem:
    """Return (T, the rewritten K), or what is wrong with the answer.

    T is fixed, with one exception: the value of a constant that host and kernel both define, such as the
    number of buffers by which the host cuts UB, changes with the kernel's or neither can.
    """
    rewritten = candidate_from_answer(answer, incumbent, ending=ending)
    if isinstance(rewritten, ParseProblem) or only_shared_constants_differ(incumbent, rewritten):
        return rewritten
    expected = "expected changes in op_kernel alone, or of constants that op_host and op_kernel both define"
    return ParseProblem(ProblemKind.FORBIDDEN_EDIT, expected)


def refine_messages(
    spec: OpSpec, incumbent: Incumbent, diagnosis: Diagnosis, retrieved: Sequence[Retrieved], attempts: str
) -> list[Message]:
    """Return the prompt of a rewrite of K: measurement, diagnosis, experience, what was attempted."""
    user = render(
        "refine",
        package=PACKAGE,
        **operator_fields(spec),
        measurement=describe_result(incumbent.result),
        bottleneck=diagnosis.bottleneck,
        experience="\n".join(
            describe_experience(number, each.experience) for number, each in enumerate(retrieved, 1)
        )
        or "None.",
        attempts=attempts,
        sources=render_sources(incumbent.candidate),
    )
    return [system_message(spec, incumbent.candidate, incumbent.result), Message("user", user)]


def describe_experience(number: int, experience: Experience) -> str:
    """Return an experience as a section of a prompt; the file names of its diff are left out."""
    code = experience.code_diff.rstrip("\n").split("\n")
    diff = [line for line in code if not line.startswith(_DIFF_FURNITURE)]
    lines = [
        f"### Experience {number}: {experience.title}",
        f"- motif: {experience.motif} ({experience.family})",
        f"- measured on {experience.operator}, {experience.provenance.measured_by}: "
        f"{experience.speedup:.3f}x faster ({experience.slow_us:.2f} -> {experience.fast_us:.2f} us)",
        f"- bottleneck: {experience.bottleneck}",
        f"- affects: {', '.join(experience.metric_groups) or 'waiting alone'}",
        f"- applies to: {experience.applicability}",
        f"- why: {experience.root_mechanism}",
        f"- how: {experience.reuse_guidance or experience.description}",
        *(f"- reusable when: {each}" for each in experience.reusable_when),
        *(f"- avoid when: {each}" for each in experience.avoid_when),
    ]
    return "\n".join([*(" ".join(line.split()) for line in lines), diff_block(diff)])

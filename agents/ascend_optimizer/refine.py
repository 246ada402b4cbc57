"""Stage II, retrieval-augmented kernel refinement (version 1, section 3.4.2): K is rewritten under a fixed T.

A step diagnoses the bottleneck (what the profile says by itself is computed, what it means for this kernel is
asked of the model), retrieves experience for it, has K rewritten by it, and keeps what is valid
and faster. What failed, and why, is told to the steps after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from agents.ascend_optimizer.experience import Experience
from agents.ascend_optimizer.incumbent import Evaluations, Incumbent, Memory, evaluate, is_better
from agents.ascend_optimizer.retrieval import ExperienceRetriever, Retrieved
from agents.ascend_optimizer.settings import AgentSettings
from agents.ascend_optimizer.template import PACKAGE
from ascend_gym.core.cpp_text import code_tokens
from ascend_gym.core.protocols import Ending, Message, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec, Sources
from ascend_gym.core.text import well_formed
from ascend_gym.rewrites.answer import CODE_BEGINS, ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.search.llm.attempts import diff_block
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.prompts import operator_fields, own_files, render_sources, system_message
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient

_MAX_CHARACTERS = 1500
_PARTS = re.compile(
    r"^\W{0,20}(Bottleneck|Applicability)\W{0,20}?:\W{0,20}(.*?)"
    r"(?=^\W{0,20}(?:Bottleneck|Applicability)\W{0,20}?:|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0|[1-9]\d*)[uUlL]*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_Constant = tuple[str, int]
_CANDIDATES_PER_PLACE = 8
_HOST_FAMILIES = "host."
_DIFF_FURNITURE = ("--- ", "+++ ", "@@", "\\")


@dataclass(frozen=True)
class Diagnosis:
    """What holds an operator back.

    Attributes:
        bottleneck: the symptom, in words.
        applicability: the code and shapes at hand, in words.
        calls: notes of the model's calls, for the journal.
    """

    bottleneck: str
    applicability: str
    calls: Sequence[Mapping[str, Any]]


def diagnose(
    spec: OpSpec, incumbent: Incumbent, attempts: str, model_client: ModelClient, *purpose: str | int
) -> Diagnosis:
    """Ask for the bottleneck of the incumbent.

    Raises:
        ModelError: the model could not answer.
        BudgetExceededError: the budget does not cover the question.
    """
    messages = diagnosis_messages(spec, incumbent, attempts)
    reading = model_client.read(messages, lambda answer: read_diagnosis(answer.text), "diagnose", *purpose)
    bottleneck, applicability = ("unknown", "") if isinstance(reading.value, ParseProblem) else reading.value
    return Diagnosis(bottleneck, applicability, reading.calls)


def diagnosis_messages(spec: OpSpec, incumbent: Incumbent, attempts: str) -> list[Message]:
    """Return the prompt of a diagnosis."""
    user = render(
        "diagnose",
        package=PACKAGE,
        **operator_fields(spec),
        category=spec.category,
        measurement=describe_result(incumbent.result),
        attempts=attempts,
        sources=render_sources(incumbent.candidate),
    )
    return [
        system_message(spec, incumbent.candidate, incumbent.result, edits=False),
        Message("user", user),
    ]


def read_diagnosis(answer: str) -> tuple[str, str] | ParseProblem:
    """Return bottleneck and applicability; an answer without these headings is all bottleneck.

    Code is no diagnosis: what begins with its first line is left out, and an answer of code alone is refused.
    """
    answer = well_formed(answer)
    code = CODE_BEGINS.search(answer)
    if code is not None:
        answer = answer[: code.start()]
        if not answer.strip():
            expected = "expected two paragraphs, 'Bottleneck: ...' and 'Applicability: ...', and no code"
            return ParseProblem(ProblemKind.INCOMPLETE, expected)
    parts = {match[1].lower(): " ".join(match[2].split()) for match in _PARTS.finditer(answer)}
    bottleneck = parts.get("bottleneck") or " ".join(answer.split()) or "unknown"
    return bottleneck[:_MAX_CHARACTERS], parts.get("applicability", "")[:_MAX_CHARACTERS]


def only_shared_constants_differ(before: Candidate, after: Candidate) -> bool:
    """Say whether T differs, comments apart, at most in integers that the new K agrees with.

    Either K gives the integer to the same name, compared without underscores and case (``BUFFER_NUM`` is
    ``bufferNum``), or its product with an integer of K stays (a number of cores and the part of each); each
    integer of K accounts for one of T in this way.
    """
    if before.host == after.host:
        return True
    known, shared = _constants(before.kernel), _constants(after.kernel)
    gone, come = known - shared, shared - known
    ratios = {
        (name, Fraction(new, old)) for name, old in gone for same, new in come if name == same and old > 0
    }
    old, new = before.texts, after.texts
    scaled = set()
    for file in before.host.files:
        tokens, rewritten = code_tokens(old[file.path]), code_tokens(new[file.path])
        if len(tokens) != len(rewritten):
            return False
        for at in (at for at in range(len(tokens)) if tokens[at] != rewritten[at]):
            was, now = _defined(tokens, at), _defined(rewritten, at)
            if was is None or now is None or (now not in shared and now[1] == 0):
                return False
            if now not in shared:
                scaled.add((now[0], Fraction(was[1], now[1])))
    offered = Counter(ratio for _, ratio in ratios)
    return Counter(ratio for _, ratio in scaled) <= offered


def _constants(sources: Sources) -> set[_Constant]:
    """Return the names that are given an integer, and it: ``int N = 2`` or ``#define N 2``."""
    files = [code_tokens(file.text) for file in sources.files]
    found = {_defined(tokens, at) for tokens in files for at in range(len(tokens))}
    return {constant for constant in found if constant is not None}


def _defined(tokens: list[str], at: int) -> _Constant | None:
    """Return the constant that token ``at`` is the value of, or ``None``."""
    name = _name_before(tokens, at) if _INTEGER.fullmatch(tokens[at]) else None
    return (_plain(name), int(tokens[at].rstrip("uUlL"), 0)) if name else None


def _name_before(tokens: list[str], at: int) -> str | None:
    """Return the name that token ``at`` is given to, or ``None``."""
    before = tokens[max(0, at - 3) : at]
    if len(before) >= 2 and before[-1] == "=" and _IDENTIFIER.fullmatch(before[-2]):
        return before[-2]
    if before[-3:-1] == ["#", "define"]:
        return before[-1]
    return None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


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
        self._exhausted = False  # whether the last answer proposed no change

    def refine(self, incumbent: Incumbent, round_: int) -> Evaluations:
        """Run Stage II of one round: up to S steps under the incumbent's T; return the best (T, K).

        The pass ends early where the model proposes no change, and after ``patience`` steps in vain.
        """
        in_vain = 0
        self._exhausted = False
        for step in range(self._settings.steps_in(round_, self._settings.refine_steps)):
            rewritten = yield from self._kernel_refine(incumbent, round_, step)
            in_vain = 0 if rewritten is not None else in_vain + 1
            if rewritten is not None:
                incumbent = rewritten
            elif in_vain == self._settings.patience or self._exhausted:
                break
        return incumbent

    def _kernel_refine(
        self, incumbent: Incumbent, round_: int, step: int
    ) -> Generator[Proposal, EvalResult, Incumbent | None]:
        """KernelRefine of Algorithm 1: diagnose, retrieve, rewrite; return the kernel if valid and faster."""
        attempts = self._memory.describe()
        diagnosis = diagnose(self._spec, incumbent, attempts, self._online, round_, step)
        retrieved = self._retrieve(diagnosis)
        place = self._settings.place_in(round_, step, self._settings.refine_steps)
        messages = refine_messages(self._spec, incumbent, diagnosis, retrieved, attempts, place)
        reading = self._online.read(
            messages,
            lambda answer: kernel_from_answer(answer.text, incumbent.candidate, ending=answer.ending),
            *("refine", round_, step),
        )
        rewritten = reading.value
        origin = {"kind": "refine", "stage": "kernel", "round": round_, "step": step}
        origin["experience"] = [each.experience.digest[:16] for each in retrieved]
        origin["calls"] = [*diagnosis.calls, *reading.calls]
        proposal, result = yield from evaluate(rewritten, incumbent, origin, reading.text)
        self._memory.note(incumbent, proposal, result, "kernel", reading.text)
        self._exhausted = isinstance(rewritten, ParseProblem) and rewritten.kind is ProblemKind.NO_FILES
        if isinstance(rewritten, ParseProblem) or not is_better(self._spec, result, incumbent):
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

    T is fixed, with one exception: the value of a constant that the kernel's constants must agree with, such
    as the number of buffers by which the host cuts UB, changes with them or neither can.
    """
    rewritten = candidate_from_answer(answer, incumbent, ending=ending)
    if isinstance(rewritten, ParseProblem) or only_shared_constants_differ(incumbent, rewritten):
        return rewritten
    expected = (
        f"expected changes in {own_files(incumbent.kernel, incumbent.host)} alone, or elsewhere of constants "
        "that these files define, too, or whose product with one of theirs stays"
    )
    return ParseProblem(ProblemKind.FORBIDDEN_EDIT, expected)


def refine_messages(
    spec: OpSpec,
    incumbent: Incumbent,
    diagnosis: Diagnosis,
    retrieved: Sequence[Retrieved],
    attempts: str,
    place: str,
) -> list[Message]:
    """Return the prompt of a rewrite of K: measurement, diagnosis, experience, what was attempted, place."""
    user = render(
        "refine",
        package=PACKAGE,
        **operator_fields(spec),
        kernel_files=own_files(incumbent.candidate.kernel, incumbent.candidate.host),
        measurement=describe_result(incumbent.result),
        bottleneck=diagnosis.bottleneck,
        experience="\n".join(
            describe_experience(number, each.experience) for number, each in enumerate(retrieved, 1)
        )
        or "None.",
        attempts=attempts,
        place=place,
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

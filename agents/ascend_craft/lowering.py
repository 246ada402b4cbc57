"""How a verified program becomes Ascend C: by rules, or by a language model in four passes or in one.

Every pass of a model is built before the next one begins, if builds are wanted, and mended up to
``MAX_REPAIRS`` times. What fails when it is evaluated goes back to the pass that is to blame for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents.ascend_craft.pass_prompts import ONE_PASS, PassPrompts, PassQuestion
from agents.ascend_craft.settings import Lowering
from ascend_gym.core.protocols import Builder, Message
from ascend_gym.core.records import Candidate, Case, Diagnostic, EvalResult, OpSpec, Phase
from ascend_gym.core.status import Status
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.search.model_client import ModelClient, candidate_reader
from ascend_gym.staged.examples import Examples
from ascend_gym.staged.lower import Pass, lower
from ascend_gym.staged.scalars import knob_name
from ascend_gym.staged.syntax import BLOCK_BYTES
from ascend_gym.staged.verify import Verified

MAX_REPAIRS = 3
"""Times that one pass is asked to mend what it made, for a program."""

_MAX_TOLD = 6


@dataclass(frozen=True)
class Lowered:
    """What a program became.

    Attributes:
        candidate: sources of both sides; ``None`` where a pass did not come to an end.
        problem: why there are none.
        calls: a note of each question to a model.
        passes: for each pass its name, what the compilers objected to in vain first, and the builds it took.
    """

    candidate: Candidate | None
    problem: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    passes: tuple[Mapping[str, Any], ...] = ()


class Lowerer(Protocol):
    """Turns verified programs of one operator into candidates."""

    def lower(self, text: str, verified: Verified) -> Lowered:
        """Return the sources of a program.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover a question or a build.
            InfrastructureError: nothing could be built.
        """
        ...

    def repair(
        self, text: str, verified: Verified, candidate: Candidate, result: EvalResult
    ) -> Lowered | None:
        """Return other sources of a program whose candidate failed; ``None`` for no more.

        Args:
            text: the program.
            verified: the same, verified.
            candidate: what it was lowered to.
            result: how that failed.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover a question or a build.
            InfrastructureError: nothing could be built.
        """
        ...

    def turned(self, candidate: Candidate, verified: Verified) -> Candidate | None:
        """Return a candidate with the knobs of its program at other choices; ``None`` where that fails.

        Args:
            candidate: the program's sources.
            verified: the program with other defaults of its knobs.
        """
        ...

    def use_builder(self, builder: Builder) -> None:
        """Take what builds candidates between passes."""
        ...


class RuleLowerer:
    """Lowers by rules: the same program always becomes the same candidate."""

    def lower(self, text: str, verified: Verified) -> Lowered:
        """Return the sources of a program."""
        return Lowered(lower(verified))

    def repair(
        self, text: str, verified: Verified, candidate: Candidate, result: EvalResult
    ) -> Lowered | None:
        """Return ``None``: rules know no second answer."""
        return None

    def turned(self, candidate: Candidate, verified: Verified) -> Candidate | None:
        """Return the sources of the program with other knobs."""
        return lower(verified)

    def use_builder(self, builder: Builder) -> None:
        """Nothing is built."""


class ModelLowerer:
    """Lowers by a language model."""

    def __init__(
        self,
        spec: OpSpec,
        model_client: ModelClient,
        *,
        lowering: Lowering = Lowering.FOUR_PASSES,
        examples: Examples = Examples.NONE,
        builds: bool = True,
    ) -> None:
        """Lower programs of ``spec``.

        Args:
            spec: the operator.
            model_client: asks the model.
            lowering: whether the passes are questions of their own or one.
            examples: which example a question shows.
            builds: whether what a pass made is built before the next one.
        """
        self._spec, self._model_client, self._builds = spec, model_client, builds
        self._prompts = PassPrompts(spec, examples)
        one = lowering is Lowering.ONE_PASS
        self._questions = [ONE_PASS] if one else [PassQuestion(each.value, (each,)) for each in Pass]
        self._builder: Builder | None = None
        self._asked = 0
        self._repairs: Counter[str] = Counter()  # by program

    def use_builder(self, builder: Builder) -> None:
        """Take what builds candidates between passes."""
        self._builder = builder

    def lower(self, text: str, verified: Verified) -> Lowered:
        """Return the sources of a program (see ``Lowerer``)."""
        self._repairs[text] = 0
        candidate = self._spec.baseline
        calls: list[Mapping[str, Any]] = []
        passes: list[Mapping[str, Any]] = []
        for which in self._questions:
            messages = self._prompts.question(which, text, verified, candidate)
            made = self._filled(which, messages, candidate, may_keep=which.passes == (Pass.ALIGN,))
            calls += made.calls
            passes += made.passes
            if made.candidate is None:
                return Lowered(None, made.problem, tuple(calls), tuple(passes))
            candidate = made.candidate
        return Lowered(candidate, calls=tuple(calls), passes=tuple(passes))

    def repair(
        self, text: str, verified: Verified, candidate: Candidate, result: EvalResult
    ) -> Lowered | None:
        """Return other sources of a program, ``MAX_REPAIRS`` times (see ``Lowerer``)."""
        if self._repairs[text] == MAX_REPAIRS:
            return None
        self._repairs[text] += 1
        which = self._to_blame(result)
        fault = f"Evaluated, this ended as {result.status.value}: {told(result.all_diagnostics)}"
        messages = self._prompts.complaint(which, text, verified, candidate, fault)
        return self._filled(which, messages, candidate, may_keep=False)

    def turned(self, candidate: Candidate, verified: Verified) -> Candidate | None:
        """Return the candidate with the constants of its host at other choices (see ``Lowerer``)."""
        text = candidate.tiling_text
        for knob in verified.program.knobs.values():
            constant = re.compile(rf"(\b{knob_name(knob.name)}\b\s*=\s*)\d+(\s*;)")
            text, found = constant.subn(rf"\g<1>{knob.default}\g<2>", text)
            if found != 1:
                return None
        return candidate.rewritten(tiling=text)

    def _to_blame(self, result: EvalResult) -> PassQuestion:
        """Return the pass whose work a failure is looked for in."""
        if len(self._questions) == 1:
            return self._questions[0]
        return self._questions[list(Pass).index(pass_to_blame(result, self._spec))]

    def _filled(
        self, which: PassQuestion, messages: Sequence[Message], base: Candidate, *, may_keep: bool
    ) -> Lowered:
        """Ask for a pass until what it made builds, up to ``MAX_REPAIRS`` times more.

        Args:
            which: the pass.
            messages: the question.
            base: the files that it shows.
            may_keep: whether the first answer may leave them as they are.
        """
        calls: list[Mapping[str, Any]] = []
        objections: list[str] = []
        builds, latest, asked = 0, base, list(messages)
        while True:
            reading = self._model_client.read(
                asked, candidate_reader(latest), "ascend-craft", "lower", which.name, self._asked
            )
            self._asked += 1
            calls += reading.calls
            value = reading.value
            usable = not isinstance(value, ParseProblem)
            if isinstance(value, ParseProblem):
                kept = may_keep and not objections and value.kind is ProblemKind.NO_CHANGE
                objection = "" if kept else str(value)
            else:
                latest, objection = value, ""
                if self._builds and self._builder is not None:
                    builds += 1
                    objection = told(self._builder.build(value))
            if objection:
                objections.append(objection)
            note = {"pass": which.name, "builds": builds, "objections": list(objections)}
            if not objection:
                return Lowered(latest, calls=tuple(calls), passes=(note,))
            if len(objections) > MAX_REPAIRS:
                ending = "does not build" if usable else "has no usable answer"
                problem = f"pass {which.name} {ending} after {MAX_REPAIRS} repairs: {objection}"
                return Lowered(None, problem, tuple(calls), (note,))
            fault = f"{'That does not build' if usable else 'That answer cannot be used'}: {objection}"
            asked = [*messages, *self._prompts.objection(reading.text, fault, latest)]


def pass_to_blame(result: EvalResult, spec: OpSpec) -> Pass:
    """Return the pass whose work a failed evaluation speaks about.

    The host is to blame for what fails there, and the copies for what a copy is told to do. Where rows that
    are no multiple of 32 bytes are wrong and rows of whole blocks are right, that is the copies, too.
    All else is the work of the stages.
    """
    found = result.all_diagnostics
    if result.status is Status.TILING_ERROR or any(each.phase is Phase.BUILD_TILING for each in found):
        return Pass.PLAN
    if any((each.call or "").startswith("DataCopy") for each in found):
        return Pass.ALIGN
    ragged = {case.case_id for case in spec.cases if _has_ragged_rows(case)}
    passed = {case.case_id for case in result.cases if case.status is Status.OK}
    failed = {case.case_id for case in result.cases} - passed
    return Pass.ALIGN if failed and failed <= ragged and passed - ragged else Pass.STAGES


def _has_ragged_rows(case: Case) -> bool:
    """Say whether the rows of a tensor are no multiple of a block."""
    tensors = [each for each in (*case.inputs, *case.outputs) if each.shapes[0]]
    return any(each.dtype.size_bytes(each.shapes[0][-1]) % BLOCK_BYTES for each in tensors)


def told(diagnostics: Sequence[Diagnostic]) -> str:
    """Return what a model and the journal are told of diagnostics: the first of them, in one line."""
    return "; ".join(str(each) for each in diagnostics[:_MAX_TOLD])

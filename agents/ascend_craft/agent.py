"""AscendCraft: draft a program, check it without a build, lower it, evaluate, repair; then turn its knobs.

Programs that break a rule of the language, or whose interpretation does not agree with the reference, go back
to where they came from with the fault; they cost no evaluation. What was lowered and fails on the evaluator
goes back to the lowering with its diagnostics, and then to the drafter. The first correct program's knobs are
then tried one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import Drafter
from agents.ascend_craft.lowering import Lowered, Lowerer, RuleLowerer, told
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Builder, Proposal
from ascend_gym.core.records import Candidate, EvalResult, OpSpec
from ascend_gym.core.status import RewardRule, Status, rule_of
from ascend_gym.search.outcome import BASELINE_ORIGIN, UnusableProposal
from ascend_gym.staged.hosting import depths_of, launch_of
from ascend_gym.staged.syntax import StagedError
from ascend_gym.staged.verify import Verified

MAX_FAULTS = 4
"""Programs in a row that may be refused before an evaluation is spent on saying so."""


@dataclass(frozen=True)
class _Checked:
    """A program that may be evaluated; ``candidate`` is the latest of its sources."""

    text: str
    verified: Verified
    candidate: Candidate


@dataclass
class _Notes:
    """What the journal keeps of a proposal: questions, refused programs, passes."""

    calls: list[Mapping[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    passes: list[Mapping[str, Any]] = field(default_factory=list)


class AscendCraft:
    """A ``Strategy`` for ``ascend_gym.search.driver.run_search``."""

    def __init__(self, spec: OpSpec, drafter: Drafter, lowerer: Lowerer | None = None) -> None:
        """Write ``spec`` from its specification.

        Args:
            spec: an operator without sources.
            drafter: writes the programs.
            lowerer: translates them; by default by rules.

        Raises:
            MisuseError: the operator has sources.
        """
        if spec.has_sources:
            raise MisuseError(
                f"{spec.op_id} has sources; ascend-craft writes operators from their specification alone, "
                "such as generate/softmax"
            )
        self._spec, self._drafter, self._lowerer = spec, drafter, lowerer or RuleLowerer()
        self._begun = self._ended = False
        self._faults: list[tuple[str, str]] = []
        self._awaited = 0
        self._current: _Checked | None = None
        self._failed: EvalResult | None = None  # of the current program, not answered yet
        self._knobs: deque[str] = deque()  # not turned yet
        self._settings: dict[str, int] = {}  # the best so far
        self._best_us: float | None = None
        self._variants: deque[Proposal] = deque()

    def use_builder(self, builder: Builder) -> None:
        """Take what builds candidates between the passes of a lowering (see ``BuildingStrategy``)."""
        self._lowerer.use_builder(builder)

    def propose(self, limit: int) -> list[Proposal]:
        """Return the next program, and after a correct one up to ``limit`` versions with another knob.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover another answer, or another build.
        """
        if not self._begun or self._ended:
            return []
        if self._best_us is None:
            proposals = [self._next_program()] if not self._awaited else []
        else:
            while not self._variants and not self._awaited and self._knobs:
                self._variants.extend(self._turned(self._knobs.popleft()))
            proposals = [self._variants.popleft() for _ in range(min(limit, len(self._variants)))]
        self._awaited += len(proposals)
        return proposals

    def observe(self, proposal: Proposal, result: EvalResult) -> None:
        """Begin with the baseline; repair a program that failed, turn the knobs of one that is correct."""
        if proposal.origin == BASELINE_ORIGIN:
            self._begun = result.status is Status.OK
            return
        self._awaited -= 1
        if proposal.origin["kind"] == "knob":
            if result.latency_us is not None and result.latency_us < (self._best_us or 0.0):
                self._best_us, self._settings = result.latency_us, dict(proposal.origin["knobs"])
        elif self._current is not None and result.latency_us is not None:
            self._best_us = result.latency_us
            self._knobs = deque(self._current.verified.program.knobs)
        elif self._current is not None and rule_of(result.status).reward is not RewardRule.NEUTRAL:
            self._failed = result

    def close(self) -> None:
        """Nothing is held."""

    def _next_program(self) -> Proposal:
        """Mend what failed, or draft until a program passes every check that costs no evaluation."""
        notes = _Notes()
        mended = self._mended(notes)
        if mended is not None:
            return mended
        while True:
            draft = self._drafter.draft(tuple(self._faults))
            notes.calls += draft.calls
            problem = draft.problem
            if draft.text is not None:
                try:
                    verified = checked(self._spec, draft.text)
                except StagedError as error:
                    problem = str(error)
                    self._faults.append((draft.text, problem))
                else:
                    return self._proposal(
                        draft.text, verified, self._lowerer.lower(draft.text, verified), notes
                    )
            notes.refused.append(problem)
            if draft.text is None or len(notes.refused) > MAX_FAULTS:
                self._ended, self._current = draft.final, None
                return UnusableProposal(self._spec.baseline, self._origin("", notes), problem)

    def _mended(self, notes: _Notes) -> Proposal | None:
        """Return other sources of the program that failed; without them it goes back to the drafter."""
        result, self._failed = self._failed, None
        if result is None or self._current is None:
            return None
        current = self._current
        lowered = self._lowerer.repair(current.text, current.verified, current.candidate, result)
        if lowered is not None:
            return self._proposal(current.text, current.verified, lowered, notes)
        fault = f"evaluated as {result.status.value}: {told(result.all_diagnostics)}"
        self._faults.append((current.text, fault))
        return None

    def _proposal(self, text: str, verified: Verified, lowered: Lowered, notes: _Notes) -> Proposal:
        notes.calls += lowered.calls
        notes.passes += lowered.passes
        if lowered.candidate is None:
            self._current = None
            return UnusableProposal(self._spec.baseline, self._origin(text, notes), lowered.problem)
        self._current = _Checked(text, verified, lowered.candidate)
        return Proposal(lowered.candidate, self._origin(text, notes))

    def _origin(self, text: str, notes: _Notes) -> dict[str, Any]:
        """Return what the journal keeps: among it the builds of each pass, and each question to a model."""
        return {
            "kind": "program",
            "program": text,
            "calls": notes.calls,
            "refused": notes.refused,
            "passes": notes.passes,
        }

    def _turned(self, name: str) -> Iterator[Proposal]:
        """Yield the program with a knob at each of its other choices, all others as they did best."""
        assert self._current is not None
        verified = self._current.verified
        for choice in verified.program.knobs[name].choices:
            settings = {**self._settings, name: choice}
            knobs = {
                each.name: replace(each, default=settings.get(each.name, each.default))
                for each in verified.program.knobs.values()
            }
            program = replace(verified.program, knobs=knobs)
            try:
                launches = {case.case_id: launch_of(program, case) for case in self._spec.cases}
                depths = depths_of(program, verified.lifetimes, list(launches.values()))
            except StagedError:
                continue
            turned = replace(verified, program=program, launches=launches, depths=depths)
            candidate = self._lowerer.turned(self._current.candidate, turned)
            if candidate is not None:
                origin = {"kind": "knob", "knobs": settings}
                yield Proposal(candidate, origin)

"""What both stages share: the incumbent, what was attempted, and an evaluation as one step of a generator."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.ascend_optimizer.markers import unmarked
from ascend_gym.core.protocols import Proposal
from ascend_gym.core.records import Candidate, EvalResult
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.rewrites.answer import ParseProblem
from ascend_gym.search.outcome import UnusableProposal

_MAX_DIAGNOSTICS = 3
_MAX_DIFF_LINES = 40
_MAX_MESSAGE_CHARACTERS = 400
_SHOWN_ATTEMPTS = 24


@dataclass(frozen=True)
class Incumbent:
    """A pair (T, K) that compiles and is correct, with its evaluation.

    Attributes:
        candidate: T, with evolution markers once they were synthesised, and K.
        result: its evaluation; ok.
    """

    candidate: Candidate
    result: EvalResult

    @property
    def latency_us(self) -> float:
        """L(T, K): geometric mean over the cases, in microseconds."""
        return self.result.latency_us or float("inf")


Evaluations = Generator[Proposal, EvalResult, Incumbent]
"""A part of the algorithm: yields candidates, is sent their results, returns the incumbent it ends with."""


@dataclass(frozen=True)
class Attempt:
    """One candidate that a stage evaluated.

    Attributes:
        changes: removed and added lines with respect to its parent, each after ``-`` or ``+``.
        outcome: how it ended, a line.
        diagnostics: what the compiler, the runtime or the check of the answer said.
    """

    changes: tuple[str, ...]
    outcome: str
    diagnostics: tuple[str, ...] = ()


@dataclass
class Memory:
    """What a stage has attempted, in order; told to the model so that it does not repeat itself."""

    attempts: list[Attempt] = field(default_factory=list)

    def note(self, parent: Incumbent, proposal: Proposal, result: EvalResult) -> None:
        """Remember an attempt, unless its result says nothing about it."""
        if rule_of(result.status).reward is not RewardRule.NEUTRAL:
            messages = tuple(
                str(each)[:_MAX_MESSAGE_CHARACTERS] for each in result.all_diagnostics[:_MAX_DIAGNOSTICS]
            )
            changes = changed_lines(unmarked(parent.candidate), unmarked(proposal.candidate))
            self.attempts.append(Attempt(changes, _outcome(parent, result), messages))

    def describe(self) -> str:
        """Return a section for each attempt, the earliest first."""
        if not self.attempts:
            return "Nothing was attempted yet."
        first = max(0, len(self.attempts) - _SHOWN_ATTEMPTS)
        return "\n".join(
            _described(number, attempt) for number, attempt in enumerate(self.attempts[first:], first + 1)
        )


def evaluate(
    candidate: Candidate | ParseProblem, parent: Incumbent, origin: Mapping[str, Any], answer: str
) -> Generator[Proposal, EvalResult, tuple[Proposal, EvalResult]]:
    """Evaluate what a model made of ``parent``: without markers, or as an unusable answer."""
    if isinstance(candidate, ParseProblem):
        base = unmarked(parent.candidate)
        proposal: Proposal = UnusableProposal(base, {**origin, "answer": answer}, str(candidate))
    else:
        proposal = Proposal(unmarked(candidate), origin)
    result = yield proposal
    return proposal, result


def is_faster(result: EvalResult, incumbent: Incumbent) -> bool:
    """Say whether a candidate is valid and faster than the incumbent; invalid ones never are."""
    return result.latency_us is not None and result.latency_us < incumbent.latency_us


def changed_lines(before: Candidate, after: Candidate) -> tuple[str, ...]:
    """Return removed lines after ``-`` and added ones after ``+``, without the blanks around them."""
    old, new = before.texts, after.texts
    changes: list[str] = []
    for path in sorted(old):
        if old[path] != new[path]:
            lines = difflib.unified_diff(old[path].split("\n"), new[path].split("\n"), n=0, lineterm="")
            body = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            changes += [line[0] + line[1:].strip() for line in body if line[1:].strip()]
    return tuple(changes)


def diff_block(lines: Sequence[str]) -> str:
    """Return lines of a diff in a fence, the first ``40`` of them."""
    left_out = len(lines) - _MAX_DIFF_LINES
    shown = [*lines[:_MAX_DIFF_LINES], *([f"({left_out} more lines)"] if left_out > 0 else [])]
    return "\n".join(["~~~~diff", *shown, "~~~~"])


def _outcome(parent: Incumbent, result: EvalResult) -> str:
    if result.latency_us is None:
        return f"failed: {result.status.value}"
    change = f"{parent.latency_us:.2f} -> {result.latency_us:.2f} us"
    return f"kept: {change}" if is_faster(result, parent) else f"not faster: {change}"


def _described(number: int, attempt: Attempt) -> str:
    lines = [f"### Attempt {number}, {attempt.outcome}", *(f"- {each}" for each in attempt.diagnostics)]
    return "\n".join([*lines, diff_block(attempt.changes)] if attempt.changes else lines)

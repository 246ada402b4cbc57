"""What a search has attempted, as prompts tell it: what was changed, how it ended in each case, and why."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ascend_gym.core.records import Candidate, EvalResult
from ascend_gym.rewrites.answer import CODE_BEGINS
from ascend_gym.search.llm.feedback import told_changes
from ascend_gym.search.llm.measurement import compared, told_diagnostics

_MAX_DIAGNOSTICS = 3
_MAX_DIFF_LINES = 60
_MAX_MESSAGE_CHARACTERS = 400
_MAX_REASON_CHARACTERS = 300
_SHOWN_ATTEMPTS = 32
_BRIEF_REASON_CHARACTERS = 160
_CONCISE_DIFF_LINES = 40
_KEPT = "kept"


@dataclass(frozen=True)
class Attempt:
    """One candidate that was evaluated.

    Attributes:
        diff: unified diff from its parent, empty if the answer was unusable.
        outcome: how it ended, a line that begins with ``kept``, ``not faster`` or ``failed``.
        facts: latencies by case, or what the compiler, the run, the verdict or the reader of the answer said.
        reason: what the answer gave as its reason, on one line; empty if it gave none.
        changes: where the time went otherwise than in the version that it came from, a line for each case.
        base: the version that it came from where that is not the one to go on from, such as ``attempt 3``.
    """

    diff: tuple[str, ...]
    outcome: str
    facts: tuple[str, ...] = ()
    reason: str = ""
    changes: tuple[str, ...] = ()
    base: str = ""

    @classmethod
    def of(
        cls,
        parent: Candidate,
        measured: EvalResult,
        candidate: Candidate,
        result: EvalResult,
        stage: str = "",
        answer: str = "",
        first: bool = False,
    ) -> Attempt:
        """Return the attempt to go from a parent, measured, to a candidate with its result.

        Args:
            parent: what was changed.
            measured: its evaluation, ok.
            candidate: what was evaluated; the parent where the answer was unusable.
            result: how that ended.
            stage: part of the search that made the attempt, for readers; empty if it has one part.
            answer: what the model said, of which the reason is kept; empty where it is told elsewhere.
            first: whether it is the first correct version of an operator without sources.
        """
        facts = [each[:_MAX_MESSAGE_CHARACTERS] for each in told_diagnostics(result)[:_MAX_DIAGNOSTICS]]
        cases = compared(result, measured) if result.latency_us is not None else ""
        outcome = (
            f"kept: the first version, {result.latency_us:.2f} us" if first else _outcome(measured, result)
        )
        ended = outcome + (f" ({stage})" if stage else "")
        told = (*([cases] if cases else []), *facts)
        changes = told_changes(measured, result)
        return cls(applied_diff(parent, candidate), ended, told, reason_of(answer), changes)


def describe_attempts(attempts: Sequence[Attempt], first: int = 1, *, in_full: int | None = None) -> str:
    """Return what is told of the last attempts, the earliest first.

    Args:
        attempts: what was attempted.
        first: number of the first of them.
        in_full: how many of the last ones are told in full, the others in a line each; ``None`` for all. With
            a number, those that were kept are told without their diff, as the sources that follow have it.
    """
    if not attempts:
        return "Nothing was attempted yet."
    left_out = max(0, len(attempts) - _SHOWN_ATTEMPTS)
    brief = 0 if in_full is None else max(0, len(attempts) - in_full)
    lines = []
    for number, each in enumerate(attempts[left_out:], left_out):
        if number < brief:
            lines.append(_in_brief(number + first, each))
            continue
        lines.append(_described(number + first, each if in_full is None else _concise(each)))
    return "\n".join(lines)


def applied_diff(before: Candidate, after: Candidate) -> tuple[str, ...]:
    """Return the lines of a unified diff as it was applied: in order, indented, with a line of context."""
    old, new = before.texts, after.texts
    lines: list[str] = []
    for path in sorted(old):
        if old[path] != new[path]:
            sides = (old[path].split("\n"), new[path].split("\n"))
            _, _, *hunks = difflib.unified_diff(*sides, n=1, lineterm="")
            lines += [f"diff of {path}", *hunks]  # file names alone would read as headers of whole files
    return tuple(lines)


def reason_of(answer: str) -> str:
    """Return what an answer says before its first change, on one line and at most 300 characters of it."""
    changes = CODE_BEGINS.search(answer)
    said = " ".join((answer[: changes.start()] if changes else answer).split())
    return said if len(said) <= _MAX_REASON_CHARACTERS else f"{said[:_MAX_REASON_CHARACTERS]} ..."


def diff_block(lines: Sequence[str]) -> str:
    """Return lines of a diff in a fence, the first 60 of them."""
    left_out = len(lines) - _MAX_DIFF_LINES
    shown = [*lines[:_MAX_DIFF_LINES], *([f"({left_out} more lines)"] if left_out > 0 else [])]
    return "\n".join(["~~~~diff", *shown, "~~~~"])


def _outcome(measured: EvalResult, result: EvalResult) -> str:
    if result.latency_us is None or measured.latency_us is None:
        return f"failed: {result.status.value}"
    change = f"{measured.latency_us:.2f} -> {result.latency_us:.2f} us"
    return f"kept: {change}" if result.latency_us < measured.latency_us else f"not faster: {change}"


def _described(number: int, attempt: Attempt) -> str:
    since = f"with respect to {attempt.base}: " if attempt.base else ""
    lines = [
        f"### Attempt {number}, {attempt.outcome}",
        *([f"- its reason: {attempt.reason}"] if attempt.reason else []),
        *(f"- {each}" for each in attempt.facts),
        *(f"- {since}{each}" for each in attempt.changes),
    ]
    return "\n".join([*lines, diff_block(attempt.diff)] if attempt.diff else lines)


def _concise(attempt: Attempt) -> Attempt:
    """Return an attempt without a diff that the sources shown have anyway, or with a shorter one."""
    if attempt.outcome.startswith(_KEPT):
        return replace(attempt, diff=())
    left_out = len(attempt.diff) - _CONCISE_DIFF_LINES
    more = (f"({left_out} more lines)",) if left_out > 0 else ()
    return replace(attempt, diff=(*attempt.diff[:_CONCISE_DIFF_LINES], *more))


def _in_brief(number: int, attempt: Attempt) -> str:
    """Return an attempt on one line: how it ended, in which cases, and its reason."""
    reason = attempt.reason[:_BRIEF_REASON_CHARACTERS].removesuffix(" ...")
    told = [attempt.outcome, *attempt.facts[:1], *([f"it said: {reason}"] if reason else [])]
    return f"- Attempt {number}, {'; '.join(told)}"

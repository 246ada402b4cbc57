"""What OpenEvolve's prompts tell of earlier programs: the last attempts, and no program twice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SHOWN = 3
_MAX_DIFF_LINES = 40
_MAX_FEEDBACK_CHARACTERS = 1200
_FITNESS = "combined_score"
_MEASURED = "status: ok\n"
_EMPTY = re.compile(r"^## (?:Previous Attempts|Top Performing Programs)\n\s*(?=^##? )", re.MULTILINE)
_NO_HISTORY = re.compile(r"^# History\n\s*(?=^# )", re.MULTILINE)


class History:
    """The attempts of one evolution, in the order in which they were evaluated."""

    def __init__(self) -> None:
        """Begin without any."""
        self._current: str | None = None
        self._left_out: Sequence[str] = ()
        self._fitness: dict[str, float] = {}
        self._attempts: list[dict[str, Any]] = []

    def begin(self, current_program: str) -> None:
        """Note which program the next answer is about."""
        self._current = current_program

    @property
    def current(self) -> str:
        """The program that the next answer is about; empty before there is any."""
        return self._current or ""

    def answered(self, left_out: Sequence[str]) -> None:
        """Note the edits of the answer that could not be applied, a line for each."""
        self._left_out = left_out

    def note(self, program: str | None, metrics: Mapping[str, float], feedback: str) -> None:
        """Note an evaluation, or with no program why an answer gave none.

        The evaluation of the initial program, which nobody was asked for, is no attempt.
        """
        if program is not None:
            self._fitness[program] = metrics.get(_FITNESS, 0.0)
        if self._current is None:
            return
        diff = _diff(self._current, program) if program is not None else "no program"
        parts = [
            f"changes to a program of fitness {self._fitness.get(self._current, 0.0):.4f}:",
            diff,  # its fence begins a line
            *self._left_out,
            _told(feedback)[:_MAX_FEEDBACK_CHARACTERS],
        ]
        told = "\n" + "\n".join(parts)
        self._attempts.append(
            {"code": program or "", "metrics": dict(metrics), "metadata": {"changes": told}}
        )

    def last(self) -> list[dict[str, Any]]:
        """Return the last attempts in OpenEvolve's form, failed ones too."""
        return self._attempts[-_SHOWN:]


def distinct(programs: Iterable[Mapping[str, Any]], seen: set[str]) -> list[dict[str, Any]]:
    """Return the programs whose code was not seen yet, and see it."""
    found = []
    for program in programs:
        if program["code"] not in seen:
            seen.add(program["code"])
            found.append(dict(program))
    return found


def without_empty_sections(prompt: str) -> str:
    """Return a prompt without the headings of OpenEvolve's under which nothing stands."""
    return _NO_HISTORY.sub("# History\n\nNothing was attempted yet.\n\n", _EMPTY.sub("", prompt))


def _told(feedback: str) -> str:
    """Return what an attempt came to: of a measured program the latencies alone, its profile being long."""
    if not feedback.startswith(_MEASURED):
        return feedback
    lines = [line.partition("; ")[0] for line in feedback.split("\n") if not line.startswith("  ")]
    return "\n".join(lines)


def _diff(before: str, after: str) -> str:
    lines = [
        line
        for line in difflib.unified_diff(before.split("\n"), after.split("\n"), n=1, lineterm="")
        if not line.startswith(("---", "+++"))
    ]
    more = [f"({len(lines) - _MAX_DIFF_LINES} more lines)"] if len(lines) > _MAX_DIFF_LINES else []
    return "\n".join(["~~~~diff", *lines[:_MAX_DIFF_LINES], *more, "~~~~"])

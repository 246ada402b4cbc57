"""What OpenEvolve's prompts tell of earlier programs: the last attempts, and no program twice."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

_SHOWN = 3
_MAX_DIFF_LINES = 40
_MAX_FEEDBACK_CHARACTERS = 1200


class History:
    """The attempts of one evolution, in the order in which they were evaluated."""

    def __init__(self) -> None:
        """Begin without any."""
        self._current: str | None = None
        self._attempts: list[dict[str, Any]] = []

    def begin(self, current_program: str) -> None:
        """Note which program the next answer is about."""
        self._current = current_program

    def note(self, program: str | None, metrics: Mapping[str, float], feedback: str) -> None:
        """Note an evaluation, or with no program why an answer gave none.

        The evaluation of the initial program, which nobody was asked for, is left out.
        """
        if self._current is None:
            return
        diff = _diff(self._current, program) if program is not None else "no program"
        told = f"\n{diff}\n{feedback[:_MAX_FEEDBACK_CHARACTERS]}"  # a fence begins a line
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


def _diff(before: str, after: str) -> str:
    lines = [
        line
        for line in difflib.unified_diff(before.split("\n"), after.split("\n"), n=1, lineterm="")
        if not line.startswith(("---", "+++"))
    ]
    more = [f"({len(lines) - _MAX_DIFF_LINES} more lines)"] if len(lines) > _MAX_DIFF_LINES else []
    return "\n".join(["~~~~diff", *lines[:_MAX_DIFF_LINES], *more, "~~~~"])

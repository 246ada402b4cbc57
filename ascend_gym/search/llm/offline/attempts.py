"""What a prompt says was attempted before, so that the offline model does not repeat it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ascend_gym.core.records import Candidate

_ATTEMPT = re.compile(
    r"^### Attempt \d+, (?P<outcome>kept|not faster|failed)\b.*?$(?P<rest>.*?)(?=^#{2,3} |\Z)", re.M | re.S
)
_DIFF = re.compile(r"^~~~~diff\n(.*?)^~~~~", re.M | re.S)


@dataclass(frozen=True)
class Attempt:
    """Lines removed (``-``) and added (``+``), and whether that was kept or failed."""

    changes: frozenset[str]
    kept: bool
    failed: bool

    def repeated_by(self, changes: frozenset[str]) -> bool:
        """Say whether other changes are the same, or take back what helped."""
        if self.kept:
            return changes == frozenset(_reversed(change) for change in self.changes)
        return self.changes == changes

    def dooms(self, changes: frozenset[str]) -> bool:
        """Say whether other changes contain these, which failed."""
        return self.failed and self.changes <= changes


def attempts_in(prompt: str) -> list[Attempt]:
    """Read the attempts out of a prompt, in order."""
    found = []
    for match in _ATTEMPT.finditer(prompt):
        diff = _DIFF.search(match["rest"])
        if diff is not None:
            changes = frozenset(line for line in diff[1].split("\n") if line[:1] in ("-", "+"))
            found.append(Attempt(changes, match["outcome"] == "kept", match["outcome"] == "failed"))
    return [attempt for attempt in found if attempt.changes]


def repeats(before: Candidate, after: Candidate, attempts: Sequence[Attempt]) -> bool:
    """Say whether going from ``before`` to ``after`` was tried already."""
    changes = changes_between(before, after)
    return any(attempt.repeated_by(changes) for attempt in attempts)


def is_doomed(before: Candidate, after: Candidate, attempts: Sequence[Attempt]) -> bool:
    """Say whether going from ``before`` to ``after`` includes something that failed."""
    changes = changes_between(before, after)
    return any(attempt.dooms(changes) for attempt in attempts)


def changes_between(before: Candidate, after: Candidate) -> frozenset[str]:
    """Return removed and added lines as prompts show them: without the blanks around them."""
    old, new = before.texts, after.texts
    changes: set[str] = set()
    for path in old:
        if old[path] != new[path]:
            lines = difflib.unified_diff(old[path].split("\n"), new[path].split("\n"), n=0, lineterm="")
            body = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            changes |= {line[0] + line[1:].strip() for line in body if line[1:].strip()}
    return frozenset(changes)


def _reversed(change: str) -> str:
    return ("+" if change[0] == "-" else "-") + change[1:]

"""What a prompt says was attempted before, so that the offline model does not repeat it."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ascend_gym.core.records import Candidate

_ATTEMPT = re.compile(
    r"^### Attempt \d+, (?P<outcome>kept|not faster|failed)\b.*?$(?P<rest>.*?)(?=^#{2,3} |\Z)", re.M | re.S
)
_CALL = re.compile(r"^- \[\w+\] (?:[\w/.]+:\d+: )?(\w+)(?:\([^)\n]*\))?: ", re.M)
_SAID = re.compile(r"^- \[\w+\] (?:[\w/.]+:\d+: )?(.*)$", re.M)
_RULES = re.compile(r"^- its reason: Rules: ([\w, ]+)\.", re.M)
_LATENCIES = re.compile(r": (\d+(?:\.\d+)?) -> (\d+(?:\.\d+)?) us")
_DIFF = re.compile(r"^~~~~diff\n(.*?)^~~~~", re.M | re.S)


@dataclass(frozen=True)
class Attempt:
    """What was attempted, and how it ended.

    Attributes:
        changes: lines removed (``-``) and added (``+``).
        kept: whether it was valid and faster.
        failed: whether it was invalid.
        culprits: of a failed attempt, the changes with the call that the diagnostics complain of; where
            there is none, those that no valid attempt had, and of these the ones that attempts with the same
            complaint have in common.
        complaint: of a failed attempt, its first diagnostic without its figures.
        rules: the rewrite rules that it applied, by name.
        gain: natural logarithm of how many times faster it was; 0 where that is not told.
    """

    changes: frozenset[str]
    kept: bool
    failed: bool
    culprits: frozenset[str] = frozenset()
    complaint: str = ""
    rules: tuple[str, ...] = ()
    gain: float = 0.0

    def repeated_by(self, changes: frozenset[str]) -> bool:
        """Say whether other changes are the same, or take back what helped."""
        if self.kept:
            return changes == frozenset(_reversed(change) for change in self.changes)
        return self.changes == changes

    def dooms(self, changes: frozenset[str]) -> bool:
        """Say whether other changes contain what failed: all of these, or the culprits."""
        return self.failed and (self.culprits or self.changes) <= changes


def attempts_in(prompt: str) -> list[Attempt]:
    """Read the attempts out of a prompt, in order."""
    found = []
    for match in _ATTEMPT.finditer(prompt):
        diff = _DIFF.search(match["rest"])
        if diff is not None:
            changed = [line for line in diff[1].split("\n") if line[:1] in ("-", "+") and line[1:].strip()]
            changes = frozenset(line[0] + line[1:].strip() for line in changed)
            kept, failed = match["outcome"] == "kept", match["outcome"] == "failed"
            culprits = _culprits(changes, match["rest"]) if failed else frozenset()
            complaint = _complaint(match["rest"]) if failed else ""
            rules = _RULES.search(match["rest"])
            names = tuple(rules[1].split(", ")) if rules else ()
            gain = _gain(match[0].partition("\n")[0])
            found.append(Attempt(changes, kept, failed, culprits, complaint, names, gain))
    return _with_common_culprits(_without_the_innocent([attempt for attempt in found if attempt.changes]))


def repeats(before: Candidate, after: Candidate, attempts: Sequence[Attempt]) -> bool:
    """Say whether going from ``before`` to ``after`` was tried already."""
    changes = changes_between(before, after)
    return any(attempt.repeated_by(changes) for attempt in attempts)


def is_doomed(before: Candidate, after: Candidate, attempts: Sequence[Attempt]) -> bool:
    """Say whether going from ``before`` to ``after`` includes something that failed."""
    changes = changes_between(before, after)
    return any(attempt.dooms(changes) for attempt in attempts)


def changes_between(before: Candidate, after: Candidate) -> frozenset[str]:
    """Return removed and added lines without the blanks around them."""
    old, new = before.texts, after.texts
    changes: set[str] = set()
    for path in old:
        if old[path] != new[path]:
            lines = difflib.unified_diff(old[path].split("\n"), new[path].split("\n"), n=0, lineterm="")
            body = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            changes |= {line[0] + line[1:].strip() for line in body if line[1:].strip()}
    return frozenset(changes)


def _without_the_innocent(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts, the failed ones with the changes as culprits that no valid one had."""
    innocent = frozenset().union(*(attempt.changes for attempt in attempts if not attempt.failed))
    return [
        replace(attempt, culprits=attempt.changes - innocent)
        if attempt.failed and not attempt.culprits
        else attempt
        for attempt in attempts
    ]


def _with_common_culprits(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts, with what those of one complaint have in common as their culprits, if anything."""
    common: dict[str, frozenset[str]] = {}
    for attempt in attempts:
        if attempt.complaint:
            common[attempt.complaint] = common.get(attempt.complaint, attempt.culprits) & attempt.culprits
    return [
        replace(attempt, culprits=shared) if (shared := common.get(attempt.complaint)) else attempt
        for attempt in attempts
    ]


def _complaint(diagnostics: str) -> str:
    """Return the first diagnostic without its place and its figures."""
    said = _SAID.search(diagnostics)
    return re.sub(r"\d+", "#", said[1]) if said else ""


def _culprits(changes: frozenset[str], diagnostics: str) -> frozenset[str]:
    """Return the changes with a call that the diagnostics name."""
    calls = _CALL.findall(diagnostics)
    return frozenset(change for change in changes if any(call in change for call in calls))


def _gain(headline: str) -> float:
    latencies = _LATENCIES.search(headline)
    if latencies is None or min(float(latencies[1]), float(latencies[2])) <= 0:
        return 0.0
    return math.log(float(latencies[1]) / float(latencies[2]))


def _reversed(change: str) -> str:
    return ("+" if change[0] == "-" else "-") + change[1:]

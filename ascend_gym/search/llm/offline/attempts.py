"""What a prompt says was attempted before, so that the offline model does not repeat it."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.rule import FileEdit
from ascend_gym.rewrites.syntax import Edit, splice
from ascend_gym.search.llm.offline.places import place_of
from ascend_gym.search.llm.offline.ub_estimate import UbRoom, fits_ub

_ATTEMPT = re.compile(
    r"^### Attempt \d+, (?P<outcome>kept|not faster|failed)\b.*?$(?P<rest>.*?)(?=^#{2,3} |\Z)",
    re.M | re.S,
)
_CALL = re.compile(r"^- \[\w+\] (?:[\w/.]+:\d+: )?(\w+)(?:\([^)\n]*\))?: ", re.M)
_RACE = re.compile(r"^- \[\w+\] .*: race on ", re.M)
_ORDERS = re.compile(r"-.*(?:Barrier|barrier|[SW]\w+[Ff]lag|EnQue|DeQue|FreeTensor)")
_FAULT = re.compile(
    r"^- \[(?:build|run)_\w+\] (?=[\w/.]+:\d+: |\w+(?:\([^)\n]*\))?: )(?:[\w/.]+:\d+: )?(.*)$", re.M
)
_RULES = re.compile(r"^- its reason: Rules: ([\w, ]+)\.", re.M)
_EVERYWHERE = re.compile(r" - (\w+) at all \d+ ")
SEEN = 0.0005  # natural logarithm
_LATENCIES = re.compile(r": (\d+(?:\.\d+)?) -> (\d+(?:\.\d+)?) us")
_DIFF = re.compile(r"^~~~~diff\n(.*?)^~~~~", re.M | re.S)


@dataclass(frozen=True)
class ShownAttempt:
    """What was attempted, and how it ended.

    Attributes:
        changes: lines removed (``-``) and added (``+``); the n-th equal one ends in ``#n``.
        kept: whether it was valid and faster.
        failed: whether it was invalid.
        culprits: of a failed attempt, the changes with the call that the diagnostics complain of, or after a
            race the lines removed that kept an order; where there is none, those that no valid attempt had,
            and of these the ones that attempts with the same complaint have in common.
        complaint: of a failed attempt, the first diagnostic of a build or a run that names a call or a place,
            without its figures; every wrong result reads alike, so it is none.
        rules: the rewrite rules that it applied, by name.
        gain: natural logarithm of how many times faster it was; ``None`` where that is not told, as of what
            failed and of a first version.
        everywhere: the rules that it applied at all of their places.
    """

    changes: frozenset[str]
    kept: bool
    failed: bool
    culprits: frozenset[str] = frozenset()
    complaint: str = ""
    rules: tuple[str, ...] = ()
    gain: float | None = None
    everywhere: frozenset[str] = frozenset()

    @property
    def without_effect(self) -> bool:
        """Whether it was valid, was not kept, and changed no latency as far as its figures tell."""
        return not self.failed and not self.kept and self.gain is not None and abs(self.gain) < SEEN

    @property
    def is_of_numbers(self) -> bool:
        """Whether it applied one rule, along an axis of numbers."""
        return len(self.rules) == 1 and place_of(self.changes) is not None

    def repeated_by(self, changes: frozenset[str]) -> bool:
        """Say whether other changes are the same, or take back what helped."""
        if self.kept:
            return changes == frozenset(_reversed(change) for change in self.changes)
        return self.changes == changes

    def dooms(self, changes: frozenset[str]) -> bool:
        """Say whether other changes contain what failed: all of these, or the culprits."""
        return self.failed and (self.culprits or self.changes) <= changes


def attempts_in(prompt: str) -> list[ShownAttempt]:
    """Read the attempts out of a prompt, in order."""
    found = []
    for match in _ATTEMPT.finditer(prompt):
        diff = _DIFF.search(match["rest"])
        if diff is not None:
            changed = [line for line in diff[1].split("\n") if line[:1] in ("-", "+") and line[1:].strip()]
            changes = _numbered(line[0] + line[1:].strip() for line in changed)
            kept, failed = match["outcome"] == "kept", match["outcome"] == "failed"
            culprits = _culprits(changes, match["rest"]) if failed else frozenset()
            complaint = _complaint(match["rest"]) if failed else ""
            rules = _RULES.search(match["rest"])
            names = tuple(rules[1].split(", ")) if rules else ()
            gain = _gain(match[0].partition("\n")[0])
            everywhere = frozenset(_EVERYWHERE.findall(match["rest"]))
            found.append(ShownAttempt(changes, kept, failed, culprits, complaint, names, gain, everywhere))
    return _with_common_culprits(_without_the_innocent([attempt for attempt in found if attempt.changes]))


@dataclass(frozen=True)
class Untried:
    """Which rewrites of a version are worth an evaluation after what was attempted.

    Attributes:
        before: the version.
        attempts: what was attempted.
        ub_room: what is told of UB.
    """

    before: Candidate
    attempts: Sequence[ShownAttempt]
    ub_room: UbRoom

    def accepts(self, after: Candidate) -> bool:
        """Say whether a rewrite fits UB, as far as is known, and holds nothing that failed."""
        fits = fits_ub(after, self.before, self.ub_room)
        return fits and not is_doomed(self.before, after, self.attempts)

    def promises(self, after: Candidate) -> bool:
        """Say whether a rewrite is accepted, and is more than parts of what had no effect.

        Of numbers that were changed alone, the axes tell more.
        """
        return (
            self.accepts(after) and not _masked(changes_between(self.before, after)) <= self._without_effect
        )

    def is_new(self, after: Candidate) -> bool:
        """Say whether a rewrite was not attempted as such."""
        return not repeats(self.before, after, self.attempts)

    @cached_property
    def _without_effect(self) -> frozenset[str]:
        vain = [each for each in self.attempts if each.without_effect and not each.is_of_numbers]
        changed = [_masked(attempt.changes) for attempt in vain]
        return frozenset().union(*changed)


def repeats(before: Candidate, after: Candidate, attempts: Sequence[ShownAttempt]) -> bool:
    """Say whether going from ``before`` to ``after`` was tried already."""
    changes = changes_between(before, after)
    return any(attempt.repeated_by(changes) for attempt in attempts)


def is_doomed(before: Candidate, after: Candidate, attempts: Sequence[ShownAttempt]) -> bool:
    """Say whether going from ``before`` to ``after`` includes something that failed."""
    changes = changes_between(before, after)
    return any(attempt.dooms(changes) for attempt in attempts)


def changes_between(before: Candidate, after: Candidate) -> frozenset[str]:
    """Return removed and added lines without the blanks around them."""
    old, new = before.texts, after.texts
    changes: list[str] = []
    for path in old:
        if old[path] != new[path]:
            changes += _changed_lines(old[path], new[path])
    return _numbered(changes)


def changes_by(edits: Iterable[FileEdit], before: Candidate) -> frozenset[str]:
    """Return the lines that edits of ``before`` remove and add, without the blanks around them."""
    by_path: dict[str, list[Edit]] = defaultdict(list)
    for each in edits:
        by_path[each.path].append(each.edit)
    changes: list[str] = []
    for path, own in by_path.items():
        data = before.texts[path].encode()
        begin = data.rfind(b"\n", 0, min(edit.start_byte for edit in own)) + 1
        end = data.find(b"\n", max(edit.end_byte for edit in own))
        part = data[begin : end if end >= 0 else len(data)].decode()
        moved = [Edit(edit.start_byte - begin, edit.end_byte - begin, edit.text) for edit in own]
        changes += _changed_lines(part, splice(part, moved))
    return _numbered(changes)


def _changed_lines(old: str, new: str) -> list[str]:
    hunks = list(difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm=""))[2:]
    body = [line for line in hunks if not line.startswith("@@")]
    return [line[0] + line[1:].strip() for line in body if line[1:].strip()]


def _masked(changes: Iterable[str]) -> frozenset[str]:
    """Return changes without their figures, and without the number of equal ones."""
    return frozenset(re.sub(r"\d+", "0", re.sub(r" #\d+$", "", change)) for change in changes)


def _numbered(changes: Iterable[str]) -> frozenset[str]:
    """Return changes as a set in which equal ones stay apart: less of what failed may succeed."""
    seen: Counter[str] = Counter()
    found = set()
    for change in changes:
        seen[change] += 1
        found.add(change if seen[change] == 1 else f"{change} #{seen[change]}")
    return frozenset(found)


def _without_the_innocent(attempts: Sequence[ShownAttempt]) -> list[ShownAttempt]:
    """Return the attempts, the failed ones with the changes as culprits that no valid one had."""
    innocent = frozenset().union(*(attempt.changes for attempt in attempts if not attempt.failed))
    return [
        replace(attempt, culprits=attempt.changes - innocent)
        if attempt.failed and not attempt.culprits
        else attempt
        for attempt in attempts
    ]


def _with_common_culprits(attempts: Sequence[ShownAttempt]) -> list[ShownAttempt]:
    """Return the attempts, with what those of one complaint have in common as their culprits, if anything.

    Numbers are left out: two that failed have the line without them in common, and others may do.
    """
    common: dict[str, frozenset[str]] = {}
    for attempt in attempts:
        if attempt.complaint and not attempt.is_of_numbers:
            common[attempt.complaint] = common.get(attempt.complaint, attempt.culprits) & attempt.culprits
    return [
        replace(attempt, culprits=shared)
        if not attempt.is_of_numbers and (shared := common.get(attempt.complaint))
        else attempt
        for attempt in attempts
    ]


def _complaint(diagnostics: str) -> str:
    """Return the first diagnostic of a build or a run with a call or a place, less the place and figures."""
    said = _FAULT.search(diagnostics)
    return re.sub(r"\d+", "#", said[1]) if said else ""


def _culprits(changes: frozenset[str], diagnostics: str) -> frozenset[str]:
    """Return the changes with a call that the diagnostics name; after a race, what kept an order."""
    if _RACE.search(diagnostics):
        return frozenset(change for change in changes if _ORDERS.match(change))
    calls = _CALL.findall(diagnostics)
    return frozenset(change for change in changes if any(call in change for call in calls))


def _gain(headline: str) -> float | None:
    latencies = _LATENCIES.search(headline)
    if latencies is None or min(float(latencies[1]), float(latencies[2])) <= 0:
        return None
    return math.log(float(latencies[1]) / float(latencies[2]))


def _reversed(change: str) -> str:
    return ("+" if change[0] == "-" else "-") + change[1:]

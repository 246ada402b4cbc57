"""What builds, comparisons and profiles of a recorded session said about its kernels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from session_files import NUMBERED

_COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:]+\.(?:cpp|cc|h|hpp)):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.*)$", re.M
)
_LINKER_ERROR = re.compile(r"^.*(?:undefined reference to|undefined symbol|ld\.lld: error).*$", re.M)
_EXCEPTION = re.compile(
    r"errorStr: (?P<why>[^.\n]*)"
    r"|(?P<core>(?:vector|ai) ?core exception|aivec error|aicore (?:error|exception))"
    r"|error code(?: is|:) ?(?P<code>507\d{3})"
)
_CASE = re.compile(r"^case\[(?P<case>\d+)\]: (?P<text>.*)$", re.M)
_FIGURES = re.compile(r"MERE=(?P<mere>[^\s,]+), MARE=(?P<mare>[^\s,]+)")
_RESULT = re.compile(r"^(?:Result: |Status\s*: )(?P<word>pass|fail)\b", re.M | re.I)
_SPEED = re.compile(r"^\[(?P<case>\d+)\s*\]\s+(?P<reference>[\d.]+)\s+(?P<device>[\d.]+)\s+[\d.]+x", re.M)
_TENSOR = re.compile(r"^inputs\[(?P<case>\d+)\]\[(?P<place>\d+)\]: (?P<text>.*)$", re.M)
_SHAPE = re.compile(r"Tensor\(shape=\((?P<shape>[\d, ]*)\), dtype=torch\.(?P<type>\w+)")
_VALUE = re.compile(r"^(?:\w+\()?(?:value=)?(?P<value>-?[\d.]+(?:e-?\d+)?|True|False|None)\)?$")
_OTHERS = ("aten::", "npu::", "aclnn", "empty_tensor")


class Verdict(str, Enum):
    """What a device, or its compiler, says about a version."""

    BUILD_ERROR = "build_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG = "wrong"
    RIGHT = "right"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class CaseComparison:
    """One line of a comparison, with its mean and largest relative error where they were printed."""

    case: int
    matched: bool
    text: str
    mean_error: float | None
    largest_error: float | None


@dataclass(frozen=True)
class Outcome:
    """What one build, comparison or profile said.

    Attributes:
        verdict: undecided for a profile, and where a script failed before the device was asked.
        reason: the first error, exception or mismatch.
        cases: comparisons, where there were any.
        inputs: of each case, as printed: ``float16:48x512`` or a value; ``?`` for what is neither.
        times_us: of each case, in microseconds: of the kernels alone where the profile tells them apart.
    """

    verdict: Verdict
    reason: str = ""
    cases: tuple[CaseComparison, ...] = ()
    inputs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    times_us: dict[int, float] = field(default_factory=dict)


def outcome_of(tool: str, text: str) -> Outcome | None:
    """Return what the result of a tool says about kernels, or ``None`` if it is about something else.

    Args:
        tool: its name.
        text: its result.
    """
    if tool == "Read":
        times = _profile_times(NUMBERED.sub("", text))
        return Outcome(Verdict.UNDECIDED, times_us=times) if times else None
    if tool != "Bash":
        return None
    times = {int(row["case"]): 1e3 * float(row["device"]) for row in _SPEED.finditer(text)}
    times |= _profile_times(text)
    cases = tuple(_comparison(found) for found in _CASE.finditer(text) if "match" in found["text"].lower())
    verdict, reason = _verdict(text, cases)
    if verdict is Verdict.UNDECIDED and not reason and not times:
        return None
    return Outcome(verdict, reason, cases, _inputs(text), times)


def _verdict(text: str, cases: Sequence[CaseComparison]) -> tuple[Verdict, str]:
    """Return what a text says, and why: a compiler's error before all that comes of it."""
    error = _COMPILER_ERROR.search(text)
    if error:
        return Verdict.BUILD_ERROR, f"{error['file'].rpartition('/')[2]}:{error['line']}: {error['what']}"
    linked = _LINKER_ERROR.search(text)
    if linked:
        return Verdict.BUILD_ERROR, linked[0].strip()
    wrong = [one for one in cases if not one.matched]
    exception = _EXCEPTION.search(text)
    if exception and not cases:
        return Verdict.RUNTIME_ERROR, next(part for part in exception.groups() if part)
    if wrong:
        return Verdict.WRONG, f"case {wrong[0].case}: {wrong[0].text}"
    result = _RESULT.search(text)
    if result is None:
        return Verdict.UNDECIDED, ""
    if result["word"].lower() == "pass":
        return Verdict.RIGHT, ""
    return Verdict.UNDECIDED, _script_error(text)


def _script_error(text: str) -> str:
    raised = re.findall(r"^\w*(?:Error|Exception): .*$", text, re.M)
    return raised[-1] if raised else "the comparison failed without a reason"


def _comparison(found: re.Match[str]) -> CaseComparison:
    text = found["text"]
    figures = _FIGURES.search(text)
    matched = re.search(r"\b(?:mis|not |un)match", text, re.I) is None
    mean, largest = (_number(figures[name]) for name in ("mere", "mare")) if figures else (None, None)
    return CaseComparison(int(found["case"]), matched, text, mean, largest)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _inputs(text: str) -> dict[int, tuple[str, ...]]:
    """Return the arguments of each case that a comparison printed, in order."""
    words: dict[int, dict[int, str]] = {}
    for found in _TENSOR.finditer(text):
        shown = found["text"].strip()
        tensor, value = _SHAPE.search(shown), _VALUE.match(shown)
        word = "?"
        if tensor:
            word = f"{tensor['type']}:{'x'.join(re.findall(r'[0-9]+', tensor['shape']))}"
        elif value:
            word = value["value"]
        words.setdefault(int(found["case"]), {})[int(found["place"])] = word
    return {case: tuple(places[place] for place in sorted(places)) for case, places in words.items()}


def _profile_times(text: str) -> dict[int, float]:
    """Return the times of a JSON profile: the kernels', or the latency where they are not named."""
    start = text.find("{")
    if '"case_results"' not in text or start < 0:
        return {}
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return {}
    rows = (document.get("ascendc") or {}).get("case_results") or [] if isinstance(document, dict) else []
    return dict(_row_times(rows))


def _row_times(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, float]]:
    for row in rows:
        kernels = {
            name: time
            for name, time in (row.get("operators") or {}).items()
            if not name.startswith(_OTHERS) and isinstance(time, int | float) and time > 0
        }
        latency_ms = row.get("latency_ms")
        if kernels:
            yield int(row["index"]), float(sum(kernels.values()))
        elif isinstance(latency_ms, int | float):
            yield int(row["index"]), 1e3 * latency_ms

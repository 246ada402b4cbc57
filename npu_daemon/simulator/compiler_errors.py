"""What compilers say of a candidate's sources, as diagnostics at its own lines."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ascend_gym.core.records import Diagnostic, Phase, Sources
from npu_daemon.sandbox import ProcessOutcome

MAX_ERRORS = 5
_MAX_LOG_BYTES = 1 << 18
_MAX_MESSAGE = 1000
_LOCATED = re.compile(r"(?:In file included from )?(?:/kernel/)?([^\s:][^:]*):(\d{1,9}):(?:\d{1,9}:)?\s*(.*)")
_INCLUDED = "In file included from"
_LED_HERE = "requested here"  # clang's words for the lines that instantiate a template
_CANDIDATE = re.compile(r"note: candidate [a-z ]{0,60}(?:not viable|ignored): (.*)")
_MISMATCH = "could not match"  # clang's words for a parameter of another kind than the argument
_COUNTS = ("requires ", "allows ")  # ... and for another number of them
_MAX_CANDIDATE = 300
_OWN_NAMES = (("_Float16", "half"), ("AscendC::", ""))  # of types, as kernels write them
_EXPANDED = re.compile(r" \(aka '[^']{0,200}'\)")
_ERROR = re.compile(r"(?:fatal )?error: (.*)")
_UNREGISTERED = "unknown type name 'asim_default_tiling'"
_REGISTER = (
    "GET_TILING_DATA reads a structure that the host side does not register: add "
    "REGISTER_TILING_DATA_CLASS(<operator>, <structure>) there, or name one with GET_TILING_DATA_WITH_STRUCT"
)
_LINK_ERROR = re.compile(
    r"undefined (?:reference to|symbol:) .*|multiple definition of .*|duplicate symbol: .*"
)

Place = tuple[str, int]


def compiler_diagnostics(outcome: ProcessOutcome, sources: Sources, phase: Phase) -> list[Diagnostic]:
    """Return what a failed compiler call said about ``sources``; at least one diagnostic."""
    text = outcome.stderr[:_MAX_LOG_BYTES].decode("utf-8", "replace")
    found = parse_compiler_errors(text, sources, phase)
    if found:
        return found
    ending = " ".join(text.split()[-60:]) or f"the compiler ended with signal {outcome.signal}"
    return [Diagnostic(phase=phase, message=f"the compiler failed: {ending[:_MAX_MESSAGE]}")]


def parse_compiler_errors(text: str, sources: Sources, phase: Phase) -> list[Diagnostic]:
    """Return the first errors of a compiler output, located in the files of ``sources``.

    An error inside a header of the simulator is reported at the innermost line of the candidate that led to
    it: compilers name that before the error, as an instantiation, or behind it, in the first of the notes. An
    ``#include`` of that header is reported where there is no such line. A call that fits no function is
    reported with what is wrong with it.
    """
    lines = {file.path: file.text.splitlines() for file in sources.files}
    errors: list[tuple[str, Place | None]] = []
    reasons: dict[int, list[str]] = {}  # why no candidate fits, by the number of the error
    latest: Place | None = None
    included = False  # whether the place of the last error is that of an #include
    for row in text.splitlines():
        located = _LOCATED.match(row)
        if located is None:
            link_error = _LINK_ERROR.search(row)
            errors += [(link_error[0], None)] if link_error else []
            continue
        candidate = _CANDIDATE.match(located[3])
        if candidate is not None:
            reasons.setdefault(len(errors) - 1, []).append(candidate[1])
        path = PurePosixPath(located[1]).as_posix()
        place = (path, int(located[2])) if path in lines else None
        error = _ERROR.match(located[3])
        if error is not None:
            errors.append((error[1], place or latest))
            included = place is None and latest is not None and included
            latest = None
        elif place is not None and not located[3].startswith("note:"):
            latest, included = place, row.startswith(_INCLUDED)
        elif place is not None and errors and (errors[-1][1] is None or (included and _LED_HERE in row)):
            errors[-1] = (errors[-1][0], place)
            included = False
    return [
        _diagnostic(message + _misfit(reasons.get(number, [])), place, lines, phase)
        for number, (message, place) in enumerate(errors[:MAX_ERRORS])
    ]


def _misfit(reasons: list[str]) -> str:
    """Tell why the first candidate with as many parameters as there are arguments does not fit.

    Where there is none, or its kind of parameter differs, it is told how many another candidate takes.
    """
    counts = [reason for reason in reasons if reason.startswith(_COUNTS)]
    others = [reason for reason in reasons if not reason.startswith(_COUNTS)]
    told = others[:1]
    if not told or told[0].startswith(_MISMATCH):
        told += [f"another one {counts[0]}" if told else counts[0]] if counts else []
    text = _EXPANDED.sub("", "; ".join(each[:_MAX_CANDIDATE] for each in told))
    for name, own_name in _OWN_NAMES:
        text = text.replace(name, own_name)
    return f": {text}" if text else ""


def _diagnostic(message: str, place: Place | None, lines: dict[str, list[str]], phase: Phase) -> Diagnostic:
    message = message[:_MAX_MESSAGE].replace(_UNREGISTERED, _REGISTER)
    if place is None:
        return Diagnostic(phase=phase, message=message)
    path, line = place
    shown = lines[path][line - 1].strip()[:_MAX_MESSAGE] if 0 < line <= len(lines[path]) else ""
    text = f"{message}\n    {shown}" if shown else message
    return Diagnostic(phase=phase, message=text, file=path, line=line)

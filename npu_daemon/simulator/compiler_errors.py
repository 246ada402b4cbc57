"""What clang says of a candidate's sources, as diagnostics at their own lines."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ascend_gym.core.records import Diagnostic, Phase, Sources
from npu_daemon.sandbox import ProcessOutcome

MAX_ERRORS = 5
_MAX_LOG_BYTES = 1 << 18
_MAX_MESSAGE = 1000
_LOCATED = re.compile(r"(?:In file included from )?(?:/kernel/)?([^\s:][^:]*):(\d{1,9}):(?:\d{1,9}:)? ?(.*)")
_ERROR = re.compile(r"(?:fatal )?error: (.*)")

Place = tuple[str, int]


def compiler_diagnostics(outcome: ProcessOutcome, sources: Sources, phase: Phase) -> list[Diagnostic]:
    """Return the first errors of a failed compiler call; at least one diagnostic.

    An error inside a header of the simulator is reported where the candidate's code led to it: clang names that
    before the error, as an include, or behind it, as what asked for a template.
    """
    text = outcome.stderr[:_MAX_LOG_BYTES].decode("utf-8", "replace")
    found = _errors(text, sources, phase)
    if found:
        return found[:MAX_ERRORS]
    ending = " ".join(text.split()[-60:]) or f"the compiler ended with signal {outcome.signal}"
    return [Diagnostic(phase=phase, message=f"the compiler failed: {ending[:_MAX_MESSAGE]}")]


def _errors(text: str, sources: Sources, phase: Phase) -> list[Diagnostic]:
    lines = {file.path: file.text.splitlines() for file in sources.files}
    errors: list[tuple[str, Place | None]] = []
    included: Place | None = None
    for row in text.splitlines():
        located = _LOCATED.match(row)
        if located is None:
            continue
        path = PurePosixPath(located[1]).as_posix()
        place = (path, int(located[2])) if path in lines else None
        error = _ERROR.match(located[3])
        if error is not None:
            errors.append((error[1], place or included))
            included = None
        elif place is not None and row.startswith("In file"):
            included = place
        elif place is not None and errors and errors[-1][1] is None:
            errors[-1] = (errors[-1][0], place)
    return [_diagnostic(message, place, lines, phase) for message, place in errors]


def _diagnostic(message: str, place: Place | None, lines: dict[str, list[str]], phase: Phase) -> Diagnostic:
    message = message[:_MAX_MESSAGE]
    if place is None:
        return Diagnostic(phase=phase, message=message)
    path, line = place
    shown = lines[path][line - 1].strip()[:_MAX_MESSAGE] if 0 < line <= len(lines[path]) else ""
    return Diagnostic(phase=phase, message=f"{message}\n    {shown}" if shown else message, file=path, line=line)

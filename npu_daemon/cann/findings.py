"""Findings of the checks of a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """One line of ``npu-daemon doctor``.

    Attributes:
        name: what was checked.
        level: severity; ``missing`` prevents the backend from working.
        message: what was found.
        remedy: advice; empty if nothing is wrong.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""


def ok(name: str, message: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(name, "ok", message)


def warning(name: str, message: str, remedy: str) -> Finding:
    """Return the finding of something that works, but not as well as it could."""
    return Finding(name, "warning", message, remedy)


def missing(name: str, message: str, remedy: str) -> Finding:
    """Return the finding of something that the backend cannot work without."""
    return Finding(name, "missing", message, remedy)

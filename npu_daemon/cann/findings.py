"""What a check of a host says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """One line of ``npu-daemon doctor``.

    Attributes:
        name: what was looked at.
        level: ``missing`` keeps the backend from working.
        message: what is there.
        remedy: what to do; empty when all is well.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""


def ok(name: str, message: str) -> Finding:
    """Return that all is well."""
    return Finding(name, "ok", message)


def warning(name: str, message: str, remedy: str) -> Finding:
    """Return what works, but not as well as it could."""
    return Finding(name, "warning", message, remedy)


def missing(name: str, message: str, remedy: str) -> Finding:
    """Return what the backend cannot work without."""
    return Finding(name, "missing", message, remedy)

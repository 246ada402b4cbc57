"""What pages of calls demand, as the simulator declares it: ``instructions.def`` and ``contracts.def``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_INCLUDE = Path(__file__).with_name("include") / "asim"
_INSTRUCTION = re.compile(r"^INSTRUCTION\((\w+), \w+, \w+, (\w+)\)$", re.MULTILINE)
_ELEMENTWISE = re.compile(r"^ELEMENTWISE\((\w+), ", re.MULTILINE)
_CONTRACT = re.compile(r'^CONTRACT\((\w+), "([^"]+)", (\w+), "([^"]+)"\)$', re.MULTILINE)
_RANGE = re.compile(r'^RANGE\((\w+), "([^"]+)", "([^"]+)", (\d+), (\d+), (\d+), "([^"]+)"\)$', re.MULTILINE)


class Overlap(NamedTuple):
    """How the result of a call may lie over what it reads.

    Attributes:
        name: of the row.
        call: as faults name it.
        rule: "Same", "Behind", "Apart" or "Free", as the head of ``instructions.def`` explains them.
        page: below ``docs/zh/api/SIMD-API`` of asc-devkit; empty for instructions.
    """

    name: str
    call: str
    rule: str
    page: str = ""


class Bounds(NamedTuple):
    """What a number that a call is given may be: from ``least`` to ``most``, in steps of ``multiple``."""

    name: str
    call: str
    parameter: str
    least: int
    most: int
    multiple: int
    page: str


def contracts() -> list[Overlap]:
    """Return the rows of library calls."""
    return [Overlap(*found) for found in _CONTRACT.findall(_text("check/contracts.def"))]


def ranges() -> list[Bounds]:
    """Return the numbers that pages bound."""
    rows = _RANGE.findall(_text("check/contracts.def"))
    return [
        Bounds(name, call, parameter, int(least), int(most), int(multiple), page)
        for name, call, parameter, least, most, multiple, page in rows
    ]


def instruction_overlaps() -> list[Overlap]:
    """Return the rows of instructions."""
    text = _text("trace/instructions.def")
    plain = [Overlap(name, name, rule) for name, rule in _INSTRUCTION.findall(text)]
    return [*plain, *(Overlap(name, name, "Same") for name in _ELEMENTWISE.findall(text))]


def _text(path: str) -> str:
    return (_INCLUDE / path).read_text(encoding="utf-8")

"""Compiler attributes in candidate sources: those that change only layout and inlining are let through.

Each list has to stand in the text as it is, with names that no macro of the candidate replaces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

HARMLESS_ATTRIBUTES = frozenset(
    {
        *("aligned", "packed", "unused", "always_inline", "noinline", "visibility"),
        *("maybe_unused", "nodiscard", "noreturn", "fallthrough", "deprecated", "likely", "unlikely"),
    }
)
_OPENING = re.compile(r"\b__attribute(?:__)?\s*\(\s*\(|\[\s*\[")
_HALF_HIDDEN = re.compile(r"\b(?:__attribute(?:__)?|gnu|__gnu__)\b")
_BRACKET = re.compile(r"[()\[\]]")
_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"[\w$]+")
_MAX_CHARS = 2000  # of one list, so that reading many of them takes linear time
_NAME = "compiler attributes other than alignment, packing and inlining"


def refused_attributes(code: str, macros: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield position and description of every attribute in bare code that candidates may not write.

    Args:
        code: without comments and literals.
        macros: names of the candidate's macros.
    """
    rest, done = [], 0
    for start, first, end in _lists(code):
        attributes = code[first:end]
        names = _names(attributes) if len(attributes) <= _MAX_CHARS else ["a very long list"]
        if any(_is_replaced(name, macros) or _plain(name) not in HARMLESS_ATTRIBUTES for name in names):
            yield start, f"{_NAME} ({attributes[:_MAX_CHARS].strip()})"
        rest += [code[done:start], re.sub(r"[^\n]", " ", code[start:end])]
        done = end
    for found in _HALF_HIDDEN.finditer("".join([*rest, code[done:]])):
        yield found.start(), f"compiler attributes whose list is elsewhere ({found[0]})"


def _lists(code: str) -> Iterator[tuple[int, int, int]]:
    """Yield where each ``__attribute__((...))`` or ``[[...]]`` begins, and its content begins and ends."""
    closings = _closings(code) if _OPENING.search(code) else {}
    done = 0
    for found in _OPENING.finditer(code):
        end = closings.get(found.end() - 1, len(code))
        after = _BLANKS.match(code, end + 1)
        closes_twice = after is not None and code[after.end() : after.end() + 1] == "]"
        if found.start() >= done and (found[0][0] == "_" or closes_twice):
            yield found.start(), found.end(), end
            done = end


def _closings(code: str) -> dict[int, int]:
    """Return for each opening bracket the place of the one that closes it."""
    opened: list[int] = []
    closings = {}
    for found in _BRACKET.finditer(code):
        if found[0] in "([":
            opened.append(found.start())
        elif opened:
            closings[opened.pop()] = found.start()
    return closings


def _names(attributes: str) -> list[str]:
    flat, before = attributes, ""
    while flat != before:  # arguments may hold parentheses
        flat, before = re.sub(r"\([^()]*\)", "", flat), flat
    names = re.sub(r"^\s*using\s+\w+\s*:(?!:)", "", flat).split(",")
    return [name.strip() for name in names if name.strip()]


def _is_replaced(name: str, macros: Collection[str]) -> bool:
    return any(word in macros for word in _WORD.findall(name))


def _plain(name: str) -> str:
    """Return the name of an attribute without namespace and underscores around it."""
    return re.sub(r"^\w+\s*::\s*", "", name).strip("_")

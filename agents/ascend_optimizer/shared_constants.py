"""Constants that T and K both define: the one thing of T that a rewrite of K may change with it."""

from __future__ import annotations

import re

from agents.ascend_optimizer.markers import code_tokens
from ascend_gym.core.records import Candidate, Sources

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def only_shared_constants_differ(before: Candidate, after: Candidate) -> bool:
    """Say whether T differs, comments apart, at most in integers that K defines under the same name.

    Names are compared without underscores and case: ``BUFFER_NUM`` is ``bufferNum``.
    """
    if before.host == after.host:
        return True
    shared = {_plain(name) for name in _constants(before.kernel)} & {
        _plain(name) for name in _constants(before.host)
    }
    old, new = before.texts, after.texts
    return all(
        _differs_only_in(shared, code_tokens(old[file.path]), code_tokens(new[file.path]))
        for file in before.host.files
    )


def _differs_only_in(names: set[str], old: list[str], new: list[str]) -> bool:
    if len(old) != len(new):
        return False
    return all(
        _INTEGER.fullmatch(old[at])
        and _INTEGER.fullmatch(new[at])
        and (_plain(defined) in names if (defined := _defined(old, at)) else False)
        for at in range(len(old))
        if old[at] != new[at]
    )


def _constants(sources: Sources) -> list[str]:
    """Return the names that are given an integer: ``int N = 2`` or ``#define N 2``."""
    names = []
    for file in sources.files:
        tokens = code_tokens(file.text)
        found = (_defined(tokens, at) for at in range(len(tokens)) if _INTEGER.fullmatch(tokens[at]))
        names += [name for name in found if name]
    return names


def _defined(tokens: list[str], at: int) -> str | None:
    """Return the name that the integer token ``at`` is the value of, or ``None``."""
    before = tokens[max(0, at - 3) : at]
    if len(before) >= 2 and before[-1] == "=" and _IDENTIFIER.fullmatch(before[-2]):
        return before[-2]
    if before[-3:-1] == ["#", "define"]:
        return before[-1]
    return None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()

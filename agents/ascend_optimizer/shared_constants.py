"""Constants that T and K both define: the one thing of T that a rewrite of K may change with it."""

from __future__ import annotations

import re

from agents.ascend_optimizer.markers import code_tokens
from ascend_gym.core.records import Candidate, Sources

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0|[1-9]\d*)[uUlL]*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

_Constant = tuple[str, int]


def only_shared_constants_differ(before: Candidate, after: Candidate) -> bool:
    """Say whether T differs, comments apart, at most in integers that the new K gives to the same name.

    Names are compared without underscores and case: ``BUFFER_NUM`` is ``bufferNum``.
    """
    if before.host == after.host:
        return True
    shared = _constants(after.kernel)
    old, new = before.texts, after.texts
    return all(
        _differs_only_in(shared, code_tokens(old[file.path]), code_tokens(new[file.path]))
        for file in before.host.files
    )


def _differs_only_in(shared: set[_Constant], old: list[str], new: list[str]) -> bool:
    if len(old) != len(new):
        return False
    return all(
        _INTEGER.fullmatch(old[at]) and _defined(new, at) in shared
        for at in range(len(old))
        if old[at] != new[at]
    )


def _constants(sources: Sources) -> set[_Constant]:
    """Return the names that are given an integer, and it: ``int N = 2`` or ``#define N 2``."""
    files = [code_tokens(file.text) for file in sources.files]
    found = {_defined(tokens, at) for tokens in files for at in range(len(tokens))}
    return {constant for constant in found if constant is not None}


def _defined(tokens: list[str], at: int) -> _Constant | None:
    """Return the constant that token ``at`` is the value of, or ``None``."""
    name = _name_before(tokens, at) if _INTEGER.fullmatch(tokens[at]) else None
    return (_plain(name), int(tokens[at].rstrip("uUlL"), 0)) if name else None


def _name_before(tokens: list[str], at: int) -> str | None:
    """Return the name that token ``at`` is given to, or ``None``."""
    before = tokens[max(0, at - 3) : at]
    if len(before) >= 2 and before[-1] == "=" and _IDENTIFIER.fullmatch(before[-2]):
        return before[-2]
    if before[-3:-1] == ["#", "define"]:
        return before[-1]
    return None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()

"""Checks whether a block of an answer is a complete file, or omits parts."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_COMMENT_CHARS = 200
_COMMENT = re.compile(
    r"^\s*(?://+|/\*+|#(?!\s*(?:include|define|if|else|end|pragma|undef|elif)))?(.*?)(?:\*+/)?\s*$"
)
_DOTS = re.compile(r"^\W{0,3}(?:\.{3}|…)")
_DOTS_AT_END = re.compile(r"(?:\.{3}|…)\W{0,3}$")
_LEFT_OUT = re.compile(
    r"\b(?:unchanged|same as|existing|rest|remain\w*|omitted|as before|previous\w*|original|as is)\b",
    re.IGNORECASE,
)
_SAID_IN_WORDS = re.compile(
    r"\b(?:rest|remainder|remaining|everything else|other (?:code|functions?|methods?|lines))\b.{0,60}"
    r"\b(?:unchanged|same|as (?:is|before|it was|above))\b"
    r"|\bremains? (?:the same|unchanged|as (?:is|before))\b"
    r"|\bomitted for (?:brevity|clarity)\b"
    r"|^\W*(?:code )?(?:is )?unchanged\W*$"
    r"|^\W*same as (?:before|above|in the original|the original)\W*$"
    r"|^\W*(?:existing|original|previous) (?:code|implementation|body)(?: here)?\W*$",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"__global__\s[\w\s]{0,80}?\b(\w+)\s*\(|\b(OP_ADD|REGISTER_TILING_DATA_CLASS)\s*\(\s*(\w+)"
)
_LAST_LINE = re.compile(r"^\s*(?:#\s*endif\b|//|\w+\([^()]*\)\s*$)|(?:[;}]|\*/)\s*(?://.*)?$")
_FIRST_LINE = re.compile(r"^\s*(?:#\s*(?:include|pragma|ifndef|if|define)|//|/\*|using |namespace |extern )")


def is_elision(line: str) -> bool:
    """Return whether a line is a placeholder for omitted code, such as ``// ... rest unchanged``."""
    if len(line) > _MAX_COMMENT_CHARS or not line.strip():
        return False
    comment = _COMMENT.match(line)
    words = comment[1].strip() if comment else ""
    if words in ("...", "…"):
        return True
    if "*/" in words:  # code follows the comment
        return False
    if not line.lstrip().startswith(("//", "/*", "#")):
        return bool(_DOTS.match(line) and _LEFT_OUT.search(line))
    is_placeholder = _SAID_IN_WORDS.search(words) or (_DOTS_AT_END.search(words) and _LEFT_OUT.search(words))
    return bool(_DOTS.match(words) or is_placeholder)


def first_elision(old: str, new: str) -> tuple[int, str] | None:
    """Return number and text of the first placeholder line that is not in the old text."""
    known = {line.strip() for line in old.split("\n")}
    for number, line in enumerate(new.split("\n"), 1):
        if is_elision(line) and line.strip() not in known:
            return number, line.strip()
    return None


def entries_of(text: str) -> set[str]:
    """Return the external names of a file: its kernels, and what it registers for an operator."""
    found = _ENTRY.findall(text)
    return {f"{kernel}()" if kernel else f"{macro}({operator})" for kernel, macro, operator in found}


def missing_entries(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return the external names that the texts of a candidate no longer have."""
    return sorted(entries_of("\n".join(before)) - entries_of("\n".join(after)))


def stands_for(body: str, text: str) -> bool:
    """Return whether a block without a header is a version of the whole file ``text``."""
    entries = entries_of(text)
    return bool(entries) and entries <= entries_of(body) and looks_complete(body)


def looks_complete(body: str) -> bool:
    """Return whether a text begins and ends like a file and has balanced braces."""
    lines = [line for line in body.split("\n") if line.strip()]
    if not lines or body.count("{") != body.count("}"):
        return False
    return _FIRST_LINE.match(lines[0]) is not None and _LAST_LINE.search(lines[-1]) is not None

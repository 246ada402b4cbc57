"""Text that can be written as UTF-8."""

from __future__ import annotations

_THOUGHT_BEGINS, _THOUGHT_ENDS = "<think>", "</think>"


def well_formed(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by U+FFFD; pairs of them become one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shortened(text: str, max_chars: int) -> str:
    """Return ``text``, or its beginning and its end where it is longer than ``max_chars``."""
    if len(text) <= max_chars:
        return text
    end = max_chars // 4
    return f"{text[: max_chars - end]}\n[... {len(text) - max_chars} characters left out ...]\n{text[-end:]}"


def without_thoughts(text: str) -> str:
    """Drop what some servers leave of the reasoning in the text; not all show where it begins."""
    _, end, rest = text.rpartition(_THOUGHT_ENDS)
    if end:
        return rest.lstrip()
    return "" if text.lstrip().startswith(_THOUGHT_BEGINS) else text

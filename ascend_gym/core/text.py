"""Text that can be written as UTF-8."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by U+FFFD; pairs of them become one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

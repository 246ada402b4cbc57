"""Helpers for message texts: well-formed Unicode, limited length, "did you mean", what to do."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterable
from difflib import get_close_matches

_THOUGHTS = r"think|thinking|thought|thoughts|reasoning|reflection"
_THOUGHT_BEGINS = re.compile(rf"\s*<({_THOUGHTS})>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"</({_THOUGHTS})>", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"  # of models that name what they say aloud
_MARKS_OF_TURNS = (
    *(
        "<|im_end|>",
        "<|im_start|>",
        "<|eot_id|>",
        "<|end|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|return|>",
    ),
    *("<|assistant|>", "<end_of_turn>", "</s>"),
)

_REASON = os.strerror(errno.EMFILE)


def well_formed(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by U+FFFD; pairs of them become one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shortened(text: str, max_chars: int) -> str:
    """Return ``text``, or only its beginning and end if it is longer than ``max_chars``."""
    if len(text) <= max_chars:
        return text
    end = max_chars // 4
    return f"{text[: max_chars - end]}\n[... {len(text) - max_chars} characters left out ...]\n{text[-end:]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean 'x'?`` for the most similar known name; an empty string if none is similar."""
    near = get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def without_thoughts(text: str) -> str:
    """Remove what servers of small models leave in the text: reasoning, and marks of the end of a turn.

    Reasoning is removed even if its opening tag is missing; one that does not end is all that there is.
    """
    _, channel, rest = text.rpartition(_FINAL_CHANNEL)
    if channel:
        text = rest
    while (bare := text.rstrip()).endswith(_MARKS_OF_TURNS):
        text = bare[: bare.rindex("<")]
    ends = list(_THOUGHT_ENDS.finditer(text))
    if ends:
        return text[ends[-1].end() :].lstrip()
    return "" if _THOUGHT_BEGINS.match(text) else text


def limit_hint(message: str) -> str:
    """Return advice if an error message says that too many files are open, else an empty string."""
    if _REASON not in message:
        return ""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"; this process may have {limit} files open: raise that with 'ulimit -n' (up to {most}), "
        "or close environments and evaluators that are not used"
    )

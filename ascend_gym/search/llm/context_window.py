"""Refusals of requests that do not fit into a model's context window, and what would fit."""

from __future__ import annotations

import re

LEAST_ANSWER_TOKENS = 256

_MARGIN_TOKENS = 16
_REFUSING = frozenset({400, 413, 422})
_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_WINDOW = re.compile(r"(?:maximum context length|context (?:window|size|length)) (?:is|of) (\d+)", re.I)
_PROMPT = re.compile(r"(\d+) (?:in the messages|input tokens|prompt tokens|tokens in the prompt)", re.I)
_LARGEST_ANSWER = re.compile(
    r"valid range of max_tokens is \[\d+, ?(\d+)\]|max_(?:completion_|output_)?tokens\b.{0,80}? > (\d+)",
    re.DOTALL,
)
_ABOUT_SIZE = re.compile(
    r"context (?:length|window|size)|too many tokens"
    r"|max_(?:completion_|output_)?tokens.{0,40}too (?:large|high)",
    re.IGNORECASE | re.DOTALL,
)


def fitting_answer_tokens(status: int, code: str, message: str, max_tokens: int) -> int | None:
    """Return the length of an answer that would fit; ``None`` if a refusal is about something else.

    Where the server does not say how much fits, half of what was asked for is tried. Less than
    ``LEAST_ANSWER_TOKENS`` means that the prompt leaves no room.

    Args:
        status: HTTP status of the refusal.
        code: what the server calls the error.
        message: what it says.
        max_tokens: length of the answer that was asked for.
    """
    if status not in _REFUSING:
        return None
    largest = _LARGEST_ANSWER.search(message)
    window, prompt = _WINDOW.search(message), _PROMPT.search(message)
    if window and prompt:
        fits = int(window[1]) - int(prompt[1]) - _MARGIN_TOKENS
    elif largest:
        fits = int(largest[1] or largest[2])
    elif code in _CODES or _ABOUT_SIZE.search(message):
        fits = max_tokens // 2
    else:
        return None
    return max(0, min(fits, max_tokens // 2 if fits >= max_tokens else fits))

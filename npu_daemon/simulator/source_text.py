"""C++ sources as the compiler's first phases leave them: what is code, and what only looks like it.

A search of the bare text can be led astray: a string that holds the beginning of a comment would hide what
follows. So lines are joined, and comments, literals, numbers and words are taken from the left, each whole,
as GCC does: lines end in LF, CR or both, blanks may stand between a backslash and the end of its line,
``$`` and all characters beyond ASCII belong to words, a quotation mark without its other half takes the rest
of its line. What it might take in another way is told by
``ambiguous_literals``; no honest source has it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

_LINE_END = re.compile(r"\r\n?")
_SPLICE = re.compile(r"\\[ \t\f\v\0]*\n")
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<raw>(?:u8|[uUL])?R"(?:(?P<mark>[^\s()\\"]{0,16})\([^\n]*?\)(?P=mark)"|(?P<open>[^\n]*)))'
    r'|(?P<string>"(?:\\.|[^"\\\n])*(?:"|[^\n]*))'
    r"|(?P<character>'(?:\\.|[^'\\\n])*(?:'|[^\n]*))"
    r"|(?P<number>\.?[0-9](?:'?[\w.$\x80-\U0010ffff]|(?<=[eEpP])[+-])*(?P<apostrophe>'?))"
    r"|(?P<word>[A-Za-z_$\x80-\U0010ffff][\w$\x80-\U0010ffff]*)",
    re.DOTALL,
)
_DIGRAPHS = {"%:": "#", "<:": "[", ":>": "]"}
_DIGRAPH = re.compile("|".join(map(re.escape, _DIGRAPHS)))


def without_comments(text: str) -> str:
    """Return source text without comments, its lines spliced, its literals as they are."""
    return _TOKEN.sub(lambda token: _blank(token[0]) if token["comment"] else token[0], _spliced(text)[0])


def bare_code(text: str) -> str:
    """Return source text without comments and literals, without digraphs; lines keep their numbers."""
    return _DIGRAPH.sub(lambda found: _DIGRAPHS[found[0]], _TOKEN.sub(_code_of, _spliced(text)[0]))


def ambiguous_literals(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and description of every literal after which readers may disagree about what is code.

    These are quotation marks right behind a number, and raw strings of several lines, with a splice inside,
    or right behind another literal, whose suffix their ``R`` may be.
    """
    code, splices = _spliced(text)
    literal_end = -1
    for token in _TOKEN.finditer(code):
        if _is_ambiguous(token, literal_end, splices):
            what = "a raw string of several lines or behind a literal" if token["raw"] else "a number's quote"
            yield code.count("\n", 0, token.start()) + 1, what
        if token["raw"] or token["string"] or token["character"]:
            literal_end = token.end()


def _is_ambiguous(token: re.Match[str], literal_end: int, splices: Sequence[int]) -> bool:
    if token["raw"]:
        start, end = token.span()
        return (
            token["open"] is not None
            or start == literal_end
            or bisect_right(splices, start) < bisect_left(splices, end)
        )
    return bool(token["apostrophe"])


def _code_of(token: re.Match[str]) -> str:
    return token[0] if token["word"] or token["number"] else _blank(token[0])


def _spliced(text: str) -> tuple[str, list[int]]:
    """Join lines that end in a backslash; the lines that follow them keep their numbers.

    Returns:
        The text, and where in it lines were joined.
    """
    first, *pieces = _SPLICE.split(_LINE_END.sub("\n", text))
    joined, splices = [first], []
    length, owed = len(first), 0
    for piece in pieces:
        splices.append(length)
        owed += 1
        line, newline, rest = piece.partition("\n")
        joined.append(line + ("\n" * (owed + 1) + rest if newline else ""))
        length += len(joined[-1])
        owed = 0 if newline else owed
    return "".join([*joined, "\n" * owed]), splices


def _blank(text: str) -> str:
    """Return as many lines as ``text`` spans, and at least a space."""
    return "\n" * text.count("\n") or " "

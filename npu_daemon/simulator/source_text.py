"""C++ sources as the compiler's first phases leave them: what is code, and what only looks like it.

A search of the bare text can be led astray: a string that holds the beginning of a comment would hide what
follows. So comments, literals, numbers and words are taken from the left, each whole, as the compiler does.
"""

from __future__ import annotations

import re

_SPLICE = re.compile(r"\\\r?\n")
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<character>'(?:\\.|[^'\\\n])+')"
    r"|(?P<number>\.?[0-9](?:'?[\w.]|(?<=[eEpP])[+-])*)"
    r"|(?P<word>[A-Za-z_]\w*)",
    re.DOTALL,
)
_DIGRAPHS = {"%:": "#", "<:": "[", ":>": "]"}
_DIGRAPH = re.compile("|".join(map(re.escape, _DIGRAPHS)))


def without_comments(text: str) -> str:
    """Return source text without comments, its lines spliced, its literals as they are."""
    return _TOKEN.sub(lambda token: _blank(token[0]) if token["comment"] else token[0], _spliced(text))


def bare_code(text: str) -> str:
    """Return source text without comments and literals, without digraphs; lines keep their numbers."""
    return _DIGRAPH.sub(lambda found: _DIGRAPHS[found[0]], _TOKEN.sub(_code_of, _spliced(text)))


def _code_of(token: re.Match[str]) -> str:
    return token[0] if token["word"] or token["number"] else _blank(token[0])


def _spliced(text: str) -> str:
    """Join lines that end in a backslash; the lines that follow them keep their numbers."""
    pieces = _SPLICE.split(text)
    joined = [pieces[0]]
    owed = 0
    for piece in pieces[1:]:
        owed += 1
        line, newline, rest = piece.partition("\n")
        joined.append(line + ("\n" * (owed + 1) + rest if newline else ""))
        owed = 0 if newline else owed
    return "".join([*joined, "\n" * owed])


def _blank(text: str) -> str:
    """Return as many lines as ``text`` spans, and at least a space."""
    return "\n" * text.count("\n") or " "

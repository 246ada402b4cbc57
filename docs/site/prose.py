"""Counts words and sentences of the documentation: ``python docs/site/prose.py``.

Prints the words of each page and the mean length of its sentences; exits with 1 where a limit is exceeded.
Words are those of ``wc -w``, without tables that a command makes from data (``<!-- table NAME -->``,
``<!-- runs NAME -->``).
Sentences are those of the running text: no code, tables, headings or quoted output.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1]
MOST_WORDS = 40_000
MOST_WORDS_A_SENTENCE = 20.0  # in the mean of a page
_MADE = re.compile(r"<!-- (table|runs) \w+ -->.*?<!-- end of \1 -->", re.DOTALL)
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"^(?:\|.*|#.*|!\[.*|<.*|(?: {4,}|\t).*)$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[\"'(*_`\[]*[A-Z0-9`])|\n\s*\n")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|vs|cf|al|Fig|no)\.")
_WORD = re.compile(r"\w")


class Page(NamedTuple):
    """What a page measures."""

    name: str
    words: int
    sentences: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Words a sentence, in the mean."""
        return sum(map(length, self.sentences)) / max(len(self.sentences), 1)


def length(sentence: str) -> int:
    """Return how many words a sentence has."""
    return sum(_WORD.search(word) is not None for word in sentence.split())


def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of the running text of a page."""
    prose = _NO_PROSE.sub("", _BLOCK.sub("\n", _MADE.sub("\n", text)))
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", _SHORT.sub("", _ITEM.sub("\n\n", prose)))
    found = (" ".join(piece.split()) for piece in _END.split(prose))
    return tuple(sentence for sentence in found if length(sentence) > 0)


def page_of(path: Path) -> Page:
    """Measure a page."""
    text = path.read_text("utf-8")
    return Page(path.name, len(_MADE.sub("", text).split()), sentences_of(text))


def pages(folder: Path = DOCS) -> list[Page]:
    """Measure the pages that are written by hand."""
    return [page_of(path) for path in sorted(folder.glob("*.md"))]


def problems(measured: list[Page], most_words: int = MOST_WORDS) -> list[str]:
    """Return what exceeds a limit."""
    found = [
        f"{page.name}: {page.mean:.1f} words a sentence in the mean, at most {MOST_WORDS_A_SENTENCE:.0f}; "
        f"the longest: {max(page.sentences, key=length)[:120]}"
        for page in measured
        if page.mean > MOST_WORDS_A_SENTENCE
    ]
    words = sum(page.words for page in measured)
    return found + [f"{words} words, at most {most_words}"] * (words > most_words)


def main() -> int:
    """Print the table of pages and what is wrong."""
    measured = pages()
    for page in sorted(measured, key=lambda each: -each.words):
        print(f"{page.words:6} words  {page.mean:5.1f} a sentence  {page.name}")
    every = [length(sentence) for page in measured for sentence in page.sentences]
    words = sum(page.words for page in measured)
    print(f"{words:6} words  {sum(every) / len(every):5.1f} a sentence  all")
    found = problems(measured)
    print(*found, sep="\n", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

"""Candidates as files and as diffs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from ascend_gym.core.records import Candidate


def write_candidate(candidate: Candidate, folder: Path) -> list[Path]:
    """Write every source of ``candidate`` below ``folder``; return the files, host side first."""
    written = []
    for source_path, text in candidate.texts.items():
        path = folder / source_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")
        written.append(path)
    return written


def unified_diff(base: Candidate, candidate: Candidate) -> str:
    """Return the changes from ``base`` to ``candidate`` in the format of ``patch -p1``; empty if none."""
    return unified_texts_diff(base.texts, candidate.texts)


def unified_texts_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the changes between two sets of files (texts by path); empty if none."""
    return "".join(
        _file_diff(path, before.get(path, ""), after.get(path, ""))
        for path in dict.fromkeys([*before, *after])
        if before.get(path) != after.get(path)
    )


def _file_diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Split at line feeds only, because sources may contain form feeds and other separators."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])

"""The folder of a search: journal, best candidate, its diff and the summary."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate
from ascend_gym.report.summary import DIFF_NAME, search_summary, to_json
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.outcome import SearchOutcome

RUNS = Path("runs")


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


def new_run_folder(out: Path | None, name: str) -> Path:
    """Create the folder of a new run.

    Args:
        out: requested folder; by default ``runs/<name>``, with a number appended if that exists.
        name: name of the run.

    Raises:
        MisuseError: ``out`` is not empty or new, or the folder cannot be created.
    """
    try:
        return _new_folder(out, name)
    except OSError as error:
        raise MisuseError(
            f"the folder of the run cannot be made: {error}; name another with --out"
        ) from error


def save_search(folder: Path, outcome: SearchOutcome, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``best/``, ``best.diff`` and ``summary.json`` into ``folder``; return the summary.

    Args:
        folder: folder with the journal.
        outcome: outcome of the search.
        settings: settings of the run: method, model, budget, seed and so on.
    """
    files = write_candidate(outcome.best, folder / "best")
    diff = unified_diff(outcome.spec.baseline, outcome.best)
    (folder / DIFF_NAME).write_text(diff, "utf-8", newline="")
    summary = search_summary(outcome, settings, journal=folder / JOURNAL_NAME, files=files)
    (folder / "summary.json").write_text(to_json(summary) + "\n", "utf-8")
    return summary


def _new_folder(out: Path | None, name: str) -> Path:
    if out is None:
        return next(folder for folder in _default_folders(name) if _created(folder))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MisuseError(f"{out} is not empty: name a new folder, so that no earlier run is overwritten")
    out.mkdir(parents=True, exist_ok=True)
    return out


def _default_folders(name: str) -> Iterator[Path]:
    yield RUNS / name
    yield from (RUNS / f"{name}-{number}" for number in count(2))


def _created(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True

"""The folder of a search: journal, best candidate, its diff and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.candidate_files import unified_diff, write_candidate
from ascend_gym.report.summary import DIFF_NAME, search_summary, to_json
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.search.outcome import SearchOutcome

RUNS = Path("runs")


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

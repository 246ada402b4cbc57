"""Imports runs from their folders, and merges the stores of several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.run_reader import Operators, read_run
from ascend_gym.sweep.store import ResultsStore


@dataclass(frozen=True)
class Merged:
    """What was read into a store.

    Attributes:
        runs: number of runs read.
        changed: number of runs that added something to the store; one that was read twice counts once.
        same: folders with a run that the store has from elsewhere, and where that is.
    """

    runs: int
    changed: int
    same: tuple[tuple[Path, str], ...] = ()


def run_folders(roots: Iterable[Path]) -> Iterator[Path]:
    """Yield every folder at or below ``roots`` that contains a non-empty journal, in order.

    Raises:
        MisuseError: there is none at or below one of them.
    """
    for root in roots:
        journals = sorted(path for path in root.rglob(JOURNAL_NAME) if path.stat().st_size)
        if not journals:
            raise MisuseError(f"{root}: no run there: expected folders with {JOURNAL_NAME}")
        yield from (path.parent for path in journals)


def import_runs(
    store: ResultsStore, folders: Iterable[Path], variant_of: Callable[[Path], str | None]
) -> Merged:
    """Import the runs in ``folders`` into ``store``.

    Args:
        store: store, opened for writing.
        folders: run folders.
        variant_of: function from a folder to the name of its method with settings.

    Raises:
        MisuseError: a journal is damaged, or contradicts the same run in the store.
    """
    operators = Operators()
    read: list[str] = []
    changed: set[str] = set()
    same: list[tuple[Path, str]] = []
    for folder in folders:
        stored = read_run(folder, variant=variant_of(folder), operators=operators)
        run_id, known = stored.run.run_id, store.run(stored.run.run_id)
        read.append(run_id)
        changed |= {run_id} if store.put(stored) else set()
        if known is not None and known.source != stored.run.source:
            same.append((folder, known.source))
    return Merged(len(read), len(changed), tuple(same))


def merge_stores(store: ResultsStore, others: Iterable[Path]) -> Merged:
    """Import all runs of other stores into ``store``.

    Raises:
        MisuseError: one is not a store, or contradicts a run in ``store``.
    """
    read: list[str] = []
    changed: set[str] = set()
    for path in others:
        with ResultsStore(path) as other:
            for run in other.runs():
                read.append(run.run_id)
                changed |= {run.run_id} if store.put(other.stored_run(run)) else set()
    return Merged(len(read), len(changed))

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
    """Number of runs seen, and number of those that added something to the store."""

    runs: int
    changed: int


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
    runs = (read_run(folder, variant=variant_of(folder), operators=operators) for folder in folders)
    changed = [store.put(stored) for stored in runs]
    return Merged(len(changed), sum(changed))


def merge_stores(store: ResultsStore, others: Iterable[Path]) -> Merged:
    """Import all runs of other stores into ``store``.

    Raises:
        MisuseError: one is not a store, or contradicts a run in ``store``.
    """
    changed: list[bool] = []
    for path in others:
        with ResultsStore(path) as other:
            changed += [store.put(other.stored_run(run)) for run in other.runs()]
    return Merged(len(changed), sum(changed))

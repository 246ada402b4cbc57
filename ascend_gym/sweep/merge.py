"""Imports runs from their folders, merges the stores of several machines, and exports them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.run_reader import Operators, read_run
from ascend_gym.sweep.run_records import EvaluationRecord, OperatorRecord, RunRecord, SessionRecord
from ascend_gym.sweep.store import ResultsStore, columns_of

_BATCH_ROWS = 10_000
_TABLES = {
    "runs": RunRecord,
    "evaluations": EvaluationRecord,
    "operators": OperatorRecord,
    "sessions": SessionRecord,
}
_BINARY = {"detail"}
_PARQUET_TYPES = {"str": "string", "int": "int64", "float": "float64"}


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


class ExportFormat(str, Enum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"


def export(store: ResultsStore, folder: Path, file_format: ExportFormat) -> list[Path]:
    """Write ``runs``, ``evaluations``, ``operators`` and ``sessions`` into ``folder``; return the files.

    Compressed columns (results, sources) are left out; ``ResultsStore`` reads those.

    Raises:
        MisuseError: the folder is not writable, or the format needs a package that is missing.
    """
    write = _write_csv if file_format is ExportFormat.CSV else _parquet_writer()
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table, kind in _TABLES.items():
            names = [name for name in columns_of(kind) if name not in _BINARY]
            path = folder / f"{table}.{file_format.value}"
            write(path, kind, names, store.query(f"SELECT {', '.join(names)} FROM {table}"))
            written.append(path)
    except OSError as error:
        raise MisuseError(f"{folder} cannot be written: {error}") from error
    return written


def _write_csv(path: Path, kind: type, names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def _parquet_writer() -> Any:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MisuseError("Parquet needs pyarrow: pip install 'ascend-gym[export]'") from error

    def write(path: Path, kind: type, names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
        schema = arrow.schema([(name, getattr(arrow, _arrow_type(kind, name))()) for name in names])
        with parquet.ParquetWriter(path, schema) as writer:
            while batch := list(islice(rows, _BATCH_ROWS)):
                columns = [list(column) for column in zip(*batch, strict=True)]
                arrays = [
                    arrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)
                ]
                writer.write_batch(arrow.record_batch(arrays, schema=schema))

    return write


def _arrow_type(kind: type, name: str) -> str:
    """Return the name of pyarrow's constructor for a field such as ``float | None``."""
    annotation: str = kind.__annotations__[name]
    return _PARQUET_TYPES[annotation.removesuffix(" | None")]

"""Tables of the results store as CSV or Parquet, for pandas, polars, DuckDB and spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import MisuseError
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


class Format(str, Enum):
    """File formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"


def export(store: ResultsStore, folder: Path, file_format: Format) -> list[Path]:
    """Write ``runs``, ``evaluations``, ``operators`` and ``sessions`` into ``folder``; return the files.

    Compressed columns (results, sources) are left out; ``ResultsStore`` reads those.

    Raises:
        MisuseError: the folder is not writable, or the format needs a package that is missing.
    """
    write = _write_csv if file_format is Format.CSV else _parquet_writer()
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

"""Reads the output folder of ``msprof op``: one ``DeviceTask`` for each kernel that ran.

Names of files and columns: the msopprof performance data reference for Atlas A2 (MindStudio operator tools,
files OpBasicInfo, PipeUtilization, Memory, L2Cache, ResourceConflictRatio) and the layouts of its guide::

    OPPROF_*/OpBasicInfo.csv                          one kernel
    OPPROF_*/NAME/NUMBER/OpBasicInfo_TIME.csv         several

``NA`` and ``N/A`` mark values that a kind of core does not have.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import Profile

Row = Mapping[str, str]

BASIC_INFO = "OpBasicInfo"
METRICS = ("PipeUtilization", "Memory", "L2Cache", "ResourceConflictRatio")
MAX_FILE_BYTES = 16 << 20
_BASIC_COLUMNS = ("Op Name", "Op Type", "Task Duration(us)", "Block Dim")
_CORE_COLUMNS = ("block_id", "sub_block_id")
_ABSENT = frozenset({"NA", "N/A", ""})
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_AIV_PIPES = {"vec": "vec", "scalar": "scalar", "mte2": "mte2", "mte3": "mte3"}
_AIC_PIPES = {"mac": "cube", "scalar": "scalar", "mte1": "mte1", "mte2": "mte2", "fixpipe": "fixpipe"}
_PERCENT = 100.0


class ProfileFormatError(InfrastructureError):
    """The profiler's output differs from its documentation."""


@dataclass(frozen=True)
class DeviceTask:
    """One kernel that ran on the device.

    Attributes:
        name: kernel name, ``Op Name``.
        op_type: kind of cores that it ran on, ``Op Type``.
        duration_us: ``Task Duration(us)``: scheduling, execution and response.
        block_dim: ``Block Dim``.
        current_mhz: clock during the task; ``None`` if the profiler does not report it.
        rated_mhz: rated clock of the chip; likewise.
        tables: rows by file (``METRICS``), one per core; files that were not collected are missing.
    """

    name: str
    op_type: str
    duration_us: float
    block_dim: int
    current_mhz: float | None
    rated_mhz: float | None
    tables: Mapping[str, Sequence[Row]]


def read_tasks(folder: Path) -> list[DeviceTask]:
    """Return the tasks in a profiler's output folder, those of one name in the order of their launch.

    Raises:
        ProfileFormatError: there is none, or a file is not as documented.
    """
    found = sorted(folder.rglob(f"{BASIC_INFO}*.csv"), key=_launch_order)
    if not found:
        raise ProfileFormatError(
            f"msprof op left no {BASIC_INFO}.csv in {folder}; run `npu-daemon doctor` and see its log"
        )
    return [task for path in found for task in _tasks_of(path)]


def parse_rows(text: str, required: Sequence[str], where: str) -> list[Row]:
    """Return the rows of a CSV text, each with all columns of its header.

    Raises:
        ProfileFormatError: a column is missing or named twice, or a row is shorter or longer than the header.
    """
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text), strict=True)]
    except csv.Error as error:
        raise ProfileFormatError(f"{where}: not a CSV file: {error}") from error
    lines = [line for line in lines if any(line)]
    if not lines:
        raise ProfileFormatError(f"{where}: empty")
    header = lines[0]
    missing = [name for name in required if name not in header]
    if missing or len(set(header)) != len(header):
        raise ProfileFormatError(f"{where}: expected columns {missing or 'of different names'}, got {header}")
    if any(len(line) != len(header) for line in lines):
        raise ProfileFormatError(f"{where}: a row has not {len(header)} cells; was the profiler interrupted?")
    return [dict(zip(header, line, strict=True)) for line in lines[1:]]


def number(row: Row, column: str, where: str) -> float | None:
    """Return a cell as a finite, non-negative number; ``None`` if it is absent.

    Raises:
        ProfileFormatError: it is not such a number.
    """
    cell = row.get(column, "")
    if cell in _ABSENT:
        return None
    value = float(cell) if _NUMBER.fullmatch(cell) else math.nan
    if not math.isfinite(value) or value < 0:
        raise ProfileFormatError(f"{where}: {column} is {cell!r}, expected a number of at least 0 or NA")
    return value


def profile_of(task: DeviceTask, duration_us: float) -> Profile:
    """Return the profile of a task; values that were not collected are 0.

    Args:
        task: task with ``PipeUtilization`` and, for bytes and instructions, ``Memory``.
        duration_us: latency of the call, which may include further tasks.

    Raises:
        ProfileFormatError: a cell is not a number.
    """
    pipes, memory = task.tables.get("PipeUtilization", ()), task.tables.get("Memory", ())
    return Profile(
        task_duration_us=duration_us,
        block_dim=max(1, task.block_dim),
        gm_to_ub_bytes=_kib_total(memory, "GM_to_UB_datas(KB)"),
        ub_to_gm_bytes=_kib_total(memory, "UB_to_GM_datas(KB)"),
        gm_to_l1_bytes=_kib_total(memory, "GM_to_L1_datas(KB)"),
        l0c_to_gm_bytes=_kib_total(memory, "L0C_to_GM_datas(KB)"),
        aiv_mte2_instructions=round(sum(_column(memory, "aiv_mte2_instructions"))),
        aiv_mte3_instructions=round(sum(_column(memory, "aiv_mte3_instructions"))),
        aiv_vec_instructions=0,
        aiv_total_cycles=round(sum(_column(pipes, "aiv_total_cycles"))),
        aic_total_cycles=round(sum(_column(pipes, "aic_total_cycles"))),
        **{**_kind_fields("aiv", pipes, _AIV_PIPES), **_kind_fields("aic", pipes, _AIC_PIPES)},
    )


def l2_hit_share(task: DeviceTask) -> float | None:
    """Return the mean L2 hit rate of the cores; ``None`` if it was not collected."""
    rows = task.tables.get("L2Cache", ())
    rates = [
        value for kind in ("aic", "aiv") for value in _column(rows, f"{kind}_total_hit_rate(%)", zeros=True)
    ]
    return sum(rates) / len(rates) / _PERCENT if rates else None


def bank_conflict_share(task: DeviceTask) -> float | None:
    """Return the mean share of vector cycles lost to UB bank conflicts; ``None`` if it was not collected."""
    rates = _column(task.tables.get("ResourceConflictRatio", ()), "aiv_vec_total_cflt_ratio", zeros=True)
    return sum(rates) / len(rates) if rates else None


def _tasks_of(path: Path) -> list[DeviceTask]:
    rows = parse_rows(_read(path), _BASIC_COLUMNS, str(path))
    suffix = path.stem.removeprefix(BASIC_INFO)
    tables = {}
    for metric in METRICS:
        file = path.with_name(f"{metric}{suffix}.csv")
        if file.exists():
            tables[metric] = parse_rows(_read(file), _CORE_COLUMNS, str(file))
    return [_task(row, tables, str(path)) for row in rows]


def _task(row: Row, tables: Mapping[str, Sequence[Row]], where: str) -> DeviceTask:
    duration_us, block_dim = number(row, "Task Duration(us)", where), number(row, "Block Dim", where)
    if not row["Op Name"] or not duration_us or block_dim is None or block_dim != int(block_dim):
        raise ProfileFormatError(f"{where}: expected name, duration above 0 and block dim, got {dict(row)}")
    return DeviceTask(
        name=row["Op Name"],
        op_type=row["Op Type"],
        duration_us=duration_us,
        block_dim=int(block_dim),
        current_mhz=number(row, "Current Freq", where),
        rated_mhz=number(row, "Rated Freq", where),
        tables=tables,
    )


def _read(path: Path) -> str:
    if path.is_symlink() or path.stat().st_size > MAX_FILE_BYTES:
        raise ProfileFormatError(f"{path}: expected a file of at most {MAX_FILE_BYTES} bytes")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProfileFormatError(f"{path}: not UTF-8: {error}") from error


def _launch_order(path: Path) -> tuple[str, int, str]:
    """Sort key: kernel, then its number among those of that name, which is a folder's name."""
    folder = path.parent.name
    numbered = folder.isascii() and folder.isdigit()
    kernel = path.parent.parent.name if numbered else ""
    return kernel, int(folder) if numbered else 0, path.name


def _kind_fields(kind: str, rows: Sequence[Row], pipes: Mapping[str, str]) -> dict[str, Any]:
    """Return times and shares of a kind of core and its pipes, as means over the cores that ran."""
    ran = [row for row in rows if number(row, f"{kind}_time(us)", kind)]
    fields = {f"{kind}_time": _mean(ran, f"{kind}_time(us)")}
    for field, column in pipes.items():
        pipe_us = _mean(ran, f"{kind}_{column}_time(us)")
        fields[f"{kind}_{field}_time"] = pipe_us
        fields[f"{kind}_{field}_ratio"] = pipe_us / fields[f"{kind}_time"] if ran else 0.0
    return fields


def _mean(rows: Sequence[Row], column: str) -> float:
    return sum(_column(rows, column)) / len(rows) if rows else 0.0


def _kib_total(rows: Sequence[Row], column: str) -> int:
    return round(sum(_column(rows, column)) * 1024)


def _column(rows: Sequence[Row], column: str, zeros: bool = False) -> list[float]:
    values = [number(row, column, column) for row in rows]
    return [value for value in values if value or (zeros and value is not None)]

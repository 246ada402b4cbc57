"""Files of launches: Chrome traces, and CSV with the names and columns of msopprof, as far as they are known.

Columns: the msopprof performance data reference (MindStudio operator tools, files PipeUtilization,
ResourceConflictRatio, L2Cache, Memory, OpBasicInfo). Values that only the other kind of core has are ``NA``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from npu_daemon.profiling.launch_profile import LaunchProfile

_PIPE_ORDER = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")

_AIV_PIPES = {"vec": "vec", "scalar": "scalar", "mte2": "mte2", "mte3": "mte3"}
_AIC_PIPES = {
    "cube": "mac",
    "scalar": "scalar",
    "mte1": "mte1",
    "mte2": "mte2",
    "mte3": "mte3",
    "fixpipe": "fixpipe",
}
_KINDS = {"aic": _AIC_PIPES, "aiv": _AIV_PIPES}
_WAITING = {"aic": ("cube", "mte1", "mte2", "mte3"), "aiv": ("vec", "mte2", "mte3")}
_REQUEST_BYTES = 128  # what the cache counts are in: data_copy S5 and L1_S4 of the calibration table
_READ_CHANNELS = 2
_NOT_APPLICABLE = "NA"
_Core = Mapping[str, Any]
_Cells = dict[str, float | int | str]


def write_chrome_trace(launches: Sequence[LaunchProfile], path: Path) -> str | None:
    """Write the timelines of ``launches``, one after another; return a note if events were left out.

    One process per launch, one row per core and pipe, times in microseconds.
    """
    notes = [note for note in map(_left_out, launches) if note]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "otherData": ')
        json.dump({"generator": "ascend-gym", "chip": launches[0].chip.name, "notes": notes}, file)
        file.write(',\n"traceEvents": [\n')
        for number, event in enumerate(_events(launches)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
    return "; ".join(notes) or None


def _left_out(launch: LaunchProfile) -> str | None:
    events, written = launch.price["timeline_events"], launch.price["timeline_written"]
    if events == written:
        return None
    return (
        f"launch {launch.index} ({launch.kernel}): the trace holds the first {written} of {events} events; "
        "raise --max-events for more"
    )


def _events(launches: Sequence[LaunchProfile]) -> Iterator[dict[str, Any]]:
    start_us = 0.0
    for launch in launches:
        yield {
            "ph": "M",
            "name": "process_name",
            "pid": launch.index,
            "tid": 0,
            "args": {"name": f"{launch.index} {launch.kernel}"},
        }
        yield from _launch_events(launch, start_us)
        start_us += launch.task_us


def _launch_events(launch: LaunchProfile, start_us: float) -> Iterator[dict[str, Any]]:
    if launch.timeline is None:
        raise ValueError("this launch was priced without a timeline")
    labels = launch.core_labels()
    named: set[int] = set()
    with launch.timeline.open(encoding="ascii") as lines:
        for line in lines:
            core, pipe, name, start, end, moved_bytes = line.split()
            row = int(core) * len(_PIPE_ORDER) + _PIPE_ORDER.index(pipe)
            if row not in named:
                named.add(row)
                group, label = labels[int(core)]
                yield from _row_names(launch.index, row, f"core {group} {label} {pipe}")
            begin_us, end_us = launch.microseconds(float(start)), launch.microseconds(float(end))
            yield {
                "ph": "X",
                "name": name,
                "cat": pipe,
                "pid": launch.index,
                "tid": row,
                "ts": round(start_us + begin_us, 6),
                "dur": round(end_us - begin_us, 6),
                "args": {"bytes": int(moved_bytes)} if moved_bytes != "0" else {},
            }


def _row_names(pid: int, row: int, label: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": row, "args": {"name": label}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": row, "args": {"sort_index": row}}


def write_csv_files(launches: Sequence[LaunchProfile], folder: Path) -> list[Path]:
    """Write a folder ``INDEX_KERNEL`` per launch, and OpBasicInfo.csv for all; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder / "OpBasicInfo.csv", [_basic_info(launch) for launch in launches])]
    for launch in launches:
        launch_dir = folder / f"{launch.index}_{launch.kernel.replace('::', '.')}"
        launch_dir.mkdir(exist_ok=True)
        for name, cells in _TABLES.items():
            written.append(_write(launch_dir / f"{name}.csv", list(_rows(launch, cells))))
    return written


def _write(path: Path, rows: Sequence[_Cells]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _shown(value) for name, value in row.items()} for row in rows)
    return path


def _shown(value: float | int | str) -> int | str:
    return f"{value:.6f}" if isinstance(value, float) else value


def _basic_info(launch: LaunchProfile) -> _Cells:
    kinds = launch.kinds()
    task_type = {"aic": "AI_CORE", "aiv": "AI_VECTOR_CORE"}[kinds[0]] if len(kinds) == 1 else "MIX_AIC"
    mixed_blocks = launch.block_dim * len(launch.cores_of("aiv")) // max(1, len(launch.cores_of("aic")))
    return {
        "Launch": launch.index,
        "Op Name": launch.kernel,
        "Op Type": task_type,
        "Task Duration(us)": launch.task_us,
        "Block Dim": launch.block_dim,
        "Mix Block Dim": mixed_blocks if len(kinds) > 1 else 0,
        "Current Freq": int(launch.chip.clock_hz / 1e6),
        "Rated Freq": int(launch.chip.clock_hz / 1e6),
        "Chip": launch.chip.name,
    }


def _rows(launch: LaunchProfile, cells: Callable[[LaunchProfile, _Core, str], _Cells]) -> Iterator[_Cells]:
    """Yield one row per core; values that only the other kind of core has are not applicable."""
    kinds = launch.kinds()
    for core, (group, name) in zip(launch.cores, launch.core_labels(), strict=True):
        row: _Cells = {"block_id": group, "sub_block_id": name}
        for kind in kinds:
            mine = core["kind"] == kind
            found = _core_time(launch, core, kind) | cells(launch, core, kind)
            row |= found if mine else dict.fromkeys(found, _NOT_APPLICABLE)
        yield row


def _core_time(launch: LaunchProfile, core: _Core, kind: str) -> _Cells:
    cycles = float(core["total_cycles"])
    return {f"{kind}_time(us)": launch.microseconds(cycles), f"{kind}_total_cycles": int(cycles)}


def _pipe_utilization(launch: LaunchProfile, core: _Core, kind: str) -> _Cells:
    row: _Cells = {}
    for name, pipe in _KINDS[kind].items():
        cycles = float(core[f"{pipe}_cycles"])
        row[f"{kind}_{name}_time(us)"] = launch.microseconds(cycles)
        row[f"{kind}_{name}_ratio"] = _share(cycles, float(core["total_cycles"]))
    if kind == "aiv":
        row["aiv_mte2_active_bw(GB/s)"] = _bandwidth(launch, core, "read_bytes", "mte2")
        row["aiv_mte3_active_bw(GB/s)"] = _bandwidth(launch, core, "written_bytes", "mte3")
    else:
        row["aic_mte2_active_bw(GB/s)"] = _bandwidth(launch, core, "read_bytes", "mte2")
        row["aic_fixpipe_active_bw(GB/s)"] = _bandwidth(launch, core, "written_bytes", "fixpipe")
    return row


def _resource_conflicts(launch: LaunchProfile, core: _Core, kind: str) -> _Cells:
    total = float(core["total_cycles"])
    row: _Cells = {}
    if kind == "aiv":
        row["aiv_vec_total_cflt_ratio"] = _share(
            core["bank_group_conflict_cycles"] + core["bank_conflict_cycles"], total
        )
        row["aiv_vec_bankgroup_cflt_ratio"] = _share(core["bank_group_conflict_cycles"], total)
        row["aiv_vec_bank_cflt_ratio"] = _share(core["bank_conflict_cycles"], total)
    for name in _WAITING[kind]:
        row[f"{kind}_{name}_wait_ratio"] = _share(core[f"{_KINDS[kind][name]}_wait_cycles"], total)
    return row


def _l2_cache(launch: LaunchProfile, core: _Core, kind: str) -> _Cells:
    read_hits, read_misses = _requests(core, "read_hit_bytes"), _requests(core, "read_miss_bytes")
    write_hits, write_misses = _requests(core, "write_hit_bytes"), _requests(core, "write_miss_bytes")
    row: _Cells = {f"{kind}_write_cache_hit": write_hits, f"{kind}_write_cache_miss_allocate": write_misses}
    for channel in range(_READ_CHANNELS):
        row[f"{kind}_r{channel}_read_cache_hit"] = _part(read_hits, channel)
        row[f"{kind}_r{channel}_read_cache_miss_allocate"] = _part(read_misses, channel)
    row[f"{kind}_write_hit_rate(%)"] = 100 * _share(write_hits, write_hits + write_misses)
    row[f"{kind}_read_hit_rate(%)"] = 100 * _share(read_hits, read_hits + read_misses)
    hits, misses = read_hits + write_hits, read_misses + write_misses
    row[f"{kind}_total_hit_rate(%)"] = 100 * _share(hits, hits + misses)
    return row


def _memory(launch: LaunchProfile, core: _Core, kind: str) -> _Cells:
    seconds = float(core["total_cycles"]) / launch.chip.clock_hz
    local = "ub" if kind == "aiv" else "l1"
    source = "ub" if kind == "aiv" else "l0c"
    row: _Cells = {
        f"{kind}_gm_to_{local}_bw(GB/s)": _share(core["read_bytes"] / 1e9, seconds),
        f"{kind}_{source}_to_gm_bw(GB/s)": _share(core["written_bytes"] / 1e9, seconds),
        f"{kind}_main_mem_read_bw(GB/s)": _share(core["main_read_bytes"] / 1e9, seconds),
        f"{kind}_main_mem_write_bw(GB/s)": _share(core["main_written_bytes"] / 1e9, seconds),
    }
    if kind == "aic":
        row["aic_mte1_instructions"] = int(core["mte1_instructions"])
    row[f"{kind}_mte2_instructions"] = int(core["mte2_instructions"])
    row[f"{kind}_mte3_instructions"] = int(core["mte3_instructions"])
    row["read_main_memory_datas(KB)"] = core["main_read_bytes"] / 1024
    row["write_main_memory_datas(KB)"] = core["main_written_bytes"] / 1024
    row[f"GM_to_{local.upper()}_datas(KB)"] = core["read_bytes"] / 1024
    row[f"{source.upper()}_to_GM_datas(KB)"] = core["written_bytes"] / 1024
    return row


_TABLES: Mapping[str, Callable[[LaunchProfile, _Core, str], _Cells]] = {
    "PipeUtilization": _pipe_utilization,
    "ResourceConflictRatio": _resource_conflicts,
    "L2Cache": _l2_cache,
    "Memory": _memory,
}


def _share(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0


def _bandwidth(launch: LaunchProfile, core: _Core, moved: str, pipe: str) -> float:
    return _share(core[moved] / 1e9, core[f"{pipe}_cycles"] / launch.chip.clock_hz)


def _requests(core: _Core, field: str) -> int:
    return round(float(core[field]) / _REQUEST_BYTES)


def _part(requests: int, channel: int) -> int:
    return requests // _READ_CHANNELS + (1 if channel < requests % _READ_CHANNELS else 0)

"""Reports of a profiled program: the trace agrees with the profile, the CSV files with msopprof's names."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ascend_gym.core.records import Diagnostic, Phase
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram
from npu_daemon.profiling.csv_files import write_chrome_trace, write_csv_files
from npu_daemon.profiling.launch_profile import PIPES, LaunchProfile
from npu_daemon.profiling.profiler import ProfiledProgram, Profiler
from npu_daemon.profiling.summary import launch_summary, print_launch, roofline_of

ADD = Path(__file__).parent.parent / "asc" / "add.asc"
ROW_PIPES = dict(zip(("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"), PIPES, strict=True))
COLUMNS = {
    "PipeUtilization": "aiv_vec_time(us)",
    "ResourceConflictRatio": "aiv_vec_bankgroup_cflt_ratio",
    "L2Cache": "aiv_r0_read_cache_miss_allocate",
    "Memory": "aiv_gm_to_ub_bw(GB/s)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the runs of this module leave their files."""
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def launches(simulator: SimulatorBackend, folder: Path) -> tuple[LaunchProfile, ...]:
    """Return the launches of the add program on eight cores."""
    profiler = Profiler(simulator, "910B2", folder, max_events=100_000, timeout_s=180.0)
    program = profiler.profile_program(AscProgram(ADD, ("SCENARIO=2",)))
    assert isinstance(program, ProfiledProgram), program
    return program.launches


def test_the_summary_has_warnings_and_conflicts(launches: tuple[LaunchProfile, ...]) -> None:
    told = Diagnostic(phase=Phase.RUN_KERNEL, message="look here", call="Add", block_idx=3)
    price = {**launches[0].price, "bank_conflicts": {"Add": {"lost_cycles": 640.0, "cycles": 1280.0}}}
    launch = replace(launches[0], price=price, warnings=(told,))
    assert launch_summary(launch)["warnings"][0]["block_idx"] == 3
    console = Console(record=True, width=200, file=io.StringIO())
    print_launch(console, launch)
    shown = console.export_text()
    assert "bank conflicts: Add loses" in shown
    assert "50% of its repeats" in shown
    assert "look here" in shown


def _trace(launches: tuple[LaunchProfile, ...], path: Path) -> dict[str, Any]:
    assert write_chrome_trace(launches, path) is None
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def _rows(document: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    rows = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append(event)
    return rows


def test_the_trace_names_every_row_and_no_row_overlaps(
    launches: tuple[LaunchProfile, ...], tmp_path: Path
) -> None:
    document = _trace(launches, tmp_path / "trace.json")
    named = {
        (event["pid"], event["tid"])
        for event in document["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    rows = _rows(document)
    assert set(rows) == named
    for events in rows.values():
        events.sort(key=lambda event: event["ts"])
        for first, second in itertools.pairwise(events):
            assert first["ts"] + first["dur"] <= second["ts"] + 1e-4
        assert all(event["dur"] > 0 and event["ts"] >= 0 for event in events)


def test_the_rows_of_the_trace_add_up_to_the_profile(
    launches: tuple[LaunchProfile, ...], tmp_path: Path
) -> None:
    document = _trace(launches, tmp_path / "trace.json")
    totals: dict[tuple[int, str], float] = defaultdict(float)
    for events in _rows(document).values():
        for event in events:
            totals[event["pid"], ROW_PIPES[event["cat"]]] += event["dur"]
    for launch in launches:
        for pipe in PIPES:
            busy = launch.microseconds(sum(core[f"{pipe}_cycles"] for core in launch.cores))
            assert totals[launch.index, pipe] == pytest.approx(busy, abs=0.01)


def test_launches_follow_each_other_in_the_trace(launches: tuple[LaunchProfile, ...], tmp_path: Path) -> None:
    rows = _rows(_trace(launches, tmp_path / "trace.json"))
    ends = max(event["ts"] + event["dur"] for (pid, _), row in rows.items() if pid == 0 for event in row)
    starts = min(event["ts"] for (pid, _), row in rows.items() if pid == 1 for event in row)
    assert ends <= launches[0].task_us <= starts


def test_a_limited_trace_says_what_it_leaves_out(simulator: SimulatorBackend, tmp_path: Path) -> None:
    profiler = Profiler(simulator, "910B2", tmp_path, max_events=5, timeout_s=180.0)
    program = profiler.profile_program(AscProgram(ADD))
    assert isinstance(program, ProfiledProgram)
    note = write_chrome_trace(program.launches, tmp_path / "trace.json")
    assert note is not None
    assert "first 5 of" in note
    document = json.loads((tmp_path / "trace.json").read_text())
    assert len(document["otherData"]["notes"]) == 2
    assert sum(event["ph"] == "X" for event in document["traceEvents"]) == 10


def test_csv_files_have_a_row_a_core_and_agree_with_the_profile(
    launches: tuple[LaunchProfile, ...], tmp_path: Path
) -> None:
    write_csv_files(launches, tmp_path)
    with (tmp_path / "OpBasicInfo.csv").open() as file:
        info = list(csv.DictReader(file))
    assert [(row["Launch"], row["Op Name"], row["Block Dim"]) for row in info] == [
        ("0", "add_scaled", "8"),
        ("1", "add_scaled", "1"),
    ]
    for name, column in COLUMNS.items():
        with (tmp_path / "0_add_scaled" / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [(row["block_id"], row["sub_block_id"]) for row in rows] == [
            (str(index), "vector0") for index in range(8)
        ]
        assert float(rows[0][column]) >= 0
    with (tmp_path / "0_add_scaled" / "PipeUtilization.csv").open() as file:
        first = next(csv.DictReader(file))
    core = launches[0].cores[0]
    assert float(first["aiv_vec_time(us)"]) == pytest.approx(
        launches[0].microseconds(core["vec_cycles"]), abs=1e-5
    )
    with (tmp_path / "0_add_scaled" / "L2Cache.csv").open() as file:
        cache = list(csv.DictReader(file))
    reads = sum(
        int(row[f"aiv_r{channel}_read_cache_{kind}"])
        for row in cache
        for channel in (0, 1)
        for kind in ("hit", "miss_allocate")
    )
    assert reads == 2 * 16 * 1024 * 4 // 128


def test_a_launch_finds_in_l2_what_those_before_it_left(launches: tuple[LaunchProfile, ...]) -> None:
    missed = [sum(core["read_miss_bytes"] for core in launch.cores) for launch in launches]
    assert missed == [2 * 16 * 1024 * 4, 0]
    assert sum(core["read_hit_bytes"] for core in launches[1].cores) == 2 * 1024 * 4


def test_the_roofline_names_the_busiest_pipe_and_no_floor_is_above_the_kernel(
    launches: tuple[LaunchProfile, ...],
) -> None:
    for launch in launches:
        roofline = roofline_of(launch)
        assert roofline.bound_by.startswith("aiv ")
        assert 0 < roofline.reached <= 1
        assert max(floor.floor_us for floor in roofline.floors) <= roofline.kernel_us

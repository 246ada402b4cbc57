"""Prices the programs behind published measurements and compares: measured, simulated, error.

The measurements (fidelity_measurements.csv, each with its page of the public asc-devkit repository) were made
on a chip with 24 cube and 48 vector cores at 1.85 GHz. The programs are read from a checkout, unmodified.
``--aside`` prices the programs of fidelity_aside.csv instead, from which no figure of the model comes.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.table import Table

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Convention
from ascend_gym.core.toml_file import read_toml
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram
from npu_daemon.profiling.launch_profile import LaunchProfile
from npu_daemon.profiling.profiler import Profiler
from npu_daemon.simulator.profile import profile_of

HERE = Path(__file__).parent
EXAMPLES = "examples/01_simd_cpp_api"
TASK_DURATION = "Task Duration"
COUNTER_HZ = 50e6  # GetSystemCycle (docs/hardware.md section 1)
REQUEST_BYTES = 128  # what cache counts are in
WITHIN = 0.20
CALIBRATION = "calibration"
KEPT_ASIDE = "kept aside"
SETS = {
    CALIBRATION: ("fidelity_cases.toml", "fidelity_measurements.csv"),
    KEPT_ASIDE: ("fidelity_aside_cases.toml", "fidelity_aside.csv"),
}
SAME = 0.05  # measured times that differ by less have no order


@dataclass(frozen=True)
class Case:
    """One measured scenario and the program that reproduces it.

    Attributes:
        case_id: names it in the measurements.
        family: of cases whose order is compared.
        program: its file, below ``EXAMPLES``.
        defines: macros of the scenario.
        data: files of zeros that it reads: name and bytes.
        int64_data: files of one repeated number: name, how many, the number.
        chip: where it was measured, unless on the one of the command line.
    """

    case_id: str
    family: str
    program: str
    defines: tuple[str, ...]
    data: tuple[tuple[str, int], ...]
    int64_data: tuple[tuple[str, int, int], ...] = ()
    chip: str | None = None

    def write_data(self, folder: Path) -> None:
        """Make the data files in ``folder``."""
        for name, size_bytes in self.data:
            with _new_file(folder / name) as stream:
                stream.truncate(size_bytes)
        for name, count, value in self.int64_data:
            with _new_file(folder / name) as stream:
                stream.write(value.to_bytes(8, "little", signed=True) * count)


def _new_file(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")


@dataclass(frozen=True)
class Row:
    """One measured figure beside the simulated one; ``simulated`` is ``None`` where there is none."""

    case_id: str
    family: str
    metric: str
    unit: str
    measured: float
    simulated: float | None
    reason: str = ""

    @property
    def error(self) -> float | None:
        """Relative error of the simulated figure."""
        if self.simulated is None or self.measured == 0:
            return None
        return self.simulated / self.measured - 1


@dataclass(frozen=True)
class Summary:
    """How far a group of rows agrees; rows without a simulated figure count as disagreeing."""

    rows: int
    missing: int
    median_error: float | None
    share_within_20_percent: float


def load_cases(path: Path) -> list[Case]:
    """Return the cases of ``fidelity_cases.toml``."""
    cases = []
    for entry in read_toml(path)["case"]:
        data = tuple((name, size) for name, size in entry.get("data", []))
        numbers = tuple((name, count, value) for name, count, value in entry.get("int64_data", []))
        for case_id, defines in zip(entry["ids"], entry["defines"], strict=True):
            program = (entry["family"], entry["program"], tuple(defines), data, numbers, entry.get("chip"))
            cases.append(Case(case_id, *program))
    return cases


def load_measurements(path: Path) -> dict[str, list[tuple[str, float, str]]]:
    """Return metric, value and unit of each measurement, by case."""
    found: dict[str, list[tuple[str, float, str]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["case_id"]].append((row["metric"], float(row["value"]), row["unit"]))
    return found


def simulated_figure(launch: LaunchProfile, metric: str) -> float | None:
    """Return what the simulator says for a metric of the table, in the table's unit, or ``None``."""
    profile = profile_of(dict(launch.price), launch.block_dim, launch.chip).model_dump()
    special: dict[str, Callable[[], float]] = {
        TASK_DURATION: lambda: launch.task_us,
        "aicore_time": lambda: float(profile["aic_time"]),
        "aicore_time max": lambda: max(_cube_times_us(launch)),
        "GetSystemCycle": lambda: _counter_ticks(launch),
        "Mmad total cycles": lambda: float(launch.cores[0]["mac_cycles"]),
    }
    if metric in special:
        return special[metric]()
    if "_read_cache_" in metric:
        return _read_requests(launch, metric)
    value = profile.get(metric)
    return None if value is None else float(value)


def _cube_times_us(launch: LaunchProfile) -> list[float]:
    return [launch.microseconds(core["total_cycles"]) for core in launch.cores_of("aic")]


def _counter_ticks(launch: LaunchProfile) -> float:
    reads_us = launch.clock_reads_us()[0]
    return (reads_us[-1] - reads_us[0]) * COUNTER_HZ / 1e6


def _read_requests(launch: LaunchProfile, metric: str) -> float:
    field = "read_hit_bytes" if metric.endswith("hit") else "read_miss_bytes"
    return float(sum(core[field] for core in launch.cores)) / REQUEST_BYTES / 2  # one of two channels


def run_case(case: Case, examples: Path, chip: str) -> LaunchProfile | str:
    """Return the priced launch of a case, or why there is none.

    Args:
        case: what to run.
        examples: folder of the samples.
        chip: to price for, unless the case names one.
    """
    source = examples / case.program
    if not source.is_file():
        return f"{source} does not exist"
    with tempfile.TemporaryDirectory(prefix="ascend-gym-fidelity-") as name:
        folder = Path(name)
        case.write_data(folder)
        chip = case.chip or chip
        profiler = Profiler(
            SimulatorBackend(cache_root(), chip),
            chip,
            folder,
            None,
            timeout_s=900.0,
            convention=Convention.COLD,
        )
        try:
            result = profiler.profile_program(AscProgram(source, case.defines, price_only=True), folder)
        except MisuseError as error:
            return str(error)
    if isinstance(result, Failure):
        return f"{result.status.value}: {result.diagnostics[0]}"
    return result.launches[0] if result.launches else f"no launch; main returned {result.run.exit_status}"


def rows_of(
    case: Case, measured: Iterable[tuple[str, float, str]], outcome: LaunchProfile | str
) -> Iterator[Row]:
    """Yield a row for each measured figure of a case."""
    for metric, value, unit in measured:
        if isinstance(outcome, str):
            yield Row(case.case_id, case.family, metric, unit, value, None, outcome)
            continue
        simulated = simulated_figure(outcome, metric)
        reason = "" if simulated is not None else "the simulator has no such figure"
        yield Row(case.case_id, case.family, metric, unit, value, simulated, reason)


def summary_of(rows: Sequence[Row]) -> Summary:
    """Return the agreement of ``rows``."""
    errors = [abs(row.error) for row in rows if row.error is not None]
    within = sum(error <= WITHIN for error in errors)
    return Summary(
        rows=len(rows),
        missing=len(rows) - len(errors),
        median_error=statistics.median(errors) if errors else None,
        share_within_20_percent=within / len(rows) if rows else 0.0,
    )


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's rank correlation of (measured, simulated), ties at their mean rank."""
    if len(pairs) < 2:
        return None
    first, second = (_ranks([pair[side] for pair in pairs]) for side in (0, 1))
    return statistics.correlation(first, second)


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def ordered_pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Return how many pairs of one family go the measured way, and how many there are."""
    right = total = 0
    for first, second in combinations(rows, 2):
        if first.family != second.family or first.metric != second.metric:
            continue
        if abs(first.measured - second.measured) <= SAME * max(first.measured, second.measured):
            continue
        total += 1
        if first.simulated is not None and second.simulated is not None:
            right += (first.measured < second.measured) == (first.simulated < second.simulated)
    return right, total


def _is_ordered(row: Row) -> bool:
    return row.metric in (TASK_DURATION, "GetSystemCycle")


def report_of(rows: Sequence[Row], earlier: Sequence[Row] = ()) -> dict[str, Any]:
    """Return rows and summaries as one JSON-able document.

    Args:
        rows: of one set.
        earlier: of another one, whose rows make pairs with these.
    """
    tasks = [row for row in rows if row.metric == TASK_DURATION]
    pipes = [
        row for row in rows if row.metric.endswith("_time") and row.metric not in ("aiv_time", "aicore_time")
    ]
    before, both = (ordered_pairs([*filter(_is_ordered, one)]) for one in (earlier, [*earlier, *rows]))
    right, total = (new - old for new, old in zip(both, before, strict=True))
    pairs = [(row.measured, row.simulated) for row in tasks if row.simulated is not None]
    return {
        "task_durations": asdict(summary_of(tasks)),
        "rank_correlation": rank_correlation(pairs),
        "pairs": {"right": right, "total": total},
        "pipe_times": asdict(summary_of(pipes)),
        "rows": [asdict(row) | {"error": row.error} for row in rows],
    }


def show(title: str, rows: Sequence[Row], report: dict[str, Any]) -> None:
    """Print the table and the summary."""
    table = Table(title=f"{title}: measured / simulated")
    for heading in ("case", "metric", "measured", "simulated", "error"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        simulated = f"{row.simulated:.2f}" if row.simulated is not None else row.reason
        error = f"{row.error:+.1%}" if row.error is not None else "-"
        table.add_row(row.case_id, row.metric, f"{row.measured:.2f} {row.unit}", simulated, error)
    console = Console()
    console.print(table)
    for name in ("task_durations", "pipe_times", "rank_correlation", "pairs"):
        console.print(f"{name}: {report[name]}")


def priced_rows(name: str, examples: Path, only: str, chip: str) -> list[Row]:
    """Price the cases of a set whose id starts with ``only``."""
    cases, figures = (HERE / file for file in SETS[name])
    measurements = load_measurements(figures)
    chosen = [case for case in load_cases(cases) if case.case_id.startswith(only)]
    return [
        row
        for case in chosen
        for row in rows_of(case, measurements[case.case_id], run_case(case, examples, chip))
    ]


def main() -> None:
    """Price the cases and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--asc-devkit", type=Path, required=True, help="checkout of asc-devkit")
    parser.add_argument("--only", default="", help="only cases whose id starts with this")
    parser.add_argument("--aside", action="store_true", help="the cases kept aside, instead of the others")
    parser.add_argument(
        "--both", action="store_true", help="all cases; pairs of the second section are of one of each too"
    )
    parser.add_argument("--chip", default="910B1", help="chip to price for")
    parser.add_argument("--json", type=Path, help="also write one JSON document to this file")
    arguments = parser.parse_args()
    names = list(SETS) if arguments.both else [KEPT_ASIDE if arguments.aside else CALIBRATION]
    reports: dict[str, Any] = {}
    earlier: list[Row] = []
    for name in names:
        rows = priced_rows(name, arguments.asc_devkit / EXAMPLES, arguments.only, arguments.chip)
        reports[name] = report_of(rows, earlier)
        show(name, rows, reports[name])
        earlier += rows
    if arguments.json:
        arguments.json.write_text(json.dumps(reports, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

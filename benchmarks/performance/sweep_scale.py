"""How much a sweep's driver and its results store take.

``store``: evaluations are put into a store from the journals of runs, whose records are as large as those of
the simulator; prints evaluations per second, and seconds for 10^5.

``driver``: fake daemons answer after a fixed time, one run at a time on each; state, files, store and
progress are the real ones. Prints the wall time over the ideal one (every daemon always busy) and the
processor time of the driver. Making runs is left out: on real hosts their processes run elsewhere.

``state``: the decisions alone, as fast as they go: which run is begun where, and what follows.

``report``: the page about a store of so many evaluations, of 100 operators and 5 methods, as
``ascend-gym report`` writes it; prints its seconds, with the start of the program, and its size.

    python benchmarks/performance/sweep_scale.py store --run DIR --evaluations 100000
    python benchmarks/performance/sweep_scale.py driver --run DIR --daemons 64 --runs 192 --evaluation-s 1
    python benchmarks/performance/sweep_scale.py state --daemons 1000 --runs 50000
    python benchmarks/performance/sweep_scale.py report --run DIR --evaluations 100000
"""

from __future__ import annotations

import argparse
import heapq
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ascend_gym.cli.sweep import RunRecorder
from ascend_gym.core.append_log import canonical_json, read_log
from ascend_gym.core.digest import digest_of
from ascend_gym.core.own_python import own_python_command
from ascend_gym.report.sweep_view import SweepView
from ascend_gym.search.journal import JOURNAL_NAME, TIMINGS_NAME, read_journal
from ascend_gym.sweep.jobs import FilePart, RunEnd, RunEnding, RunStep, RunTask, SweepJob, Update
from ascend_gym.sweep.run_folders import RunFolders
from ascend_gym.sweep.run_reader import Operators, read_run
from ascend_gym.sweep.store import ResultsStore
from ascend_gym.sweep.sweep_state import DaemonSlots, SweepLoop, SweepState

BUDGET = 20
BATCH_RUNS = 50
OPERATORS = 100
METHODS = ("best-of-n", "openevolve", "ascend-optimizer", "random-rewrites", "greedy-rules")


class Template:
    """A recorded run, of which others are made that differ in seed and candidates."""

    def __init__(self, folder: Path) -> None:
        """Read the run in ``folder``; its evaluations are repeated until there are ``BUDGET``."""
        header, *rest = read_journal(folder)
        pairs = [(p, r) for p, r in zip(rest[::2], rest[1::2], strict=False) if r["kind"] == "result"]
        self._header, self._end = header, rest[-1]
        self._pairs = [pairs[0], *(pairs[1 + number % (len(pairs) - 1)] for number in range(BUDGET))]
        self._timings = read_log(folder / TIMINGS_NAME)[: len(pairs)]

    def run(self, seed: int) -> dict[str, bytes]:
        """Return journal and timings of a run with ``seed``."""
        lines, previous = [], ""
        for record in self._records(seed):
            body = {**record, "seq": len(lines)}
            body["digest"] = previous = digest_of("journal", previous, canonical_json(body))
            lines.append(canonical_json(body))
        timing = [canonical_json({**self._timings[1], "index": number}) for number in range(BUDGET + 1)]
        return {JOURNAL_NAME: _lines(lines), TIMINGS_NAME: _lines(timing)}

    def _records(self, seed: int) -> Iterator[Mapping[str, Any]]:
        yield {
            **_bare(self._header),
            "settings": {**self._header["settings"], "seed": seed, "budget": BUDGET},
        }
        for index, (proposal, result) in enumerate(self._pairs):
            own = digest_of(seed, index) if index else proposal["candidate_digest"]
            yield {**_bare(proposal), "index": index, "candidate_digest": own}
            yield {**_bare(result), "index": index}
        yield _bare(self._end)


def _bare(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("digest", "seq")}


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class PacedExecutor:
    """Tells of one evaluation of every run each ``evaluation_s``, as runs on so many daemons would."""

    def __init__(self, journals: Mapping[int, list[bytes]], daemons: int, evaluation_s: float) -> None:
        self._journals, self._daemons, self._evaluation_s = journals, daemons, evaluation_s
        self._due: list[tuple[float, int, RunTask, int, list[bytes]]] = []
        self._begun = 0

    def capacity(self) -> int:
        """Return the daemons."""
        return self._daemons

    def start(self, task: RunTask) -> None:
        """Begin a run."""
        lines = self._journals[task.job.seed]
        self._begun += 1
        heapq.heappush(self._due, (time.monotonic() + self._evaluation_s, self._begun, task, 0, lines))

    def updates(self, timeout_s: float) -> list[Update]:
        """Return what is due, waiting for the first."""
        if self._due:
            time.sleep(max(0.0, min(timeout_s, self._due[0][0] - time.monotonic())))
        told = []
        while self._due and self._due[0][0] <= time.monotonic():
            due_s, number, task, index, lines = heapq.heappop(self._due)
            told.append(_update(task, index, lines))
            if index < BUDGET:
                following = (due_s + self._evaluation_s, number, task, index + 1, lines)
                heapq.heappush(self._due, following)
        return told

    def stop_all(self) -> None:
        """Forget all runs."""
        self._due.clear()

    close = stop_all


def _update(task: RunTask, index: int, lines: list[bytes]) -> Update:
    """Return the update of one evaluation: header, proposal and result, or at the last one the end too."""
    first = 1 + 2 * index if index else 0
    last = len(lines) if index == BUDGET else 3 + 2 * index
    offset_bytes = sum(map(len, lines[:first]))
    part = FilePart(JOURNAL_NAME, offset_bytes, b"".join(lines[first:last]))
    step = RunStep(index, "ok", index, 100.0, 100.0 - index)
    end = RunEnd(RunEnding.FINISHED) if index == BUDGET else None
    return Update(task.job.job_id, task.attempt, f"host{task.daemon}", (part,), (step,), end)


def main() -> int:
    """Measure what was asked for and print one JSON document."""
    arguments = _parse()
    if arguments.what == "state":
        print(json.dumps(_state(arguments.daemons, arguments.runs), indent=2))
        return 0
    template = Template(arguments.run)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "store":
            told = _store(template, Path(folder), arguments.evaluations)
        elif arguments.what == "report":
            told = _report(template, Path(folder), arguments.evaluations)
        else:
            told = _driver(template, Path(folder), arguments)
    print(json.dumps(told, indent=2))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["store", "driver", "state", "report"])
    parser.add_argument("--run", type=Path, help="folder of a finished run to take for a model")
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--daemons", type=int, default=64)
    parser.add_argument("--runs", type=int, default=192)
    parser.add_argument("--evaluation-s", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.what != "state" and arguments.run is None:
        parser.error("--run: name the folder of a finished run, such as one of 'ascend-gym optimize'")
    return arguments


def _state(daemons: int, runs: int) -> dict[str, Any]:
    """Take every run through its evaluations, one at a time on each daemon, without waiting."""
    jobs = (SweepJob(f"run{seed}", "m", "core/toy", seed, BUDGET, "910B2", b"{}") for seed in range(runs))
    state = SweepState.of(jobs, [DaemonSlots(f"{number}", None, 1) for number in range(daemons)])
    cpu_before_s = _cpu_s()
    while not state.done:
        state.starts(0.0, daemons)
        for each in state.running:
            index = each.index + 1
            step = RunStep(index, "ok", index, 100.0, 100.0 - index)
            end = RunEnd(RunEnding.FINISHED) if index == BUDGET else None
            state.observe(Update(each.job.job_id, each.attempt, "host", (), (step,), end), 0.0)
    cpu_s = _cpu_s() - cpu_before_s
    evaluations = runs * (BUDGET + 1)
    return {
        "daemons": daemons,
        "evaluations": evaluations,
        "cpu_s": round(cpu_s, 2),
        "cpu_us_per_evaluation": round(1e6 * cpu_s / evaluations, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    }


def _store(template: Template, folder: Path, evaluations: int) -> dict[str, Any]:
    runs = -(-evaluations // (BUDGET + 1))
    read_s = put_s = cpu_s = 0.0
    operators = Operators()
    with ResultsStore(folder / "results.sqlite", write=True) as store:
        for seed in range(runs):
            where = folder / f"run{seed % BATCH_RUNS}"
            where.mkdir(exist_ok=True)
            for name, data in template.run(seed).items():
                (where / name).write_bytes(data)
            started_s, cpu_before_s = time.monotonic(), _cpu_s()
            stored = read_run(where, operators=operators)
            read_at_s = time.monotonic()
            store.put(stored)
            read_s, put_s = read_s + read_at_s - started_s, put_s + time.monotonic() - read_at_s
            cpu_s += _cpu_s() - cpu_before_s
        ((count,),) = store.query("SELECT COUNT(*) FROM evaluations")
    per_100k_s = 1e5 / count * (read_s + put_s)
    return {
        "evaluations": count,
        "runs": runs,
        "read_and_check_journals_s": round(read_s, 2),
        "put_s": round(put_s, 2),
        "s_for_100000": round(per_100k_s, 2),
        "cpu_s_for_100000": round(1e5 / count * cpu_s, 2),
        "evaluations_per_s": round(count / (read_s + put_s)),
        "store_mb": round((folder / "results.sqlite").stat().st_size / 1e6, 1),
    }


def _report(template: Template, folder: Path, evaluations: int) -> dict[str, Any]:
    store, page = folder / "results.sqlite", folder / "report.html"
    count = _fill(template, store, folder / "run", -(-evaluations // (BUDGET + 1)))
    command = [*own_python_command("ascend_gym.cli"), "report", "--store", str(store), "--html", str(page)]
    started_s = time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall_s = time.monotonic() - started_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "evaluations": count,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_rss_mb": round(used.ru_maxrss / 1000),
        "page_mb": round(page.stat().st_size / 1e6, 2),
    }


def _fill(template: Template, path: Path, where: Path, runs: int) -> int:
    """Put runs of many operators and methods into a store and return its number of evaluations."""
    where.mkdir()
    with ResultsStore(path, write=True) as store:
        for seed in range(runs):
            for name, data in template.run(seed).items():
                (where / name).write_bytes(data)
            read = read_run(where)
            method = METHODS[seed // OPERATORS % len(METHODS)]
            run = replace(read.run, op_id=f"many/op{seed % OPERATORS}", method=method, variant=method)
            operator = None if read.operator is None else replace(read.operator, op_id=run.op_id)
            store.put(replace(read, run=run, operator=operator))
        ((count,),) = store.query("SELECT COUNT(*) FROM evaluations")
    return int(count)


def _driver(template: Template, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    model = read_run(arguments.run).run
    jobs = [
        SweepJob(f"run{seed}", model.variant, model.op_id, seed, BUDGET, model.chip, b"{}")
        for seed in range(arguments.runs)
    ]
    folders = RunFolders(folder)
    for job in jobs:
        folders.begin(job)
    state = SweepState.of(jobs, [DaemonSlots(f"{number}", None, 1) for number in range(arguments.daemons)])
    journals = {job.seed: template.run(job.seed)[JOURNAL_NAME].splitlines(keepends=True) for job in jobs}
    executor = PacedExecutor(journals, arguments.daemons, arguments.evaluation_s)
    rounds = -(-arguments.runs // arguments.daemons)
    with ResultsStore(folder / "results.sqlite", write=True) as store:
        recorder = RunRecorder(store, folders)
        view = SweepView(Console(quiet=True), state)
        cpu_before_s, started_s = _cpu_s(), time.monotonic()
        SweepLoop(state, executor, folders, [view.show], recorder.ended).run()
        wall_s, cpu_s = time.monotonic() - started_s, _cpu_s() - cpu_before_s
        stored = len(store.runs(finished=True))
    assert stored == arguments.runs, f"{stored} of {arguments.runs} runs are stored"
    ideal_s = rounds * (BUDGET + 1) * arguments.evaluation_s
    evaluations = arguments.runs * (BUDGET + 1)
    return {
        "daemons": arguments.daemons,
        "evaluations": evaluations,
        "ideal_s": round(ideal_s, 2),
        "wall_s": round(wall_s, 2),
        "overhead": round(wall_s / ideal_s - 1, 4),
        "driver_cpu_s": round(cpu_s, 2),
        "driver_cpu_ms_per_evaluation": round(1000 * cpu_s / evaluations, 2),
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())

"""Live progress of a sweep: by method, by host, and the active runs."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ascend_gym.sweep.jobs import RunEnding, Update
from ascend_gym.sweep.sweep_state import JobState, SweepState

_SHOWN_RUNS = 12
_SECONDS_PER_MINUTE = 60.0


class SweepProgress:
    """Counts the evaluations of a sweep since it was started or resumed."""

    def __init__(self, state: SweepState) -> None:
        self._state, self._started_s = state, time.monotonic()
        self._before = {job_id: each.index for job_id, each in state.jobs.items()}
        self._by_host: dict[str, int] = defaultdict(int)

    def note(self, update: Update) -> None:
        """Count the new evaluations of an update."""
        before = self._before[update.job_id]
        indices = [step.index for step in update.steps if step.index > before]
        self._by_host[update.host] += len(indices)
        self._before[update.job_id] = max([before, *indices])

    @property
    def evaluations(self) -> int:
        """Evaluations since the start, including baselines and cached ones."""
        return sum(self._by_host.values())

    def by_host(self) -> list[tuple[str, int, float]]:
        """Return the active runs and the evaluations per minute of each host."""
        running = [each.host for each in self._state.running]
        minutes = max(time.monotonic() - self._started_s, 1e-9) / _SECONDS_PER_MINUTE
        hosts = sorted(host for host in {*self._by_host, *running} if host)
        return [(host, running.count(host), self._by_host[host] / minutes) for host in hosts]

    def remaining_s(self) -> float | None:
        """Return the estimated seconds left; ``None`` before the first evaluation."""
        if not self.evaluations:
            return None
        jobs = self._state.jobs.values()
        left = sum(each.job.budget - each.spent_evaluations for each in jobs if each.end is None)
        return left * (time.monotonic() - self._started_s) / self.evaluations


class SweepView:
    """Shows progress on a terminal; elsewhere, prints a line for each run that ends.

    Args:
        console: output.
        state: sweep.
        quiet: whether to show nothing.
    """

    def __init__(self, console: Console, state: SweepState, *, quiet: bool = False) -> None:
        self._console, self._state, self._quiet = console, state, quiet
        self.progress = SweepProgress(state)
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=2, transient=True)
        self._is_live = console.is_terminal and not quiet

    def __enter__(self) -> SweepView:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._live.stop()

    def show(self, update: Update) -> None:
        """Process an update; the end of a run is printed as a line."""
        self.progress.note(update)
        if update.end is not None and not self._quiet:
            self._console.print(_end_line(self._state, update), soft_wrap=True)

    def _drawn(self) -> Group:
        return Group(methods_table(self._state), self._hosts_table(), self._runs_table(), self._eta())

    def _hosts_table(self) -> Table:
        table = Table("host", "runs", "evaluations/min", box=None)
        for host, runs, per_minute in self.progress.by_host():
            table.add_row(host, str(runs), f"{per_minute:.1f}")
        return table

    def _runs_table(self) -> Table:
        table = Table("under way", "operator", "seed", "spent", "speedup", "host", box=None)
        for each in self._state.running[:_SHOWN_RUNS]:
            job = each.job
            spent = f"{each.spent_evaluations}/{job.budget}"
            table.add_row(job.variant, job.operator, str(job.seed), spent, f"{each.speedup:.3f}x", each.host)
        return table

    def _eta(self) -> Text:
        remaining_s = self.progress.remaining_s()
        left = "unknown" if remaining_s is None else f"{remaining_s / _SECONDS_PER_MINUTE:.0f} min"
        return Text(f"time left at this rate: {left}")


def methods_table(state: SweepState) -> Table:
    """Return one line per method: runs ended, evaluations spent, geometric mean of the speedups so far."""
    table = Table("method", "runs", "evaluations", "incumbents", box=None)
    by_method: dict[str, list[JobState]] = defaultdict(list)
    for each in state.jobs.values():
        by_method[each.job.variant].append(each)
    for method, jobs in by_method.items():
        ended = sum(each.end is not None for each in jobs)
        spent, planned = sum(each.spent_evaluations for each in jobs), sum(each.job.budget for each in jobs)
        gm = _geometric_mean([each.speedup for each in jobs if each.index >= 0])
        table.add_row(method, f"{ended}/{len(jobs)}", f"{spent}/{planned}", gm)
    return table


def _geometric_mean(speedups: Sequence[float]) -> str:
    if not speedups:
        return "-"
    return f"{math.exp(math.fsum(map(math.log, speedups)) / len(speedups)):.3f}x"


def _end_line(state: SweepState, update: Update) -> Text:
    each, end = state.jobs[update.job_id], update.end
    assert end is not None, "only ends are shown"
    job = each.job
    line = f"[{state.ended}/{len(state.jobs)}] {job.variant} on {job.operator}, seed {job.seed}: "
    if end.ending is RunEnding.FINISHED:
        found = Text(f"{line}{each.speedup:.3f}x with {each.spent_evaluations} evaluations")
        return found.append(f"; {end.message}" if end.message else "", "yellow")
    again = "" if each.end is not None else "; it is tried again"
    return Text(f"{line}{end.ending.value}: {end.message}{again}", "yellow")

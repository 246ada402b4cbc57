"""Data of the report, read from a store once: the source of every figure and table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Curve, Run, in_order
from ascend_gym.report.generation import SUITE, FirstCandidate, by_method
from ascend_gym.report.metrics import BUDGETS
from ascend_gym.report.stored_runs import curve_of_run, method_names
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

_CHUNK = 500


class PlottedStep(NamedTuple):
    """One evaluation of a run as needed for figures, with fields as in ``EvaluationRecord``."""

    idx: int
    stage: str | None
    kind: str
    status: str
    charged: int
    spent_evaluations: int
    improved: int
    latency_us: float | None
    best_latency_us: float | None


class MethodCost(NamedTuple):
    """Total cost of a method's runs; seconds exclude cached evaluations."""

    runs: int
    evaluations: int
    known: int
    device_seconds: float
    evaluation_seconds: float
    queue_seconds: float
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float


@dataclass(frozen=True)
class Results:
    """Runs of one or several methods on a set of operators.

    Attributes:
        store: their store, which stays open.
        runs: runs by operator, method and seed.
        names: displayed name of each run's method, by run id.
        steps: evaluations of each run in order, the baseline first, by run id.
        reference: method that the others are compared with; ``None`` for the first of ``methods``.
    """

    store: ResultsStore
    runs: tuple[RunRecord, ...]
    names: dict[str, str]
    steps: dict[str, list[PlottedStep]]
    reference: str | None = None

    @cached_property
    def methods(self) -> list[str]:
        """Return the methods in the order of all tables and figures."""
        return in_order(self.names.values())

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """Return the curve of the best latency, by run id."""
        return {run.run_id: curve_of_run(run, self.steps[run.run_id]) for run in self.runs}

    @cached_property
    def budget(self) -> int:
        """Return the largest budget that all runs of the compared methods had."""
        compared = set(self.main.methods) or set(self.methods)
        return min(run.budget for run in self.runs if self.names[run.run_id] in compared)

    @cached_property
    def budgets(self) -> list[int]:
        """Return the budgets of the metrics, in ascending order."""
        return [*(budget for budget in BUDGETS if budget < self.budget), self.budget]

    @cached_property
    def levels(self) -> dict[str, str]:
        """Return the level of each operator by id; ``?`` if unknown."""
        known = {record.op_id: str(record.level) for record in self.store.operators()}
        return {run.op_id: known.get(run.op_id, "?") for run in self.runs}

    def comparison(self, methods: Iterable[str]) -> Comparison:
        """Compare ``methods``, with the reference if it is one of them."""
        wanted = set(methods)
        chosen = [
            Run(name, run.op_id, run.seed, self.curves[run.run_id] if run.finished else None)
            for run in self.runs
            if (name := self.names[run.run_id]) in wanted
        ]
        return Comparison(chosen, self.reference if self.reference in wanted else None)

    @cached_property
    def generated(self) -> dict[str, list[FirstCandidate]]:
        """Return what each method's first candidates for operators without sources came to."""
        categories = {record.op_id: record.category for record in self.store.operators()}
        runs = (
            (run, categories.get(run.op_id, "?"), self.store.evaluations(run.run_id))
            for run in self.runs
            if run.op_id.startswith(SUITE)
        )
        return by_method(self.names, runs)

    @property
    def generation_runs(self) -> int:
        """Number of runs on operators without sources, with those that have no candidate yet."""
        return sum(run.op_id.startswith(SUITE) for run in self.runs)

    @cached_property
    def main(self) -> Comparison:
        """Return the comparison of all methods except variants."""
        return self.comparison(self.main_methods)

    @cached_property
    def main_methods(self) -> list[str]:
        """Return the methods except variants; all if there are only variants."""
        return [name for name in self.methods if ":" not in name] or self.methods

    @cached_property
    def ablation_methods(self) -> list[str]:
        """Return the method with the most variants, and its variants; empty if no method has any."""
        bases = Counter(name.partition(":")[0] for name in self.methods if ":" in name)
        if not bases:
            return []
        base = bases.most_common(1)[0][0]
        return [name for name in self.methods if name.partition(":")[0] == base]

    def statuses(self) -> dict[str, Counter[str]]:
        """Return the numbers of each method's evaluations by status, without baselines."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.methods}
        for run in self.runs:
            counts[self.names[run.run_id]].update(step.status for step in self.steps[run.run_id][1:])
        return counts

    def costs(self) -> dict[str, MethodCost]:
        """Return the total cost of each method's runs."""
        columns = ", ".join(f"SUM({name})" for name in MethodCost._fields[1:])
        costs = {}
        for name in self.methods:
            own = [run.run_id for run in self.runs if self.names[run.run_id] == name]
            rows = [
                row
                for chunk in _chunks(own)
                for row in self.store.query(
                    f"SELECT COUNT(*), {columns} FROM costs WHERE run_id IN ({_marks(chunk)})", chunk
                )
            ]
            costs[name] = MethodCost(
                *(sum(row[at] or 0 for row in rows) for at in range(len(MethodCost._fields)))
            )
        return costs

    def best_run(self, op_id: str) -> RunRecord:
        """Return the run that found the fastest candidate of an operator."""
        own = [run for run in self.runs if run.op_id == op_id]
        return max(own, key=lambda run: (run.best_latency_us is not None, run.speedup, run.run_id))


def read_results(store: ResultsStore, runs: Sequence[RunRecord], reference: str | None = None) -> Results:
    """Read the data of a report about ``runs``.

    A method is named by its variant, followed by model, chip, budget and settings in which the runs differ.

    Args:
        store: their store, which stays open.
        runs: runs.
        reference: method that the others are compared with; by default Best-of-N or, without it, the first.

    Raises:
        MisuseError: there are no runs, none of the reference, or two of one method on one operator with one
            seed.
    """
    if not runs:
        raise MisuseError("expected at least one run to report on, got none; see 'ascend-gym runs list'")
    steps: dict[str, list[PlottedStep]] = {run.run_id: [] for run in runs}
    for chunk in _chunks(list(steps)):
        columns = ", ".join(PlottedStep._fields)
        where = f"WHERE run_id IN ({_marks(chunk)}) ORDER BY run_id, idx"
        for run_id, *values in store.query(f"SELECT run_id, {columns} FROM evaluations {where}", chunk):
            steps[run_id].append(PlottedStep(*values))
    results = Results(store, tuple(runs), method_names(runs, ("model", "chip", "budget")), steps, reference)
    if reference is not None and reference not in results.methods:
        known = ", ".join(results.methods)
        raise MisuseError(f"no run is of the reference {reference!r}; methods with runs: {known}")
    results.comparison(results.methods)  # refuses two runs in one place
    return results


def _chunks(items: Sequence[str]) -> Iterable[list[str]]:
    for at in range(0, len(items), _CHUNK):
        yield list(items[at : at + _CHUNK])


def _marks(items: Sequence[str]) -> str:
    return ", ".join("?" * len(items))

"""Metrics of writing operators from their specification alone: over all tasks that were run, and by category.

Comp@1 is the share of first candidates that build, Pass@1 of those that are correct, Fast_x@1 of those that
are at least x times as fast as the framework calls that the operator's skeleton represents. The denominators
are all tasks that were run: one without a usable answer counts as failed in every metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ascend_gym.core.status import Status
from ascend_gym.report.comparison import NONE, Table
from ascend_gym.report.metrics import Estimate, share
from ascend_gym.sweep.run_records import EvaluationRecord, RunRecord

SUITE = "generate/"
FACTORS = (0.2, 0.8, 1.0)
METRICS = ("Comp@1", "Pass@1", *(f"Fast_{factor:g}@1" for factor in FACTORS))
ALL = "all"
_ALL_OF_OURS = "all of ours"

PAPER: Mapping[str, tuple[float, ...]] = {
    "activation": (100.0, 100.0, 100.0, 80.0, 40.0),
    "loss": (100.0, 85.7, 85.7, 85.7, 85.7),
    "math": (83.3, 83.3, 83.3, 66.7, 66.7),
    "normalization": (100.0, 87.5, 50.0, 37.5, 37.5),
    "optimizer": (100.0, 100.0, 100.0, 100.0, 100.0),
    "reduce": (100.0, 100.0, 100.0, 0.0, 0.0),
    "pooling": (100.0, 66.7, 50.0, 0.0, 0.0),
    ALL: (98.1, 90.4, 82.7, 57.7, 46.2),
}
"""Table 1 of AscendCraft (arXiv 2601.22760): percentages of 52 tasks, on an NPU against eager PyTorch."""

BEYOND_BOUND_US: Mapping[str, Mapping[str, float] | None] = {
    "ours": None,
    "bound": {"elementwise_call_us": 0.0, "combining_call_us": 0.0},
    "device": {"elementwise_call_us": 0.0, "combining_call_us": 9.2},
}
"""Prices of a framework's call: what it takes beyond the bound of its traffic, as fields of ``TargetSheet``.

``ours`` is that of the chip's file: the best hand-written kernels on the simulator. ``device`` is the least
of published task durations on a 910B2 (hicann/cann-bench, float32, 4 to 16 MiB read): sigmoid -0.5 to +0.3 us
at up to 8 MiB, softmax +9.2 us at 8 MiB. docs/ascend_craft.md has all rows, and the figures at every price.
"""


class Categorised(Protocol):
    """What became of a task."""

    @property
    def category(self) -> str:
        """Category of the task."""
        ...


_Outcome = TypeVar("_Outcome", bound=Categorised)


@dataclass(frozen=True)
class FirstCandidate:
    """Outcome of the first candidate for one task, and cost of its run.

    Attributes:
        task: operator.
        category: category of the operator.
        built: whether both sides build.
        factor: latency of the framework calls divided by its own; 0 if it is not correct.
        builds: builds of the whole run without an evaluation.
        evaluations: evaluations charged to the whole run.
        tokens: tokens read and written in the whole run.
    """

    task: str
    category: str
    built: bool
    factor: float
    builds: int = 0
    evaluations: int = 0
    tokens: int = 0

    @property
    def hits(self) -> tuple[bool, ...]:
        """Whether it counts, for each of ``METRICS``."""
        return (self.built, self.factor > 0, *(self.factor >= each for each in FACTORS))


def first_candidate(
    run: RunRecord, category: str, evaluations: Sequence[EvaluationRecord]
) -> FirstCandidate | None:
    """Return the outcome of a run's first candidate; ``None`` if no evaluation was charged yet."""
    first = next((each for each in evaluations if each.idx > 0 and each.charged), None)
    if first is None and not run.finished:
        return None
    built = first is not None and bool(first.usable) and first.status != Status.BUILD_ERROR.value
    latency_us = first.latency_us if first else None
    passes = [one for each in evaluations for one in json.loads(each.origin).get("passes", ())]
    return FirstCandidate(
        task=run.op_id,
        category=category,
        built=built,
        factor=(run.baseline_latency_us or 0.0) / latency_us if latency_us else 0.0,
        builds=sum(each["builds"] for each in passes),
        evaluations=run.evaluations,
        tokens=sum(each.prompt_tokens + each.completion_tokens for each in evaluations),
    )


def metrics_of(candidates: Sequence[FirstCandidate]) -> list[Estimate]:
    """Return each of ``METRICS`` with its 95 % interval; a task counts with the mean of its seeds."""
    tasks = _by_task(candidates)
    return [share([[each.hits[place] for each in task] for task in tasks]) for place, _ in enumerate(METRICS)]


def _by_task(candidates: Sequence[FirstCandidate]) -> list[list[FirstCandidate]]:
    """Return the candidates of each task: of all as many as there are of the task that has fewest."""
    tasks: dict[str, list[FirstCandidate]] = {}
    for each in candidates:
        tasks.setdefault(each.task, []).append(each)
    seeds = min(map(len, tasks.values()))
    return [task[:seeds] for task in tasks.values()]


def category_table(title: str, candidates: Sequence[FirstCandidate]) -> Table:
    """Return the metrics of ``by_category``, with those of the paper for comparison."""
    rows = [_row(name, own) for name, own in by_category(candidates).items()]
    columns = (f"{name} %{', our price' if name.startswith('Fast') else ''}" for name in METRICS)
    return Table(title, ("category", *columns, "paper %"), tuple(rows))


def by_category(outcomes: Sequence[_Outcome]) -> dict[str, list[_Outcome]]:
    """Return the outcomes of each category, then of all tasks that were run.

    ``ALL`` has the tasks of the paper's categories alone, so that it compares with the paper's. If there are
    others, a last entry has those, too.
    """
    found: dict[str, list[_Outcome]] = {}
    for each in sorted(outcomes, key=lambda each: each.category):
        found.setdefault(each.category, []).append(each)
    compared = [each for each in outcomes if each.category in PAPER]
    if compared:
        found[ALL] = compared
    if len(compared) < len(outcomes):
        found[_ALL_OF_OURS] = list(outcomes)
    return found


def meters_table(candidates: Mapping[str, Sequence[FirstCandidate]], runs: int | None = None) -> Table:
    """Return one row per method: metrics over all its tasks, and mean cost of a task.

    Args:
        candidates: first candidates of each method.
        runs: number of runs, of which some may have no candidate yet; that of ``candidates`` if ``None``.
    """
    rows = []
    left_out = sum(map(len, candidates.values())) if runs is None else runs
    for name, own in candidates.items():
        tasks = _by_task(own)
        counted = [each for task in tasks for each in task]
        left_out -= len(counted)
        estimates = [each.text(1, scale=100.0) for each in metrics_of(own)]
        spent = [sum(values) / len(counted) for values in zip(*map(_meters, counted), strict=True)]
        rows.append((name, str(len(tasks)), *estimates, *(f"{each:.1f}" for each in spent)))
    metrics = (f"{name} %{', our price' if name.startswith('Fast') else ''}" for name in METRICS)
    columns = ("method", "tasks", *metrics, "builds", "evaluations", "tokens")
    note = f"; left out, as unfinished or of seeds that not all tasks have: {left_out}" if left_out else ""
    return Table(f"From the specification alone, all tasks, 95 % intervals{note}", columns, tuple(rows))


def by_method(
    names: Mapping[str, str],
    runs: Iterable[tuple[RunRecord, str, Sequence[EvaluationRecord]]],
) -> dict[str, list[FirstCandidate]]:
    """Return the first candidates of each method.

    Args:
        names: displayed name of each run's method, by run id.
        runs: runs on operators without sources, with category and evaluations.
    """
    found: dict[str, list[FirstCandidate]] = {}
    for run, category, evaluations in runs:
        first = first_candidate(run, category, evaluations)
        if first is not None:
            found.setdefault(names[run.run_id], []).append(first)
    return dict(sorted(found.items()))


def _row(name: str, candidates: Sequence[FirstCandidate]) -> tuple[str, ...]:
    tasks = len({each.task for each in candidates})
    paper = " / ".join(f"{each:g}" for each in PAPER[name]) if name in PAPER else NONE
    estimates = (each.text(1, scale=100.0) for each in metrics_of(candidates))
    return (f"{name} ({tasks})", *estimates, paper)


def _meters(candidate: FirstCandidate) -> tuple[int, int, int]:
    return candidate.builds, candidate.evaluations, candidate.tokens

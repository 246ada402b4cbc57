"""Figures of the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ascend_gym.core.best import speedup
from ascend_gym.core.status import Status
from ascend_gym.report.comparison import Comparison
from ascend_gym.report.metrics import geometric_mean
from ascend_gym.report.page.chart import Axis, Chart, Point
from ascend_gym.report.page.results import PlottedStep, Results

# Version 1 of the paper, figure 2: share of its 63 optimised operators by minimum speedup.
PUBLISHED_TAIL = ((1.1, 0.397), (1.2, 0.302), (1.5, 0.190), (2.0, 0.143))
_CURVE_POINTS = 30
_TOP_MARGIN = 1.05


def speedup_distribution(comparison: Comparison, budget: int, methods: Sequence[str]) -> Chart:
    """Return the cumulative distribution of speedups over operators (paper, version 1, figure 2).

    Args:
        comparison: data.
        budget: number of evaluations to consider.
        methods: all methods of the page; the position of a method determines its style in every figure.
    """
    found = {name: _by_operator(comparison.speedups(name, budget)) for name in comparison.methods}
    top = max([2.0, *(max(values) for values in found.values())]) * _TOP_MARGIN
    chart = Chart(
        "speedup-distribution",
        "Speedups over operators",
        f"Share of operators at or below a speedup, budget {budget}. "
        + " ".join(f"{name}: median {float(np.median(values)):.3f}." for name, values in found.items()),
        Axis("speedup over the operator's own sources", 0.99, top, logarithmic=True),
        Axis("share of operators", 0.0, 1.0),
    )
    for name, values in found.items():
        shares = [
            (max(value, chart.x.low), (at + 1) / len(values)) for at, value in enumerate(sorted(values))
        ]
        chart.line([(chart.x.low, 0.0), *shares, (top, 1.0)], methods.index(name), name, steps=True)
    theirs = [(x, 1 - y, f"published: {y:.1%} reach {x}x") for x, y in PUBLISHED_TAIL if x <= top]
    chart.points(theirs, 7, "published, v1 Fig. 2")
    return chart


def budget_curve(comparison: Comparison, budget: int, methods: Sequence[str]) -> Chart:
    """Return the geometric mean over the evaluations spent (paper, version 2, figure 2).

    Args:
        comparison: data.
        budget: number of evaluations to consider.
        methods: as for ``speedup_distribution``.
    """
    budgets = sorted({round(each) for each in np.linspace(0, budget, min(budget + 1, _CURVE_POINTS))})
    means = {
        name: [geometric_mean(comparison.speedups(name, each)) for each in budgets]
        for name in comparison.methods
    }
    top = max([1.05, *(mean.ends[1] for row in means.values() for mean in row)]) * _TOP_MARGIN
    low = min([1.0, *(mean.ends[0] for row in means.values() for mean in row)])  # operators without sources
    chart = Chart(
        "budget-curve",
        "Geometric mean against budget",
        f"Geometric mean of speedups after so many evaluations; bands are 95 % intervals. At {budget}: "
        + " ".join(f"{name} {row[-1].value:.3f}." for name, row in means.items()),
        Axis("evaluations", 0, budget),
        Axis("geometric mean of speedups", low, top),
    )
    for name, row in means.items():
        series = methods.index(name)
        chart.band(
            [(x, mean.ends[0]) for x, mean in zip(budgets, row, strict=True)],
            [(x, mean.ends[1]) for x, mean in zip(budgets, row, strict=True)],
            series,
        )
        chart.line([(x, mean.value) for x, mean in zip(budgets, row, strict=True)], series, name)
    return chart


def status_shares(results: Results) -> Chart:
    """Return the shares of the statuses of each method's evaluations."""
    counts = {name: count for name, count in results.statuses().items() if count.total()}
    seen = [status.value for status in Status if any(count[status.value] for count in counts.values())]
    fine = ", ".join(f"{name} {count['ok'] / count.total():.1%}" for name, count in counts.items())
    chart = Chart(
        "statuses",
        "How evaluations ended",
        f"Shares of evaluations by status. Correct and measured: {fine or 'none'}.",
        Axis("evaluations, %", 0, 100),
        Axis("", 0, max(len(counts), 1), marked=False),
    )
    for row, (name, count) in enumerate(counts.items()):
        bottom = len(counts) - row - 0.9
        begin = 0.0
        for series, status in enumerate(seen):
            end = begin + 100 * count[status] / count.total()
            if end > begin:
                tooltip = f"{name}: {count[status]} {status}"
                chart.bar((begin, bottom), (end, bottom + 0.5), series, tooltip)
            begin = end
        chart.text((0.0, bottom + 0.58), name)
    for series, status in enumerate(seen):
        chart.legend(series, status)
    return chart


def trajectory(results: Results, op_id: str) -> Chart:
    """Return the speedup of every run of an operator, with the stages of the best (version 1, figure 4)."""
    runs = [run for run in results.runs if run.op_id == op_id]
    best = results.best_run(op_id)
    top = max(1.05, best.speedup) * _TOP_MARGIN
    curves = [results.curves[run.run_id].best_us for run in runs]
    low = min([1.0, *(curve[0] / latency_us for curve in curves for latency_us in curve)])
    chart = Chart(
        f"trajectory-{op_id.replace('/', '-')}",
        f"{op_id}: best speedup so far",
        f"Best speedup of each run after so many evaluations. Fastest: {results.names[best.run_id]} "
        f"with seed {best.seed}, {best.speedup:.3f}.",
        Axis("evaluations", 0, max(run.budget for run in runs)),
        Axis("speedup", low, top),
    )
    stages = list(stage_bands(results.steps[best.run_id]))
    for shade, (low, high, _) in enumerate(stages):
        chart.column(low, high, shade)
    labelled = set()
    for run, curve in zip(runs, curves, strict=True):
        name = results.names[run.run_id]
        points: list[Point] = [(at, curve[0] / latency_us) for at, latency_us in enumerate(curve)]
        chart.line(
            _corners(points), results.methods.index(name), "" if name in labelled else name, steps=True
        )
        labelled.add(name)
    own, *others = results.steps[best.run_id]
    jumps = [
        (
            step.spent_evaluations,
            speedup(own.latency_us, step.latency_us) or 1.0,
            f"{step.kind}: {step.idx}",
        )
        for step in others
        if step.improved
    ]
    chart.points(jumps, results.methods.index(results.names[best.run_id]))
    return chart


def stage_bands(steps: Sequence[PlottedStep]) -> Iterator[tuple[int, int, str]]:
    """Yield first and last evaluation, and name, of each stage of a run, if its method has stages."""
    start = 0
    current: str | None = None
    for step in steps[1:]:
        if step.stage != current:
            if current is not None:
                yield start, step.spent_evaluations - 1, current
            start, current = max(step.spent_evaluations - 1, 0), step.stage
    if current is not None:
        yield start, steps[-1].spent_evaluations, current


def landscape(
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]], labels: Sequence[str], clusters: int
) -> Chart:
    """Return texts by similarity: projected to two dimensions, coloured by cluster (version 1, figure 3).

    Args:
        vectors: embeddings of shape (texts, dimensions).
        labels: one label per text.
        clusters: number of clusters.
    """
    flat = principal_components(vectors)
    groups = k_means(vectors.astype(np.float64), clusters)
    low, high = flat.min(axis=0), flat.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9)
    chart = Chart(
        "experience-landscape",
        "Landscape of the experience bank",
        f"{len(labels)} pieces of experience by likeness of title and description: principal components of "
        f"their embeddings, coloured by {groups.max() + 1} k-means clusters.",
        Axis("first component", float(low[0] - margin[0]), float(high[0] + margin[0])),
        Axis("second component", float(low[1] - margin[1]), float(high[1] + margin[1])),
    )
    for group in range(int(groups.max()) + 1):
        own = [at for at in range(len(labels)) if groups[at] == group]
        common = max(
            {labels[at] for at in own}, key=lambda label: (sum(labels[at] == label for at in own), label)
        )
        chart.points(
            [(float(flat[at, 0]), float(flat[at, 1]), labels[at]) for at in own],
            group,
            f"{common} ({len(own)})",
        )
    return chart


def principal_components(vectors: np.ndarray) -> np.ndarray:
    """Return the first two principal components, of shape (rows, 2), each with a positive extreme."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(vectors), 2))
    width = min(2, left.shape[1])
    flat[:, :width] = left[:, :width] * scale[:width]
    signs = np.sign(flat[np.abs(flat).argmax(axis=0), [0, 1]])
    return flat * np.where(signs == 0, 1.0, signs)


def k_means(rows: np.ndarray, clusters: int) -> np.ndarray:
    """Return the cluster of each row, shape ``(rows,)``, numbered from 0 in order of first appearance.

    Lloyd's algorithm with distant initial centres: the first row, then always the row farthest
    from the centres so far. The result depends only on the rows.
    """
    centres = rows[[0]]
    while len(centres) < min(clusters, len(np.unique(rows, axis=0))):
        distances = ((rows[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1)
        centres = np.concatenate([centres, rows[[int(distances.argmax())]]])
    groups = np.full(len(rows), -1)
    while True:
        nearest = ((rows[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        if (nearest == groups).all():
            break
        groups = nearest
        centres = np.stack(
            [
                rows[groups == at].mean(axis=0) if (groups == at).any() else centres[at]
                for at in range(len(centres))
            ]
        )
    order = {group: at for at, group in enumerate(dict.fromkeys(groups.tolist()))}
    return np.array([order[group] for group in groups.tolist()])


def _by_operator(speedups: Sequence[Sequence[float]]) -> list[float]:
    """Return the geometric mean over seeds for each operator."""
    return [math.exp(sum(map(math.log, row)) / len(row)) for row in speedups]


def _corners(points: Sequence[Point]) -> list[Point]:
    """Return the points at which the height changes, and both ends."""
    inner = [point for before, point in pairwise(points[:-1]) if before[1] != point[1]]
    return [*points[:1], *inner, *points[1:][-1:]]

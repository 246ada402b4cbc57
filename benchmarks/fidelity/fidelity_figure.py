"""Draws simulated against measured times, on logarithmic axes, by group, from three benchmarks.

python benchmarks/fidelity/fidelity_figure.py --samples FILE --operators FILE --verdicts FILE --out FILE.svg
"""

from __future__ import annotations

import argparse
import html
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import device_verdicts

SIZE, MARGIN, LEGEND = 520, 56, 250  # pixels
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")


@dataclass(frozen=True)
class Point:
    """A time in microseconds, measured and simulated, and the group that it belongs to."""

    group: str
    name: str
    measured_us: float
    simulated_us: float


def sample_points(document: dict[str, Any]) -> Iterator[Point]:
    """Yield the task durations of ``fidelity.py --json``, grouped by sample."""
    for report in document.values():
        for row in report["rows"]:
            if row["metric"] == "Task Duration" and row["simulated"] is not None:
                group = row["case_id"].partition("/")[0]
                yield Point(group, row["case_id"], row["measured"], row["simulated"])


def operator_points(document: dict[str, Any]) -> Iterator[Point]:
    """Yield the rows of ``fidelity_operators.py --json``, grouped by operator and element type."""
    for row in document["rows"]:
        group = f"{row['operator']} {row['dtype']}"
        yield Point(group, f"{group} {row['shapes']}", row["measured_us"], row["simulated_us"])


def verdict_points(path: Path) -> Iterator[Point]:
    """Yield the times of generated kernels that ``device_verdicts.py`` compares; fitted ones apart."""
    for row in device_verdicts.compared(device_verdicts.load(path)):
        group = "generated kernels, fitted" if row.use == "fitted" else "generated kernels"
        name = f"{row.operator}, case {row.case}"
        yield Point(group, name, float(row.device) / row.share, float(row.here))


class Axis:
    """One logarithmic scale for both axes: decades around all points."""

    def __init__(self, points: Sequence[Point]) -> None:
        times = [time for point in points for time in (point.measured_us, point.simulated_us)]
        self.low, self.high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(self, time_us: float) -> float:
        """Return pixels from the origin."""
        return (math.log10(time_us) - self.low) / (self.high - self.low) * SIZE

    def x(self, time_us: float) -> float:
        """Return the abscissa of a measured time."""
        return MARGIN + self.at(time_us)

    def y(self, time_us: float) -> float:
        """Return the ordinate of a simulated time."""
        return MARGIN + SIZE - self.at(time_us)


def figure(points: Sequence[Point]) -> str:
    """Return the figure as SVG.

    Raises:
        ValueError: there are no points.
    """
    if not points:
        raise ValueError("a figure needs at least one row with a measured and a simulated time")
    axis = Axis(points)
    groups = sorted({point.group for point in points})
    width, height = SIZE + 2 * MARGIN + LEGEND, max(SIZE, 18 * len(groups)) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_frame(axis),
        *(mark for point in points for mark in _mark(axis, point, groups.index(point.group))),
        *(line for index, group in enumerate(groups) for line in _legend(index, group, points)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, anchor: str, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(text)}</text>'


def _frame(axis: Axis) -> Iterator[str]:
    low, high = 10.0**axis.low, 10.0**axis.high
    corners = (
        (low, low * device_verdicts.NEAR[0]),
        (high, high * device_verdicts.NEAR[0]),
        (high, high * device_verdicts.NEAR[1]),
        (low, low * device_verdicts.NEAR[1]),
    )
    band = " ".join(f"{axis.x(x):.1f},{axis.y(y):.1f}" for x, y in corners)
    plot = f'x="{MARGIN}" y="{MARGIN}" width="{SIZE}" height="{SIZE}"'
    yield f'<clipPath id="plot"><rect {plot}/></clipPath>'
    yield f'<polygon points="{band}" fill="#eeeeee" clip-path="url(#plot)"/>'
    ends = f"M{axis.x(low):.1f} {axis.y(low):.1f}L{axis.x(high):.1f} {axis.y(high):.1f}"
    yield f'<path d="{ends}" stroke="#999999"/>'
    yield f'<rect {plot} fill="none" stroke="black"/>'
    for decade in range(axis.low, axis.high + 1):
        time_us = 10.0**decade
        yield _text(axis.x(time_us), MARGIN + SIZE + 16, "middle", f"{time_us:g}")
        yield _text(MARGIN - 6, axis.y(time_us) + 4, "end", f"{time_us:g}")
    middle = MARGIN + SIZE / 2
    yield _text(middle, MARGIN + SIZE + 36, "middle", "measured, us")
    yield _text(14, middle, "middle", "simulated, us", f' transform="rotate(-90 14 {middle:.1f})"')
    yield _text(
        MARGIN,
        MARGIN - 10,
        "start",
        f"grey: {device_verdicts.NEAR[0]:g} to {device_verdicts.NEAR[1]:g} times the measured time",
    )


def _mark(axis: Axis, point: Point, group: int) -> Iterator[str]:
    ratio = point.simulated_us / point.measured_us
    yield (
        f'<circle cx="{axis.x(point.measured_us):.1f}" cy="{axis.y(point.simulated_us):.1f}" r="4" '
        f'fill="{COLOURS[group % len(COLOURS)]}" fill-opacity="{0.85 if group < len(COLOURS) else 0.4}">'
        f"<title>{html.escape(point.name)}: {ratio:.2f}</title></circle>"
    )


def _legend(index: int, group: str, points: Sequence[Point]) -> Iterator[str]:
    count = sum(point.group == group for point in points)
    x, y = MARGIN + SIZE + 20, MARGIN + 18 * index + 8
    yield f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{COLOURS[index % len(COLOURS)]}"/>'
    yield _text(x + 10, y, "start", f"{group} ({count})")


def main() -> None:
    """Read the documents that there are, and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=Path, help="document of fidelity.py --json")
    parser.add_argument("--operators", type=Path, help="document of fidelity_operators.py --json")
    parser.add_argument(
        "--verdicts", type=Path, help="rows of generated kernels, such as device_verdicts.csv"
    )
    parser.add_argument("--out", type=Path, required=True, help="SVG file to write")
    arguments = parser.parse_args()
    points: list[Point] = []
    for path, read in ((arguments.samples, sample_points), (arguments.operators, operator_points)):
        if path is not None:
            points += read(json.loads(path.read_text(encoding="utf-8")))
    if arguments.verdicts is not None:
        points += verdict_points(arguments.verdicts)
    arguments.out.write_text(figure(points), encoding="utf-8")


if __name__ == "__main__":
    main()

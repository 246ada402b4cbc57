"""Draws simulated against measured times, on logarithmic axes, by group: rows held out are rings."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SIZE, MARGIN, LEGEND = 520, 56, 250  # pixels
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")


NEAR = (0.8, 1.25)


@dataclass(frozen=True)
class Point:
    """A time in microseconds, measured and simulated, its group, and whether fits must not see it."""

    group: str
    name: str
    measured_us: float
    simulated_us: float
    held_out: bool


def points_of(rows: Sequence[dict[str, Any]]) -> list[Point]:
    """Return the points of rows of ``fit_prices.py --write``."""
    names = ("group", "name", "measured_us", "simulated_us", "held_out")
    return [Point(*(row[name] for name in names)) for row in rows]


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
        (low, low * NEAR[0]),
        (high, high * NEAR[0]),
        (high, high * NEAR[1]),
        (low, low * NEAR[1]),
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
        f"grey: {NEAR[0]:g} to {NEAR[1]:g} times the measured time",
    )


def _mark(axis: Axis, point: Point, group: int) -> Iterator[str]:
    ratio = point.simulated_us / point.measured_us
    colour = COLOURS[group % len(COLOURS)]
    yield (
        f'<circle cx="{axis.x(point.measured_us):.1f}" cy="{axis.y(point.simulated_us):.1f}" r="4" '
        f'fill="{"none" if point.held_out else colour}" stroke="{colour}" '
        f'opacity="{0.85 if group < len(COLOURS) else 0.4}">'
        f"<title>{html.escape(point.name)}: {ratio:.2f}</title></circle>"
    )


def _legend(index: int, group: str, points: Sequence[Point]) -> Iterator[str]:
    count = sum(point.group == group for point in points)
    x, y = MARGIN + SIZE + 20, MARGIN + 18 * index + 8
    yield f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{COLOURS[index % len(COLOURS)]}"/>'
    yield _text(x + 10, y, "start", f"{group} ({count})")

"""Charts as SVG: axes, lines, bands, points and bars, with a text alternative.

Colours are CSS classes (``s0`` to ``s7`` for series), defined for light and dark mode by the page's style
sheet; a standalone chart contains its own. Lines also differ by dashes and markers, for readers
who cannot distinguish the colours and for prints without them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 440, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 14, 40
_LEGEND_CHAR_WIDTH = 8.4  # of the larger writing on narrow screens
SERIES_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#0e7490", "#57606a")
SERIES = len(SERIES_COLOURS)
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 5")
# Outlines around a centre, in units of the marker's radius; "o" is a circle.
_MARKERS = (
    *("o", "M-1 -1H1V1H-1Z", "M0 -1.2L1.1 0.9H-1.1Z", "M0 -1.3L1.3 0L0 1.3L-1.3 0Z"),
    *("M0 1.2L1.1 -0.9H-1.1Z", "M-1 -1L1 1M-1 1L1 -1", "M-1.2 0H1.2M0 -1.2V1.2"),
)
_MARKER_RADIUS = 3.5
_MARKERS_OF_A_LINE = 5
_LOG_TICKS = (0.1, 0.2, 0.5, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)

_LINE = "line of "

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        label: quantity and unit.
        low: value at the beginning.
        high: value at the end.
        logarithmic: whether equal distances are equal factors.
        marked: whether it has tick labels.
    """

    label: str
    low: float
    high: float
    logarithmic: bool = False
    marked: bool = True

    def share(self, value: float) -> float:
        """Return the position of ``value``, from 0 at the beginning to 1 at the end."""
        low, high, value = (self._scaled(each) for each in (self.low, self.high, value))
        return (value - low) / (high - low) if high > low else 0.0

    def ticks(self) -> list[float]:
        """Return the values of the ticks."""
        if not self.marked:
            return []
        if self.logarithmic:
            inside = [tick for tick in _LOG_TICKS if self.low <= tick <= self.high]
            return (
                inside if len(inside) <= 7 else [tick for tick in inside if tick in (0.1, 1, 2, 5, 10, 100)]
            )
        step = _nice_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value


@dataclass
class Chart:
    """A chart under construction; bands and shades are below the grid, lines and points above.

    Attributes:
        name: file name without suffix, and id in the page.
        title: title.
        description: text alternative of one or two sentences with the main figures.
        x: horizontal axis.
        y: vertical axis.
    """

    name: str
    title: str
    description: str
    x: Axis
    y: Axis
    _below: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _legend: list[tuple[str, str]] = field(default_factory=list)

    def line(self, points: Sequence[Point], series: int, label: str = "", *, steps: bool = False) -> None:
        """Draw a line through ``points``, with markers.

        Args:
            points: points in units of the axes.
            series: number of the series, which determines colour, dashes and marker.
            label: legend entry; none if empty.
            steps: whether each value holds until the next.
        """
        if not points:
            return
        dash = _dashes(series)
        self._parts.append(f'<path class="line s{series % SERIES}"{dash} d="{self._path(points, steps)}"/>')
        self._parts += [_marker(series, *self._at(point)) for point in _marked(points, series)]
        if label:
            self._legend.append((f"{_LINE}{series}", label))

    def band(self, low: Sequence[Point], high: Sequence[Point], series: int) -> None:
        """Fill the area between two lines, below all lines."""
        if low:
            outline = self._path([*high, *reversed(low)], steps=False)
            self._below.append(f'<path class="band s{series % SERIES}" d="{outline}Z"/>')

    def points(self, points: Iterable[tuple[float, float, str]], series: int, label: str = "") -> None:
        """Draw dots, each with a tooltip.

        Args:
            points: points in units of the axes, with their tooltips.
            series: number of the series, which determines the colour.
            label: legend entry; none if empty.
        """
        for x, y, text in points:
            at_x, at_y = self._at((x, y))
            self._parts.append(
                f'<circle class="dot s{series % SERIES}" cx="{at_x}" cy="{at_y}" r="3.5">'
                f"<title>{escape(text)}</title></circle>"
            )
        if label:
            self._legend.append((f"dot s{series % SERIES}", label))

    def column(self, low: float, high: float, shade: int) -> None:
        """Shade the part of the chart between two values of the horizontal axis."""
        left, right = self._at((low, self.y.low))[0], self._at((high, self.y.low))[0]
        height = HEIGHT - _TOP - _BOTTOM
        self._below.insert(
            0,
            f'<rect class="shade{shade % 2}" x="{left}" y="{_TOP}" '
            f'width="{round(right - left, 1)}" height="{height}"/>',
        )

    def bar(self, low: Point, high: Point, series: int, text: str) -> None:
        """Fill a rectangle between two corners.

        Args:
            low: lower left corner, in units of the axes.
            high: upper right corner.
            series: number of the series, which determines the colour.
            text: tooltip.
        """
        left, bottom = self._at(low)
        right, top = self._at(high)
        self._parts.append(
            f'<rect class="bar s{series % SERIES}" x="{left}" y="{top}" width="{round(right - left, 1)}" '
            f'height="{round(bottom - top, 1)}"><title>{escape(text)}</title></rect>'
        )

    def text(self, at: Point, text: str) -> None:
        """Write ``text`` starting at a point."""
        x, y = self._at(at)
        self._parts.append(f'<text class="tick" x="{x}" y="{y}">{escape(text)}</text>')

    def legend(self, series: int, label: str) -> None:
        """Add an entry for bars to the legend."""
        self._legend.append((f"bar s{series % SERIES}", label))

    def rule(self, y: float) -> None:
        """Draw a dashed line at a value of the vertical axis."""
        at_y = self._at((self.x.low, y))[1]
        self._parts.append(f'<line class="rule" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at_y}" y2="{at_y}"/>')

    def svg(self, *, standalone: bool = False) -> str:
        """Return the chart as SVG; ``standalone`` as a file of its own, in colours for white paper."""
        legend, height = self._legend_rows()
        head = 'xmlns="http://www.w3.org/2000/svg" ' if standalone else ""
        return (
            f'<svg {head}id="{self.name}" role="img" viewBox="0 0 {WIDTH} {HEIGHT + height}" '
            f'aria-labelledby="{self.name}-t {self.name}-d">'
            f'<title id="{self.name}-t">{escape(self.title)}</title>'
            f'<desc id="{self.name}-d">{escape(self.description)}</desc>'
            f"{STANDALONE_STYLE if standalone else ''}{''.join(self._below)}{self._frame()}"
            f"{''.join(self._parts)}{legend}</svg>"
        )

    def _path(self, points: Sequence[Point], steps: bool) -> str:
        first, *others = [self._at(point) for point in points]
        path = f"M{first[0]} {first[1]}"
        for x, y in others:
            path += f"H{x}V{y}" if steps else f"L{x} {y}"
        return path

    def _at(self, point: Point) -> Point:
        x = _LEFT + self.x.share(point[0]) * (WIDTH - _LEFT - _RIGHT)
        y = HEIGHT - _BOTTOM - self.y.share(point[1]) * (HEIGHT - _TOP - _BOTTOM)
        return round(x, 1), round(y, 1)

    def _frame(self) -> str:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        parts = []
        for tick in self.x.ticks():
            x = self._at((tick, self.y.low))[0]
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
            parts.append(f'<text class="tick" x="{x}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>')
        for tick in self.y.ticks():
            y = self._at((self.x.low, tick))[1]
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="{_LEFT - 5}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
        middle_x, middle_y = (_LEFT + right) / 2, (_TOP + bottom) / 2
        parts.append(
            f'<text class="axis" x="{middle_x}" y="{bottom + 31}" text-anchor="middle">'
            f"{escape(self.x.label)}</text>"
            f'<text class="axis" x="12" y="{middle_y}" text-anchor="middle" '
            f'transform="rotate(-90 12 {middle_y})">{escape(self.y.label)}</text>'
        )
        return "".join(parts)

    def _legend_rows(self) -> tuple[str, int]:
        """Return the legend below the axes, and its height in pixels."""
        parts, x, y = [], float(_LEFT), HEIGHT + 8.0
        for mark, label in self._legend:
            width = 24 + _LEGEND_CHAR_WIDTH * len(label)
            if x > _LEFT and x + width > WIDTH:
                x, y = float(_LEFT), y + 16
            parts.append(_legend_mark(mark, x, y))
            parts.append(f'<text class="tick" x="{x + 18}" y="{y + 4}">{escape(label)}</text>')
            x = round(x + width, 1)
        return "".join(parts), int(y - HEIGHT) + 8 if parts else 0


def _legend_mark(mark: str, x: float, y: float) -> str:
    """Return the symbol of a legend entry: a dot, a bar or a line."""
    if mark.startswith("dot"):
        return f'<circle class="{mark}" cx="{x + 7}" cy="{y}" r="3.5"/>'
    if mark.startswith("bar"):
        return f'<rect class="{mark}" x="{x + 2}" y="{y - 5}" width="10" height="10"/>'
    series = int(mark.removeprefix(_LINE))
    shape = f'class="line s{series % SERIES}"{_dashes(series)}'
    line = f'<line {shape} x1="{x - 6}" x2="{x + 14}" y1="{y}" y2="{y}"/>'
    return line + _marker(series, x + 4, y)


def _dashes(series: int) -> str:
    """Return the dash attribute of a series; empty for a solid line."""
    dash = _DASHES[series % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(series: int, x: float, y: float) -> str:
    """Return the marker of a series at a position of the drawing."""
    shape = _MARKERS[series % len(_MARKERS)]
    if shape == "o":
        return f'<circle class="mark s{series % SERIES}" cx="{x}" cy="{y}" r="{_MARKER_RADIUS}"/>'
    return (
        f'<path class="mark s{series % SERIES}" transform="translate({x} {y}) scale({_MARKER_RADIUS})" '
        f'd="{shape}"/>'
    )


def _marked(points: Sequence[Point], series: int) -> list[Point]:
    """Return the points of a line that get markers: the last and some others, different for each series."""
    step = max(1, math.ceil(len(points) / _MARKERS_OF_A_LINE))
    return [*points[series % step : -1 : step], points[-1]]


def _nice_step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not below ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


STANDALONE_STYLE = (
    "<style>svg{background:#fff;font-family:sans-serif}.grid{stroke:#d8dee4}"
    ".rule{stroke:#57606a;stroke-dasharray:4 3}"
    ".tick,.axis{font-size:12px;fill:#24292f}.line{fill:none;stroke-width:2}.band{opacity:.12;stroke:none}"
    ".mark{stroke-width:1.5;vector-effect:non-scaling-stroke}"
    ".shade0{fill:#f6f8fa}.shade1{fill:#eaeef2}"
    + "".join(
        f".line.s{index}{{stroke:{colour}}}.mark.s{index}{{stroke:{colour};fill:{colour}}}.band.s{index},.dot.s{index},.bar.s{index}{{fill:{colour}}}"
        for index, colour in enumerate(SERIES_COLOURS)
    )
    + "</style>"
)

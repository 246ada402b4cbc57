"""Programs for windows over the last one to three dimensions, with borders.

A unit is one row of the output, cut into tiles. The rows of the input that its windows reach are combined
element by element; those beyond a border are left out. What lies side by side is then gathered: each column
of the window is one gather, in which what lies beyond a border finds the neutral element.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.ascend_craft.synthesis.graph import Graph, NotCoveredError, Number
from agents.ascend_craft.synthesis.instructions import COMBINE, NEUTRAL
from agents.ascend_craft.synthesis.writer import CORE_LIMIT, Tensors, shorter

_NAMES = ("depth", "height", "width")
_MARGIN = 64  # elements before a row, into which windows reach beyond the left border


def pooling_program(graph: Graph, tensors: Tensors) -> str | None:
    """Return a program if the graph is one reduction of windows of an input; ``None`` if it has no windows.

    Raises:
        NotCoveredError: there is more than that.
    """
    (name, root), *others = graph.outputs.items()
    while root.op == "as":
        root = root.args[0]
    if root.op != "pool":
        return None
    source = root.args[0]
    if others or source.op != "input" or tensors.dtypes[name] != "f32":
        raise NotCoveredError("windows of something computed, or computations on what they give")
    kind, windows, fill = root.extra
    mode = "sum" if kind == "mean" else kind
    if kind not in ("max", "mean", "sum", "min"):
        raise NotCoveredError(f"the {kind} of windows")
    return _Pool(source.extra, name, mode, kind == "mean", windows, fill, len(source.dims)).text(tensors)


class _Pool:
    def __init__(
        self,
        x: str,
        y: str,
        mode: str,
        mean: bool,
        windows: Sequence[Sequence[Number]],
        fill: float,
        rank: int,
    ) -> None:
        self._x, self._y, self._mode, self._mean, self._rank = x, y, mode, mean, rank
        self._windows = windows
        neutral = float(NEUTRAL[mode])
        if mode == "sum" and fill != 0.0:
            raise NotCoveredError("sums of windows padded by another number than 0")
        infinite = mode != "sum" and fill in (float("-inf"), float("inf"))
        padded = any(n.value for window in windows for n in window[2:])
        if mode != "sum" and padded and not infinite:
            raise NotCoveredError("extremes of windows padded by a finite number")
        self._neutral = repr(neutral)

    def text(self, tensors: Tensors) -> str:
        """Return the program."""
        axes = _NAMES[3 - len(self._windows) :]
        host = [f"def host({', '.join(f'{n}: {t}' for n, t in tensors.attributes.items())}):"]
        host += self._host(axes)
        scalars = [line.split(" = ")[0].strip() for line in host[1:]]
        host.append(f"    launch(cores=min(min(vec_cores(), {CORE_LIMIT}), units))")
        whole = [name for name in scalars if name not in ("units", "scale", "span_limit", "reach")]
        given = [
            f"{self._x}: gm[f32]",
            f"{self._y}: out[f32]",
            *(f"{name}: i32" for name in (*whole, "units")),
        ]
        given += ["scale: f32"] if self._mean else []
        return "\n".join([*host, "", "", f"def kernel({', '.join(given)}):", *self._kernel(axes), ""])

    def _host(self, axes: tuple[str, ...]) -> list[str]:
        first = self._rank - len(axes)
        lines = []
        for place, (axis, window) in enumerate(zip(axes, self._windows, strict=True)):
            kernel, stride, before, _ = (_text(each) for each in window)
            lines += [
                f"    {axis} = dim({self._x}, {first + place})",
                f"    out_{axis} = dim({self._y}, {first + place})",
                f"    kernel_{axis} = {kernel}",
                f"    stride_{axis} = {stride}",
                f"    before_{axis} = {before}",
            ]
        lead = " * ".join(f"dim({self._x}, {place})" for place in range(first)) or "1"
        lines += [
            f'    tile_limit = knob("tile_limit", 2048, {shorter(2048)})',
            "    span_limit = 12288",
            "    reach = span_limit // stride_width // 8 * 8",
            "    tile = max(8, min(align(out_width, 8), tile_limit, reach))",
            "    span = align(tile * stride_width + kernel_width, 64)",
            "    pieces = ceil_div(out_width, tile)",
            f"    lead = {lead}",
            f"    units = {' * '.join(['lead', *(f'out_{axis}' for axis in axes[:-1]), 'pieces'])}",
        ]
        if self._mean:
            count = " * ".join(f"kernel_{axis}" for axis in axes)
            lines.append(f"    scale = 1.0 / ({count})")
        return lines

    def _kernel(self, axes: tuple[str, ...]) -> list[str]:
        op = COMBINE[self._mode]
        body = [
            "row = alloc_ub(span, f32)",
            f"wide = alloc_ub(span + {2 * _MARGIN}, f32)",
            "taken = alloc_ub(tile, f32)",
            "places = alloc_ub(tile, i32)",
            "result = alloc_ub(tile, f32)",
            "with compute():",
            "    arange(places, 0, tile)",
            "    muls(places, places, 4 * stride_width, tile)",
            "first, count = share(units)",
            "for unit in range(first, first + count):",
            "    at = (unit % pieces) * tile",
            "    n = min(tile, out_width - at)",
            "    rest0 = unit // pieces",
            *self._decode(axes),
            "    left = at * stride_width - before_width",
            "    begin = max(0, left)",
            "    end = min(width, left + (n - 1) * stride_width + kernel_width)",
            "    with compute():",
            f"        fill(wide, {self._neutral}, span + {2 * _MARGIN})",
        ]
        indent = "    "
        for axis in axes[:-1]:
            low = f"out_at_{axis} * stride_{axis} - before_{axis}"
            body.append(f"{indent}for in_{axis} in range(max(0, {low}), min({axis}, {low} + kernel_{axis})):")
            indent += "    "
        at = "lead_at"
        for axis in axes[:-1]:
            at = f"({at} * {axis} + in_{axis})"
        body += [
            f"{indent}if begin < end:",
            f"{indent}    with copyin():",
            f"{indent}        load(row, {self._x}[{at} * width + begin], end - begin)",
            f"{indent}    with compute():",
            f"{indent}        {op}(wide[{_MARGIN}], wide[{_MARGIN}], row, end - begin)",
            "    with compute():",
            f"        fill(result, {self._neutral}, n)",
            "        for column in range(0, kernel_width):",
            f"            gather(taken, wide, places, 4 * ({_MARGIN} + left - begin + column), n)",
            f"            {op}(result, result, taken, n)",
            *(["        muls(result, result, scale, n)"] if self._mean else []),
            "    with copyout():",
            f"        store({self._y}[{self._out(axes)} * out_width + at], result, n)",
        ]
        return [f"    {line}" for line in body]

    def _decode(self, axes: tuple[str, ...]) -> list[str]:
        lines = []
        for place, axis in enumerate(reversed(axes[:-1])):
            lines += [
                f"    out_at_{axis} = rest{place} % out_{axis}",
                f"    rest{place + 1} = rest{place} // out_{axis}",
            ]
        return [*lines, f"    lead_at = rest{len(axes) - 1}"]

    def _out(self, axes: tuple[str, ...]) -> str:
        at = "lead_at"
        for axis in axes[:-1]:
            at = f"({at} * out_{axis} + out_at_{axis})"
        return at


def _text(number: Number) -> str:
    return number.text

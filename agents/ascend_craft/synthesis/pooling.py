"""Programs for windows over the last one to three dimensions, with borders.

A unit is a block of up to 16 rows of the output. The rows of the input that its windows reach are copied at
once; what lies beyond the upper and lower border is filled with what decides nothing. Whole rows are combined
down the windows first. Transposed, the 16 rows are lanes: neighbours in a row lie 16 elements apart, on
boundaries of 32 bytes, so that windows are combined by plain instructions on the whole block, and every
stride-th column is transposed back. Borders on the left and right are columns that decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.ascend_craft.synthesis.graph import Graph, NotCoveredError, Number
from agents.ascend_craft.synthesis.instructions import COMBINE, NEUTRAL
from agents.ascend_craft.synthesis.writer import CORE_LIMIT, Tensors, shorter

_NAMES = ("depth", "height", "width")
_ROOM = 8192  # floats of a block of rows
_UB_FLOATS = 45000  # of the unified buffer, without what is small
_ROWS = 16


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
        self._x, self._y, self._mode, self._mean = x, y, mode, mean
        self._windows, self._first = windows, rank - len(windows)
        neutral = float(NEUTRAL[mode])
        if mode == "sum" and fill != 0.0:
            raise NotCoveredError("sums of windows padded by another number than 0")
        infinite = mode != "sum" and fill in (float("-inf"), float("inf"))
        padded = any(n.value for window in windows for n in window[2:])
        if mode != "sum" and padded and not infinite:
            raise NotCoveredError("extremes of windows padded by a finite number")
        self._neutral = repr(neutral)
        self._axes = _NAMES[3 - len(windows) :]
        self._high, self._deep = "height" in self._axes, "depth" in self._axes

    def text(self, tensors: Tensors) -> str:
        """Return the program."""
        host = [f"def host({', '.join(f'{n}: {t}' for n, t in tensors.attributes.items())}):"]
        host += [f"    {line}" for line in self._host()]
        body = [*self._buffers(), *self._units()]
        whole = [line.split(" = ")[0].strip() for line in host[1:]]
        whole = [name for name in whole if name != "scale" and re.search(rf"\b{name}\b", " ".join(body))]
        host.append("    launch(cores=ceil_div(units, ceil_div(units, some)))")
        given = [f"{self._x}: gm[f32]", f"{self._y}: out[f32]", *(f"{name}: i32" for name in whole)]
        given += ["scale: f32"] if self._mean else []
        lines = [f"    {line}" for line in body]
        return "\n".join([*host, "", "", f"def kernel({', '.join(given)}):", *lines, ""])

    def _host(self) -> list[str]:
        lines = []
        for place, (axis, window) in enumerate(zip(self._axes, self._windows, strict=True), self._first):
            kernel, stride, before, _ = (each.text for each in window)
            lines += [
                f"{axis} = dim({self._x}, {place})",
                f"out_{axis} = dim({self._y}, {place})",
                f"kernel_{axis} = {kernel}",
                f"stride_{axis} = {stride}",
                f"before_{axis} = {before}",
            ]
        lead = " * ".join(f"dim({self._x}, {place})" for place in range(self._first)) or "1"
        tall = "tall"
        if self._high:
            lines.append(f"lead = {lead}")
            tall = "((tall - 1) * stride_height + kernel_height)"
        else:  # the rows themselves are what a block has several of
            lines.append(f"out_height = {lead}")
        outer = "lead * out_depth" if self._deep else "lead" if self._high else "1"
        blocks = 6 + self._high + self._deep
        lines += [
            f"groups = ceil_div(out_height, {_ROWS})",
            "tall = ceil_div(out_height, groups)",
            f"reached = {tall}",
            f'room = min(knob("room", {_ROOM}, {shorter(_ROOM)}), {_UB_FLOATS} // {blocks})',
            f"fitting = min(room // reached, room // {_ROWS}) - kernel_width - {_ROWS}",
            "widest = max(1, fitting // stride_width)",
            f"tile = out_width if out_width <= widest else max({_ROWS}, widest // {_ROWS} * {_ROWS})",
            "pieces = ceil_div(out_width, tile)",
            "reach = (tile - 1) * stride_width + kernel_width",
            f"block = reached * align(min(width, reach), 8) + {_ROWS}",
            f"windows = {_ROWS} * ((align(tile, {_ROWS}) - 1) * stride_width + 1)",
            f"area = windows + {_ROWS} * (kernel_width + {_ROWS})",
            f"units = {outer} * groups * pieces",
            f"some = min(min(vec_cores(), {CORE_LIMIT}), units)",
        ]
        if self._mean:
            count = " * ".join(f"kernel_{axis}" for axis in self._axes)
            lines.append(f"scale = 1.0 / ({count})")
        return lines

    def _buffers(self) -> list[str]:
        sizes = {"x_in": "block"}
        sizes |= {"gathered": "block"} if self._deep else {}
        sizes |= {"combined": "block"} if self._high else {}
        sizes |= {"lanes": "area", "best": "windows", "result": f"{_ROWS} * align(tile, {_ROWS})"}
        return [f"{name} = alloc_ub({size}, f32)" for name, size in sizes.items()]

    def _units(self) -> list[str]:
        depth = ["out_at = rest % out_depth", "lead_at = rest // out_depth"] if self._deep else []
        down = ["lead_at = rest"] if self._high else []
        rows = [
            "upper = top * stride_height - before_height",
            "from_row = max(0, upper)",
            "rows = min(height, upper + (high - 1) * stride_height + kernel_height) - from_row",
            "above = (from_row - upper) * pitch",
            "wanted = ((high - 1) * stride_height + kernel_height) * pitch",
        ]
        body = [
            "at = (unit % pieces) * tile",
            "n = min(tile, out_width - at)",
            "top = ((unit // pieces) % groups) * tall",
            "high = min(tall, out_height - top)",
            *(["rest = (unit // pieces) // groups"] if self._high else []),
            *(depth or down),
            "left = at * stride_width - before_width",
            "begin = max(0, left)",
            "columns = min(width, left + (n - 1) * stride_width + kernel_width) - begin",
            "pitch = align(columns, 8)",
            *(rows if self._high else []),
            *(self._slices() if self._deep else self._rows()),
            "with compute():",
            *(f"    {line}" for line in self._combined()),
            *(f"    {line}" for line in self._across()),
            "with copyout():",
            f"    store({self._y}[{self._out()}], result, n, rows=high, pitch=out_width, "
            f"room=align(n, {_ROWS}))",
        ]
        head = [
            "first, count = share(units)",
            "for unit in range(first, first + count):",
        ]
        return [*head, *(f"    {line}" for line in body)]

    def _load(self, buffer: str, row: str) -> list[str]:
        """Return the copy of the rows of a block."""
        rows = "rows" if self._high else "high"
        return [
            "with copyin():",
            f"    load({buffer}, {self._x}[({row}) * width + begin], columns, rows={rows}, pitch=width, "
            f"pad={self._neutral})",
        ]

    def _rows(self) -> list[str]:
        if not self._high:
            return self._load("x_in", "top")
        return [
            *self._load("x_in[above]", "lead_at * height + from_row"),
            "with compute():",
            "    if above > 0:",
            f"        fill(x_in, {self._neutral}, above)",
            "    if above + rows * pitch < wanted:",
            f"        fill(x_in[above + rows * pitch], {self._neutral}, wanted - above - rows * pitch)",
        ]

    def _slices(self) -> list[str]:
        """Return what combines the slices that windows reach in depth."""
        low = "out_at * stride_depth - before_depth"
        load = self._load("x_in", "(lead_at * depth + in_depth) * height + from_row")
        return [
            "with compute():",
            f"    fill(gathered, {self._neutral}, wanted)",
            f"for in_depth in range(max(0, {low}), min(depth, {low} + kernel_depth)):",
            *(f"    {line}" for line in load),
            "    with compute():",
            f"        {COMBINE[self._mode]}(gathered[above], gathered[above], x_in, rows * pitch)",
        ]

    def _combined(self) -> list[str]:
        """Return what combines the rows of each window."""
        if not self._high:
            return []
        source = "gathered" if self._deep else "x_in"
        return [
            "used = ((high - 1) * stride_height + 1) * pitch",
            f"copy(combined, {source}, used)",
            "for row in range(1, kernel_height):",
            f"    {COMBINE[self._mode]}(combined, combined, {source}[row * pitch], used)",
        ]

    def _across(self) -> list[str]:
        """Return what combines the columns of each window."""
        apart = "stride_height * pitch" if self._high else "pitch"
        source = "combined" if self._high else "x_in"
        end = "used" if self._high else "high * pitch"
        return [
            f"if align(columns, {_ROWS}) > pitch:",
            f"    fill({source}[{end}], {self._neutral}, 8)",
            f"filled = {_ROWS} * (begin - left + columns)",
            f"looked = {_ROWS} * ((align(n, {_ROWS}) - 1) * stride_width + 1)",
            f"end = looked + {_ROWS} * (kernel_width - 1)",
            f"rows_to_lanes(lanes[{_ROWS} * (begin - left)], {source}, {apart}, high, "
            f"{_ROWS} * align(columns, {_ROWS}))",
            "if begin > left:",
            f"    fill(lanes, {self._neutral}, {_ROWS} * (begin - left))",
            "if filled < end:",
            f"    fill(lanes[filled], {self._neutral}, end - filled)",
            "copy(best, lanes, looked)",
            "for column in range(1, kernel_width):",
            f"    {COMBINE[self._mode]}(best, best, lanes[{_ROWS} * column], looked)",
            *(["muls(best, best, scale, looked)"] if self._mean else []),
            f"lanes_to_rows(result, best, stride_width, {_ROWS} * align(n, {_ROWS}))",
        ]

    def _out(self) -> str:
        row = (
            "(lead_at * out_depth + out_at) * out_height + top"
            if self._deep
            else "lead_at * out_height + top"
        )
        return f"({row if self._high else 'top'}) * out_width + at"

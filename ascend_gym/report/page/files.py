"""Writes a report to files: the page itself, its figures as SVG and PNG, its tables as LaTeX."""

from __future__ import annotations

import importlib
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.whole_file import write_whole
from ascend_gym.report.page.document import Page
from ascend_gym.report.page.html import table_latex

_PNG_WIDTH_PIXELS = 1320


def write_page(page: Page, path: Path) -> None:
    """Write the page atomically.

    Raises:
        MisuseError: the path is not writable.
    """
    _write(path, page.html().encode())


def write_exports(page: Page, folder: Path, *, png: bool) -> list[Path]:
    """Write every figure as ``NAME.svg`` and every table as ``NAME.tex``; return the files.

    Args:
        page: report.
        folder: output folder.
        png: whether to write figures as ``NAME.png``, too.

    Raises:
        MisuseError: the folder is not writable, or the package that draws PNG is not installed.
    """
    contents: dict[str, bytes] = {}
    for chart in page.charts:
        svg = chart.svg(standalone=True)
        contents[f"{chart.name}.svg"] = svg.encode()
        if png:
            contents[f"{chart.name}.png"] = _png(svg)
    contents |= {f"{name}.tex": table_latex(table).encode() for name, table in page.tables.items()}
    for name, content in contents.items():
        _write(folder / name, content)
    return [folder / name for name in contents]


def _png(svg: str) -> bytes:
    try:
        resvg = importlib.import_module("resvg_py")
    except ModuleNotFoundError as error:
        raise MisuseError(
            "figures as PNG need the package resvg-py: pip install 'ascend-gym[report]', or leave --png out"
        ) from error
    return bytes(resvg.svg_to_bytes(svg_string=svg, width=_PNG_WIDTH_PIXELS))


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise MisuseError(f"{path} cannot be written: {error}; name another file or folder") from error

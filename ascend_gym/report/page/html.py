"""Tables, figures and source diffs as HTML, and tables as LaTeX.

Functions rather than templates: Jinja2 would be a further dependency of a plain install for little markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from ascend_gym.report.comparison import Table
from ascend_gym.report.page.chart import Chart

_MAX_DIFF_LINES = 120
_LATEX = {**{each: f"\\{each}" for each in "&%$#_{}"}, "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
_PHONE_CHARS = 40
_HINT = ' <span class="hint">(scroll sideways \N{RIGHTWARDS ARROW})</span>'
_BREAK = re.compile(r"(?<=:)|(?<= )(?!\S{1,2}$)")
_LATEX_SPECIAL = re.compile(r"[&%$#_{}~^\\]")


def table_html(table: Table, *, theirs: bool = False, best_in: Sequence[int] = ()) -> str:
    """Return a table; the largest number of each column of ``best_in`` is bold, unless all are equal."""
    best = {column: _largest(row[column] for row in table.rows) for column in best_in}
    best = {column: value for column, value in best.items() if _differs(table, column)}
    head = "".join(f'<th scope="col">{_heading(column)}</th>' for column in table.columns)
    body = []
    for row in table.rows:
        cells = [f'<th scope="row">{_heading(row[0])}</th>']
        for column, text in enumerate(row[1:], start=1):
            marked = column in best and _number(text) == best[column]
            cells.append(f"<td{' class=best' if marked else ''}>{_cell(text)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    kind = ' class="theirs"' if theirs else ""
    scrolls = _width_chars(table) > _PHONE_CHARS
    label = escape(table.title, quote=True)
    return (
        f'<p class="caption">{escape(table.title)}{_HINT if scrolls else ""}</p>'
        f'<div class="wide{" scrolls" if scrolls else ""}" tabindex="0" role="region" aria-label="{label}">'
        f"<table{kind}>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def table_latex(table: Table) -> str:
    """Return a table as a LaTeX ``tabular`` with the rules of the booktabs package."""
    lines = [
        f"% {table.title}",
        f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        "\\toprule",
        f"{' & '.join(map(_latex, table.columns))} \\\\",
        "\\midrule",
        *(f"{' & '.join(map(_latex, row))} \\\\" for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def figure_html(chart: Chart) -> str:
    """Return a chart with its title below it."""
    return f"<figure>{chart.svg()}<figcaption>{escape(chart.title)}</figcaption></figure>"


def diff_html(text: str, more: str) -> str:
    """Return a unified diff with coloured lines, truncated if it is long.

    Args:
        text: diff.
        more: how to see the omitted part.
    """
    lines = text.splitlines()
    shown = [_diff_line(line) for line in lines[:_MAX_DIFF_LINES]]
    if len(lines) > _MAX_DIFF_LINES:
        shown.append(f"... {len(lines) - _MAX_DIFF_LINES} more lines: {escape(more)}")
    return f'<pre tabindex="0">{chr(10).join(shown)}</pre>'


def _diff_line(line: str) -> str:
    for sign, name in (("+", "a"), ("-", "r")):
        if line.startswith(sign):
            return f'<span class="{name}">{escape(line)}</span>'
    return escape(line)


def _heading(text: str) -> str:
    """Return a heading that may break between words, but not before a unit such as us or %."""
    return "<wbr>".join(map(escape, _BREAK.split(text)))


def _cell(text: str) -> str:
    """Return a cell, with an interval in brackets below its value."""
    value, bracket, interval = text.partition(" [")
    return f"{escape(value)}<small>[{escape(interval)}</small>" if bracket else escape(text)


def _largest(texts: Iterable[str]) -> float:
    return max((_number(text) for text in texts), default=0.0)


def _differs(table: Table, column: int) -> bool:
    """Return whether a column has numbers that are not all equal."""
    return len({_number(row[column]) for row in table.rows} - {float("-inf")}) > 1


def _width_chars(table: Table) -> int:
    """Return the approximate width of a table in characters, with headings broken between words."""
    cells = zip(table.columns, *table.rows, strict=True)
    return sum(max(_longest_part(head), *map(_longest_line, texts), 0) + 2 for head, *texts in cells)


def _longest_part(heading: str) -> int:
    return max(len(part.rstrip()) for part in _BREAK.split(heading))


def _longest_line(cell: str) -> int:
    return max(map(len, cell.split(" [")))


def _number(text: str) -> float:
    try:
        return float(text.split()[0].rstrip("x%"))
    except (ValueError, IndexError):
        return float("-inf")


def _latex(text: str) -> str:
    return _LATEX_SPECIAL.sub(lambda found: _LATEX.get(found[0], "\\textbackslash{}"), text)

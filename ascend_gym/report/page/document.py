"""The HTML report about a set of runs: all its sections, and its figures and tables by name for export."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

from ascend_gym.core.append_log import write_whole
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Table
from ascend_gym.report.generation import BEYOND_BOUND_US, category_table, meters_table
from ascend_gym.report.metrics import FAST_P, NO_INTERVAL_NOTE, P_NOTE
from ascend_gym.report.page.chart import Chart
from ascend_gym.report.page.figures import (
    budget_curve,
    speedup_distribution,
    stage_bands,
    status_shares,
    trajectory,
)
from ascend_gym.report.page.html import diff_html, figure_html, table_html, table_latex
from ascend_gym.report.page.results import Results
from ascend_gym.report.page.tables import (
    costs_table,
    profile_table,
    provenance_table,
    published_tables,
    roofline_table,
    statuses_table,
)
from ascend_gym.report.run_folder import unified_texts_diff
from ascend_gym.report.stored_runs import ID_CHARS
from ascend_gym.sweep.run_records import EvaluationRecord, RunRecord

_MAX_JUMPS = 6
_BEST_IN = (1, *range(4, 4 + len(FAST_P)))
_STYLE = Path(__file__).with_name("style.css")
_METRICS_NOTE = (
    "A speedup is the latency of the operator's own sources over that of the best candidate; GM is the "
    "geometric mean over operators, fast_p the share of operators faster than p times. Brackets hold 95 % "
    "intervals over operators; p is the p value of the difference from the reference, operators compared one "
    "by one (sign flips, two-sided), corrected over the methods (Holm); * marks those below 0.05. "
    f"{P_NOTE} {NO_INTERVAL_NOTE} A dash says that runs are missing."
)
_DEVICE_US = BEYOND_BOUND_US["device"] or {}
_GENERATION_NOTE = (
    "Of the first candidate for each task: Comp is the share that builds, Pass the share that is correct, "
    "Fast_x the share that is at least x times as fast as the calls of a framework. All tasks that were run "
    "are in the denominators. What a call costs is a model. Our price, which these columns hold, is the "
    "bound of its traffic and what the best hand-written kernels take beyond it on the simulator. Two other "
    "prices are the bound alone, and what a vendor's kernels take on a device: "
    f"{_DEVICE_US['elementwise_call_us']:g} us beyond it if they are element-wise, "
    f"{_DEVICE_US['combining_call_us']:g} us or more if they combine elements. A figure is cited with its "
    "price; docs/ascend_craft.md#figures has those of the rules at all three. "
    "Builds are those without an evaluation; builds, evaluations and tokens are those of a whole run, in the "
    "mean. The last column has the paper's five figures (AscendCraft, table 1: other hardware and another "
    "baseline); the row 'all' has the tasks of its categories, 'all of ours' also those of others."
)
_ROOFLINE_NOTE = (
    "Floor: launch, and reading the inputs and writing the outputs of a case once at the bandwidth of the "
    "chip; of roofline: its share of the duration. The share of a pipe is of the time of its cores."
)

_PNG_WIDTH_PIXELS = 1320


@dataclass
class Page:
    """A page under construction, with its exportable parts.

    Attributes:
        title: title.
        charts: figures.
        tables: tables, by file name without suffix.
    """

    title: str
    charts: list[Chart] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    _sections: list[tuple[str, str, str]] = field(default_factory=list)

    def section(self, anchor: str, heading: str, body: str) -> None:
        """Add a section."""
        self._sections.append((anchor, heading, body))

    def chart(self, chart: Chart) -> str:
        """Add a figure and return it as HTML."""
        self.charts.append(chart)
        return figure_html(chart)

    def table(self, name: str, table: Table, *, best_in: Sequence[int] = ()) -> str:
        """Add a table and return it as HTML."""
        self.tables[name] = table
        return table_html(table, best_in=best_in)

    def html(self) -> str:
        """Return the page: one HTML file without scripts or external resources."""
        style = _STYLE.read_text("utf-8")
        links = "".join(
            f'<li><a href="#{anchor}">{escape(heading)}</a></li>' for anchor, heading, _ in self._sections
        )
        body = "".join(
            f'<section id="{anchor}"><h2>{escape(heading)}</h2>{text}</section>'
            for anchor, heading, text in self._sections
        )
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="icon" href="data:,"><style>{style}</style></head><body>'
            f"<header><h1>{escape(self.title)}</h1></header>"
            f'<nav aria-label="Sections"><ul>{links}</ul></nav><main>{body}</main></body></html>\n'
        )


def results_page(results: Results, title: str, landscape: Chart | None = None) -> Page:
    """Return the page about ``results``.

    Args:
        results: runs.
        title: heading of the page.
        landscape: figure of the experience bank, or ``None``.
    """
    page = Page(title)
    main = results.main
    page.section("summary", "Methods", _summary(page, results, main))
    if results.ablation_methods:
        page.section("ablation", "Ablation", _ablation(page, results))
    if results.generated:
        page.section("generation", "Operators from a specification", _generation(page, results))
    page.section("published", "Published figures", _published())
    page.section("evaluations", "Evaluations and cost", _evaluations(page, results))
    if landscape is not None:
        page.section("experience", "Experience bank", page.chart(landscape))
    page.section("operators", "Operators", _operators(page, results, main))
    page.section("provenance", "Provenance", _provenance(results))
    return page


def _summary(page: Page, results: Results, main: Comparison) -> str:
    parts = [f'<p class="note">{escape(text)}</p>' for text in (_METRICS_NOTE, *main.notes())]
    if not main.operators:
        return "".join([*parts, "<p>No run is finished yet.</p>"])
    parts.append(_metrics(page, f"main-{results.budget}", main, results.budget, "All levels"))
    smaller = [_metrics(page, f"main-{each}", main, each, "All levels") for each in results.budgets[:-1]]
    if smaller:
        parts.append(f"<details><summary>Smaller budgets</summary>{''.join(smaller)}</details>")
    levels = sorted({results.levels[op_id] for op_id in main.operators})
    for level in levels if len(levels) > 1 else []:
        own = main.restricted(op_id for op_id in main.operators if results.levels[op_id] == level)
        parts.append(_metrics(page, f"level-{level}", own, results.budget, f"Level {level}"))
    figures = [
        speedup_distribution(main, results.budget, results.methods),
        budget_curve(main, results.budget, results.methods),
    ]
    parts.append(f'<div class="figures">{"".join(map(page.chart, figures))}</div>')
    return "".join(parts)


def _ablation(page: Page, results: Results) -> str:
    comparison = results.comparison(results.ablation_methods)
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in comparison.notes())
    if not comparison.operators:
        return f"{notes}<p>No run is finished yet.</p>"
    where = f"Variants on {', '.join(comparison.operators)}" if len(comparison.operators) < 10 else "Variants"
    return notes + _metrics(page, "ablation", comparison, results.budget, where)


def _metrics(page: Page, name: str, comparison: Comparison, budget: int, where: str) -> str:
    table = comparison.metrics_table(budget, f"{where}, budget {budget}")
    return page.table(name, table, best_in=_BEST_IN)


def _generation(page: Page, results: Results) -> str:
    parts = [f'<p class="note">{escape(_GENERATION_NOTE)}</p>']
    parts.append(page.table("generation", meters_table(results.generated, results.generation_runs)))
    for number, (name, candidates) in enumerate(results.generated.items(), 1):
        parts.append(page.table(f"generation-{number}", category_table(name, candidates)))
    return "".join(parts)


def _published() -> str:
    note = (
        "These are the figures of the AscendOptimizer paper: other hardware, models, operators and budgets "
        "than above. They are here for orientation, not for comparison."
    )
    tables = [
        f"{table_html(table, theirs=True)}<p class=note>Source: {escape(source)}.</p>"
        for table, source in published_tables()
    ]
    return f'<p class="note">{note}</p>{"".join(tables)}'


def _evaluations(page: Page, results: Results) -> str:
    note = (
        "Evaluations are those charged; known ones were answered without evaluating again. Evaluation "
        "seconds are wall seconds of the others, without waiting for a worker."
    )
    tables = page.table("statuses", statuses_table(results)) + page.table("costs", costs_table(results))
    return f'{page.chart(status_shares(results))}{tables}<p class="note">{note}</p>'


def _operators(page: Page, results: Results, main: Comparison) -> str:
    title = f"Speedup by operator, budget {results.budget}"
    table = main.operators_table(results.budget, title, results.levels)
    parts = [page.table("operators", table)] if main.operators else []
    return "".join([*parts, *(_operator(page, results, op_id) for op_id in sorted(results.levels))])


def _operator(page: Page, results: Results, op_id: str) -> str:
    run = results.best_run(op_id)
    found = f"{run.speedup:.3f}x by {results.names[run.run_id]}, seed {run.seed}"
    parts = [page.chart(trajectory(results, op_id))]
    stages = ", ".join(
        f"{name} {low} to {high}" for low, high, name in stage_bands(results.steps[run.run_id])
    )
    if stages:
        parts.append(f'<p class="note">Shaded: stages of the fastest run: {escape(stages)}.</p>')
    profile, roofline = profile_table(results, run), roofline_table(results, run)
    parts += [table_html(profile)] if profile else []
    parts += [f'{table_html(roofline)}<p class="note">{_ROOFLINE_NOTE}</p>'] if roofline else []
    parts += _jumps(results, run)
    return (
        f'<details id="op-{escape(op_id.replace("/", "-"))}">'
        f"<summary><b>{escape(op_id)}</b> {escape(found)}</summary>"
        f"{''.join(parts)}</details>"
    )


def _jumps(results: Results, run: RunRecord) -> list[str]:
    """Return the source diffs of the improvements of a run; only the largest if there are many."""
    own = results.store.baseline_files(run)
    incumbents = results.store.incumbents(run.run_id)
    if own is None or len(incumbents) < 2:
        return []
    pairs = list(pairwise(incumbents))
    largest = sorted(pairs, key=lambda pair: -_gain(*pair))[:_MAX_JUMPS]
    shown = []
    for before, after in (pair for pair in pairs if pair in largest):
        texts = [
            {**own, **results.store.changed_files(run, each.candidate_digest)} for each in (before, after)
        ]
        more = f"ascend-gym runs show {run.run_id[:ID_CHARS]}"
        heading = f"Evaluation {after.spent_evaluations} ({after.kind}): {_gain(before, after):.3f}x"
        shown.append(f"<h3>{escape(heading)}</h3>{diff_html(unified_texts_diff(*texts), more)}")
    return shown


def _gain(before: EvaluationRecord, after: EvaluationRecord) -> float:
    return (before.latency_us or 1.0) / (after.latency_us or 1.0)


def _provenance(results: Results) -> str:
    seeds = ", ".join(map(str, sorted({run.seed for run in results.runs})))
    budgets = ", ".join(map(str, sorted({run.budget for run in results.runs})))
    count = (
        f"{len(results.runs)} runs, {sum(len(steps) - 1 for steps in results.steps.values())} evaluations; "
    )
    text = f"{count}seeds {seeds}; budget {budgets}; store {results.store.path.name}."
    return f"<p>{escape(text)}</p>{table_html(provenance_table(results))}"


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

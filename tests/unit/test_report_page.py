"""The page about stored runs: every number on it is computed once more, straight from the store."""

from __future__ import annotations

import math
import re
import sqlite3
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import FLOOR_US, METHODS, fill, invented_run
from typer.testing import CliRunner

from ascend_gym.cli import app
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Table
from ascend_gym.report.metrics import FAST_P
from ascend_gym.report.page.chart import Axis, Chart
from ascend_gym.report.page.document import Page, results_page, write_exports, write_page
from ascend_gym.report.page.figures import k_means, landscape, principal_components
from ascend_gym.report.page.html import diff_html, table_html, table_latex
from ascend_gym.report.page.results import read_results
from ascend_gym.sweep.store import ResultsStore

OPERATORS, SEEDS, BUDGET = 7, 2, 12


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    fill(path, OPERATORS, SEEDS, BUDGET)
    return path


@pytest.fixture(scope="module")
def page(store_path: Path) -> Page:
    with ResultsStore(store_path) as store:
        return results_page(read_results(store, store.runs()), "A <title> & more")


class Cells(HTMLParser):
    """Collects the cells of every table by its label."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div" and str(dict(attrs).get("class")).startswith("wide"):
            self._rows = self.tables.setdefault(str(dict(attrs)["aria-label"]), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self._rows[-1][-1] += data


@pytest.fixture(scope="module")
def tables(page: Page) -> dict[str, list[list[str]]]:
    cells = Cells()
    cells.feed(page.html())
    return cells.tables


def database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path)


def speedups(path: Path, budget: int) -> dict[str, dict[tuple[str, int], float]]:
    """Return the speedup of every run within a budget, by method and by operator and seed."""
    query = """
        SELECT variant, op_id, seed, baseline_latency_us / MIN(latency_us)
        FROM runs JOIN evaluations USING (run_id)
        WHERE latency_us IS NOT NULL AND spent_evaluations <= ? GROUP BY run_id
    """
    found: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for variant, op_id, seed, speedup in database(path).execute(query, [budget]):
        found[variant][op_id, seed] = speedup
    return found


def p_value_by_all_flips(ours: dict[tuple[str, int], float], theirs: dict[tuple[str, int], float]) -> float:
    """Return the share of sign flips of the operators whose gain is as large as the one found."""
    gains: dict[str, float] = defaultdict(float)
    for (op_id, seed), speedup in ours.items():
        gains[op_id] += math.log(speedup / theirs[op_id, seed])
    flips = [
        abs(sum(sign * gain for sign, gain in zip(signs, gains.values(), strict=True)))
        for signs in product((1, -1), repeat=len(gains))
    ]
    return sum(each > flips[0] - 1e-9 for each in flips) / len(flips)


def corrected(p_values: dict[str, float]) -> dict[str, float]:
    """Return p values times the number of those that are not smaller, at least those before them (Holm)."""
    found: dict[str, float] = {}
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        found[name] = max([*found.values(), min(1.0, p_values[name] * (len(p_values) - rank))])
    return found


def first_number(cell: str) -> float:
    return float(re.split(r"[\[x ]", cell)[0])


@pytest.mark.parametrize("budget", [5, 10, BUDGET])
def test_geometric_means_and_shares_are_those_of_the_store(
    store_path: Path, tables: dict[str, list[list[str]]], budget: int
) -> None:
    head, *rows = tables[f"All levels, budget {budget}: {OPERATORS} operators, {SEEDS} seeds, 95 % intervals"]
    own = speedups(store_path, budget)
    assert [row[0] for row in rows] == ["best-of-n", "ascend-optimizer", "openevolve"]
    means = {name: math.exp(np.mean(np.log(list(values.values())))) for name, values in own.items()}
    tested = corrected(
        {row[0]: p_value_by_all_flips(own[row[0]], own["best-of-n"]) for row in rows if row[0] != "best-of-n"}
    )
    for row in rows:
        values = own[row[0]]
        assert first_number(row[1]) == pytest.approx(means[row[0]], abs=5.1e-4)
        if row[0] != "best-of-n":
            assert first_number(row[2]) == pytest.approx(means[row[0]] / means["best-of-n"], abs=5.1e-4)
            expected = tested[row[0]]
            assert float(row[3].removesuffix(" *")) == pytest.approx(expected, rel=6e-3)
            assert row[3].endswith(" *") == (expected < 0.05)
        shares = [100 * np.mean([value > p for value in values.values()]) for p in FAST_P]
        assert [first_number(cell) for cell in row[4:]] == pytest.approx(shares, abs=0.051)
    assert head[4:] == [f"fast_{p:.1f} %" for p in FAST_P]


def test_levels_variants_and_operators_are_those_of_the_store(
    store_path: Path, tables: dict[str, list[list[str]]]
) -> None:
    own = speedups(store_path, BUDGET)
    levels = dict(database(store_path).execute("SELECT op_id, level FROM operators"))
    level_1 = [values for (op_id, _), values in own["openevolve"].items() if levels[op_id] == 1]
    (row,) = (
        row
        for title, rows in tables.items()
        if title.startswith("Level 1")
        for row in rows
        if row[0] == "openevolve"
    )
    assert first_number(row[1]) == pytest.approx(math.exp(np.mean(np.log(level_1))), abs=5.1e-4)
    (ablation,) = (rows for title, rows in tables.items() if title.startswith("Variants"))
    assert [each[0] for each in ablation[1:]] == ["ascend-optimizer", "ascend-optimizer:no-experience"]
    for op_id, level, *cells in tables[f"Speedup by operator, budget {BUDGET}"][1:]:
        assert int(level) == levels[op_id]
        for name, cell in zip(("best-of-n", "ascend-optimizer", "openevolve"), cells, strict=True):
            mean = math.prod(own[name][op_id, seed] for seed in range(SEEDS)) ** (1 / SEEDS)
            assert float(cell) == pytest.approx(mean, abs=5.1e-4)


def test_statuses_and_costs_are_those_of_the_store(
    store_path: Path, tables: dict[str, list[list[str]]]
) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    rows = database(store_path).execute(
        "SELECT variant, status FROM evaluations JOIN runs USING (run_id) WHERE idx > 0"
    )
    for variant, status in rows:
        counts[variant][status] += 1
    head, *shown = tables["How evaluations ended, %"]
    assert {row[0] for row in shown} == set(METHODS)
    for name, total, *shares in shown:
        assert int(total) == counts[name].total()
        expected = [100 * counts[name][status] / counts[name].total() for status in head[2:]]
        assert [float(each) for each in shares] == pytest.approx(expected, abs=0.051)
    sums = database(store_path).execute(
        "SELECT variant, COUNT(DISTINCT run_id), SUM(charged), SUM(cached), SUM(device_seconds),"
        " SUM(CASE WHEN cached THEN 0 ELSE total_s - queue_s END), SUM(model_calls), SUM(prompt_tokens),"
        " SUM(completion_tokens), SUM(usd) FROM evaluations JOIN runs USING (run_id) GROUP BY variant"
    )
    by_name = {name: values for name, *values in sums}
    for name, *cells in tables["Cost"][1:]:
        assert [float(cell) for cell in cells] == pytest.approx(by_name[name], abs=0.051)


def test_profiles_and_headings_of_operators_are_those_of_the_fastest_runs(
    store_path: Path, page: Page
) -> None:
    text = page.html()
    fastest = database(store_path).execute(
        "SELECT op_id, variant, seed, MAX(baseline_latency_us / best_latency_us), best_latency_us"
        " FROM runs GROUP BY op_id"
    )
    for op_id, variant, seed, speedup, best_us in fastest:
        assert f"<b>{op_id}</b> {speedup:.3f}x by {variant}, seed {seed}</summary>" in text
        body = text.partition(f'id="op-{op_id.replace("/", "-")}"')[2].partition("</details>")[0]
        assert f"<td>100.00</td><td>{best_us:.2f}</td>" in body
        reached = "".join(
            f"<td>{each:.2f}</td><td>{100 * FLOOR_US / each:.0f}</td><td>MTE2 80 %</td>"
            for each in (100.0, best_us)
        )
        assert f"<td>{FLOOR_US:.2f}</td>{reached}" in body
        assert '<span class="a">+int tile' in body
    assert "A &lt;title&gt; &amp; more" in text


def test_curves_in_figures_end_at_the_figures_of_the_tables(store_path: Path, page: Page) -> None:
    charts = {chart.name: chart for chart in page.charts}
    own = speedups(store_path, BUDGET)
    mean = math.exp(np.mean(np.log(list(own["openevolve"].values()))))
    assert f"openevolve {mean:.3f}." in charts["budget-curve"].description
    assert {f"trajectory-core-op{at:03}" for at in range(OPERATORS)} <= charts.keys()
    for chart in charts.values():
        drawing = ElementTree.fromstring(chart.svg(standalone=True))
        assert drawing.get("role") == "img"
        assert {"title", "desc"} <= {child.tag.rpartition("}")[2] for child in drawing}


def test_a_page_loads_nothing_and_has_no_script(page: Page) -> None:
    text = page.html()
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:)", text)
    assert not re.search(r"url\(|@import", text)


def test_files_for_papers(page: Page, tmp_path: Path) -> None:
    write_page(page, tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").read_text("utf-8") == page.html()
    written = write_exports(page, tmp_path / "paper", png=False)
    assert {path.suffix for path in written} == {".svg", ".tex"}
    assert (tmp_path / "paper" / "budget-curve.svg").read_text("utf-8").startswith("<svg xmlns")
    table = (tmp_path / "paper" / f"main-{BUDGET}.tex").read_text("utf-8")
    assert "fast\\_1.0 \\%" in table
    with pytest.raises(MisuseError, match="cannot be written"):
        write_page(page, tmp_path / "out" / "report.html" / "below")


def test_figures_as_png(page: Page, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    written = write_exports(page, tmp_path, png=True)
    images = [path for path in written if path.suffix == ".png"]
    assert len(images) == len(page.charts)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in images)


def test_unfinished_runs_leave_an_operator_out(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    fill(path, 2, 1, 4, METHODS[:2])
    database_ = database(path)
    database_.execute(
        "UPDATE runs SET stop_reason = NULL WHERE op_id = 'core/op001' AND method = 'openevolve'"
    )
    database_.commit()
    database_.close()
    with ResultsStore(path) as store:
        text = results_page(read_results(store, store.runs()), "t").html()
    assert "Left out, because runs of openevolve are not finished: core/op001." in text
    assert "All levels, budget 4: 1 operator, 1 seed, 95 % intervals" in text


@pytest.mark.parametrize("budget", [4, 1], ids=["same budget", "another budget"])
def test_a_stray_run_leaves_tables_and_figures_as_they_are(tmp_path: Path, budget: int) -> None:
    path = tmp_path / "results.sqlite"
    fill(path, 6, 2, 4, METHODS[:2])
    with ResultsStore(path, write=True) as store:
        before = results_page(read_results(store, store.runs()), "t")
        store.put(invented_run("core/op003", 1, "random-rewrites", 0, budget))
        after = results_page(read_results(store, store.runs()), "t")
    rows, stray = before.tables["main-4"].rows, after.tables["main-4"].rows
    assert [row[1:] for row in stray[:2]] == [row[1:] for row in rows]
    assert stray[2][0].startswith("random-rewrites")
    assert set(stray[2][1:]) == {"-"}
    assert {chart.name for chart in after.charts} == {chart.name for chart in before.charts}
    assert (
        "Not compared, for too few finished runs in common with the others: random-rewrites" in after.html()
    )


def _reported(store_path: Path, html: Path, *options: str) -> tuple[int, str]:
    arguments = ["report", "--store", str(store_path), "--html", str(html), *options]
    outcome = CliRunner().invoke(app, arguments)
    return outcome.exit_code, str(outcome.exception or html.read_text("utf-8"))


def test_methods_operators_and_the_reference_are_chosen(store_path: Path, tmp_path: Path) -> None:
    chosen = ("--method", "openevolve", "--method", "ascend-optimizer", "--operator", "op002")
    status, text = _reported(store_path, tmp_path / "r.html", *chosen, "--reference", "openevolve")
    assert status == 0
    assert "GM over openevolve" in text.replace("<wbr>", "")
    assert "best-of-n" not in text.partition("Published")[0]
    assert f"All levels, budget {BUDGET}: 1 operator, {SEEDS} seeds" in text


@pytest.mark.parametrize(
    ("option", "name"), [("--method", "ppo"), ("--operator", "core/none"), ("--reference", "ppo")]
)
def test_what_has_no_run_cannot_be_chosen(store_path: Path, tmp_path: Path, option: str, name: str) -> None:
    _, said = _reported(store_path, tmp_path / "r.html", option, name)
    assert name in said
    assert ("core/op000" if option == "--operator" else "openevolve") in said
    assert not (tmp_path / "r.html").exists()


def test_runs_on_several_chips_are_methods_of_their_own(tmp_path: Path) -> None:
    with ResultsStore(tmp_path / "results.sqlite", write=True) as store:
        for budget in (4, 6):
            store.put(invented_run("core/add", 1, "best-of-n", 0, budget))
        names = read_results(store, store.runs()).methods
        assert names == ["best-of-n (budget 4)", "best-of-n (budget 6)"]
        with pytest.raises(MisuseError, match="at least one run"):
            read_results(store, [])
        with pytest.raises(MisuseError, match="two runs of best-of-n"):
            read_results(store, [store.runs()[0]] * 2)


def test_tables_mark_the_largest_and_escape_what_latex_reads() -> None:
    table = Table("T", ("m", "GM"), (("a_b", "1.5 [1, 2]"), ("c%", "2.5 [1, 3]")))
    marked = table_html(table, best_in=(1,))
    assert "<td class=best>2.5<small>[1, 3]</small></td>" in marked
    assert "<td>1.5" in marked
    assert "a\\_b & 1.5 [1, 2] \\\\" in table_latex(table)


def test_nothing_is_marked_where_all_are_equal() -> None:
    table = Table("T", ("m", "GM", "one"), (("a", "1.5", "1 [1, 1]"), ("b", "1.5", "2"), ("c", "-", "-")))
    assert table_html(table, best_in=(1, 2)).count("class=best") == 1


def test_methods_differ_by_more_than_colour_and_lie_above_bands() -> None:
    chart = Chart("c", "t", "d", Axis("x", 0, 10), Axis("y", 0, 10))
    for series in range(8):
        chart.line([(0, series), (5, series), (10, series)], series, f"method {series}")
        chart.band([(0, 0), (10, 0)], [(0, 9), (10, 9)], series)
    drawing = ElementTree.fromstring(chart.svg())
    kinds = [str(each.get("class")).split()[0] for each in drawing]
    assert max(at for at, kind in enumerate(kinds) if kind == "band") < kinds.index("line")
    lines = [each for each in drawing if each.tag == "path" and str(each.get("class")).startswith("line")]
    marks = [each for each in drawing if str(each.get("class")).startswith("mark")]
    shapes = {str(mark.get("class")): (mark.tag, mark.get("d")) for mark in marks}
    looks = [
        (line.get("stroke-dasharray"), shapes[str(line.get("class")).replace("line", "mark")])
        for line in lines
    ]
    assert len(set(looks)) == 8


def test_long_diffs_are_cut_and_say_so() -> None:
    shown = diff_html("\n".join(f"+line {at}" for at in range(500)), "see there")
    assert "380 more lines: see there" in shown
    assert shown.count('class="a"') == 120


@pytest.mark.parametrize("logarithmic", [False, True])
def test_ticks_lie_within_the_axis(logarithmic: bool) -> None:
    for low, high in ((0.99, 2.3), (1.0, 40.0), (1.0, 1.05), (0.5, 900.0)):
        axis = Axis("x", low, high, logarithmic)
        ticks = axis.ticks()
        assert ticks
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
        assert [axis.share(tick) for tick in ticks] == sorted(axis.share(tick) for tick in ticks)


def test_values_lie_where_the_axes_say() -> None:
    chart = Chart("c", "t", "d", Axis("x", 0, 10), Axis("y", 0, 1))
    chart.points([(5, 0.5, "middle")], 0)
    found = re.search(r'cx="([\d.]+)" cy="([\d.]+)"', chart.svg())
    assert found
    assert (float(found[1]), float(found[2])) == (237.0, 137.0)


def test_likeness_is_seen_in_clusters_and_components() -> None:
    generator = np.random.default_rng(0)
    centres = np.array([[0, 0, 9.0], [9, 0, 0], [0, 9, 0]])
    rows = np.concatenate([centre + generator.normal(0, 0.1, (10, 3)) for centre in centres])
    assert k_means(rows, 3).tolist() == [0] * 10 + [1] * 10 + [2] * 10
    assert principal_components(rows).shape == (30, 2)
    assert k_means(np.ones((4, 2)), 3).tolist() == [0] * 4
    chart = landscape(rows.astype(np.float32), ["copy"] * 10 + ["vector"] * 20, 3)
    assert "copy (10)" in chart.svg()
    assert chart.svg().count('r="3.5"><title>') == 30
    assert chart.svg().count("<circle") == 30 + 3, "one for each entry of the legend"

"""Tables of the documentation that hold measured figures: data files, and the pages made from them.

A data file (``benchmarks/tables/NAME.json``) says with which command, at which commit and at which prices it
was measured. Pages hold each table between ``<!-- table NAME -->`` and ``<!-- end of table -->``.

    python benchmarks/fidelity/measured_tables.py [--check]

writes the tables into the pages, and docs/fidelity.svg; with ``--check`` it changes nothing, and its status
says whether a page differs from its data or a file was measured at other prices. A test does the same.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from fidelity_figure import NEAR, figure, points_of

from ascend_gym.core.digest import digest_of, digest_of_tree
from npu_daemon.simulator.chips import shipped_digests

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "benchmarks" / "tables"
SHOWN_PERCENT = 5.0  # of the row that a moved figure changes most
MOVED = 0.05  # prices that differ by less have not moved
PRICE_VERSION = 1
"""Raise it whenever traces can be priced otherwise by the same figures of a chip.

``tests/unit/test_measured_tables.py`` fails until it is said of each change to ``price_sources`` whether they
can.
"""
_SIMULATOR = ROOT / "npu_daemon" / "simulator"
_COMMENT = re.compile(r"//.*|/\*.*?\*/|^\s*$\n?", re.MULTILINE)
_BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Row = dict[str, Any]


@cache
def price_digest() -> str:
    """Return the identity of prices: figures of the chips, and the version of the program."""
    return digest_of("prices", PRICE_VERSION, shipped_digests())[:16]


def price_sources() -> dict[str, str]:
    """Return the digests of the sources of the program that prices traces, without their comments."""
    files = [*(_SIMULATOR / "src/price").glob("*.cpp"), *(_SIMULATOR / "include/asim/timing").glob("*.h")]
    return {
        file.name: digest_of("source", _COMMENT.sub("", file.read_text("utf-8")))[:16]
        for file in sorted(files)
    }


@cache
def runtime_digest() -> str:
    """Return the identity of what makes traces."""
    return digest_of_tree(
        _SIMULATOR,
        (
            "kernel_ir/*.py",
            "include/asim/[a-su-z]*/**/*",
            "include/asim/trace/*",
            "include/kernel/**/*",
            "src/runtime/*",
            "src/run/*",
        ),
    )


def read(name: str) -> dict[str, Any]:
    """Return a data file: ``command``, ``commit``, ``date``, ``prices``, ``rows`` and what else it has."""
    found: dict[str, Any] = json.loads((TABLES / f"{name}.json").read_text("utf-8"))
    return found


def rows_of(name: str) -> list[Row]:
    """Return the rows of a data file."""
    rows: list[Row] = read(name)["rows"]
    return rows


def is_fresh(name: str) -> bool:
    """Whether there is a data file that was measured at the present prices."""
    return (TABLES / f"{name}.json").is_file() and read(name)["prices"] == price_digest()


def write(name: str, rows: Sequence[Row], **more: Any) -> None:
    """Write a data file with the present command line, commit and prices."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    script = Path(sys.argv[0]).resolve()
    told = script.relative_to(ROOT) if script.is_relative_to(ROOT) else Path(script.name)
    document = {
        "command": shlex.join(
            ["python", str(told), *("DIR" if "/" in each else each for each in sys.argv[1:])]
        ),
        "commit": commit.stdout.strip(),
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "prices": price_digest(),
        **more,
    }
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    head = json.dumps(document, indent=1, ensure_ascii=False)
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{name}.json").write_text(f'{head[:-2]},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def origin(name: str) -> str:
    """Return the sentence that says how a table was measured."""
    data = read(name)
    return f"\n`{data['command']}`, {data['date']}, commit {data['commit']}, prices {data['prices']}.\n"


def ratios_line(title: str, rows: Sequence[Row]) -> list[object]:
    """Return the cells of a summary: how many, median, least and largest ratio, share in the band, pairs."""
    ratios = sorted(row["simulated_us"] / row["measured_us"] for row in rows)
    near = sum(NEAR[0] <= ratio <= NEAR[1] for ratio in ratios)
    right, pairs = ordered_pairs(rows)
    return [
        title,
        len(rows),
        f"{statistics.median(ratios):.2f}",
        f"{ratios[0]:.2f}, {ratios[-1]:.2f}",
        f"{near} ({near / len(rows):.0%})",
        f"{right} of {pairs}",
    ]


def ordered_pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Return how many pairs of one group whose measured times differ by more than 5 % have their order."""
    right = total = 0
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            both = one["measured_us"], other["measured_us"]
            if one["group"] == other["group"] and abs(both[0] - both[1]) > 0.05 * max(both):
                total += 1
                right += (both[0] < both[1]) == (one["simulated_us"] < other["simulated_us"])
    return right, total


SUMMARY = (
    "rows",
    "count",
    "median simulated / measured",
    "least, largest",
    "within 0.80 to 1.25",
    "pairs in order",
)


def measured_rows() -> str:
    """Return the rows that fits see and those held out, apart and by group."""
    rows = rows_of("measured_rows")
    halves = [("that fits see", False), ("held out", True)]
    lines = [ratios_line(title, [row for row in rows if row["held_out"] is held]) for title, held in halves]
    for group in dict.fromkeys(row["group"] for row in rows):
        for title, held in halves:
            if of_group := [row for row in rows if row["group"] == group and row["held_out"] is held]:
                lines.append(ratios_line(f"{group}, {title}", of_group))
    return markdown(SUMMARY, lines) + origin("measured_rows")


def sensitivity() -> str:
    """Return which figures change the order of rows, or medians, when they move by 20 %."""
    rows = [
        (
            row["figure"],
            f"{row['factor']:.1f}",
            f"{row['median']:.3f}",
            row["in_band"],
            row["flipped"],
            row["largest_change"],
        )
        for row in rows_of("sensitivity")
        if abs(float(row["largest_change"].partition("%")[0])) >= SHOWN_PERCENT
    ]
    columns = ("figure", "times", "median of all rows", "within 0.80 to 1.25", "pairs that change order")
    return markdown((*columns, "largest change of a row"), rows) + origin("sensitivity")


def core_baselines() -> str:
    """Return the operators of core at their largest cases: time, launch, and how far from the floor."""
    rows = [
        (
            row["operator"].rpartition("/")[2],
            row["case"],
            f"{row['task_us']:.1f}",
            f"{row['launch_us'] / row['task_us']:.0%}",
            f"{row['task_us'] / row['floor_us']:.1f}",
        )
        for row in rows_of("suite_prices")
    ]
    return markdown(("operator", "largest case", "us", "launch", "times the floor"), rows) + origin(
        "suite_prices"
    )


def moved_prices() -> str:
    """Return the operators whose price moved, with the mechanism that moved it most."""
    data = read("suite_prices")
    moved = []
    for row in data["rows"]:
        change = row["task_us"] / row["before_us"] - 1 if row["before_us"] else 0.0
        if abs(change) > MOVED:
            name, why = row["operator"].rpartition("/")[2], row["why"].partition(":")[0]
            moved.append((name, row["before_us"], row["task_us"], f"{change:+.0%}", why))
    columns = ("operator", f"us at {data['before']}", "us now", "change", "most of it")
    return markdown(columns, moved) + origin("suite_prices")


RENDERED: dict[str, Callable[[], str]] = {
    each.__name__: each for each in (measured_rows, sensitivity, core_baselines, moved_prices)
}
DATA = {"core_baselines": "suite_prices", "moved_prices": "suite_prices"}
"""The data file of a table, where it has another name."""


def rendered(name: str) -> str:
    """Return a table, or that it has not been measured since prices were as they are."""
    if is_fresh(DATA.get(name, name)):
        return RENDERED[name]()
    return "\nNot measured at the prices of today.\n"


def pages() -> dict[Path, str]:
    """Return each page that has tables, and the figure of docs/fidelity.md, as they should be."""
    found = {ROOT / "docs" / "fidelity.svg": figure(points_of(rows_of("measured_rows")))}
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        if _BLOCK.search(text):
            found[page] = _BLOCK.sub(lambda block: f"{block[1]}{rendered(block[2])}{block[3]}", text)
    return found


def stale() -> list[str]:
    """Return the data files that were measured at other prices."""
    return [file.stem for file in sorted(TABLES.glob("*.json")) if not is_fresh(file.stem)]


def main() -> int:
    """Write or check the pages; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    differing = {page: text for page, text in pages().items() if page.read_text("utf-8") != text}
    for page, text in differing.items():
        print(f"{page.relative_to(ROOT)}: {'differs from its data' if check else 'written'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    for name in stale():
        print(f"benchmarks/tables/{name}.json: measured at other prices: {read(name)['command']}")
    return int(bool(check and differing) or bool(stale()))


if __name__ == "__main__":
    raise SystemExit(main())

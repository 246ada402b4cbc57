"""Writes the tables of docs/fidelity.md from the JSON document of fidelity.py: the page holds one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

WHOLE = ("Task Duration", "GetSystemCycle", "Mmad total cycles")
PIPES = ("vec", "mac", "scalar", "mte1", "mte2", "mte3", "fixpipe")
TIME = "_time"

Row = dict[str, Any]


def number(value: float) -> str:
    """Return a figure with four digits, or all before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def outcome(row: Row) -> tuple[str, str]:
    """Return the simulated figure and its error, or why there is none."""
    if row["simulated"] is None:
        return row["reason"], ""
    return number(row["simulated"]), "" if row["error"] is None else f"{row['error']:+.1%}"


def duration_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of whole durations, one line a case."""
    yield "| case | figure | measured | simulated | error |"
    yield "|---|---|---|---|---|"
    for row in rows:
        if row["metric"] in WHOLE:
            simulated, error = outcome(row)
            cells = (
                row["case_id"],
                row["metric"],
                f"{number(row['measured'])} {row['unit']}",
                simulated,
                error,
            )
            yield f"| {' | '.join(cells)} |"


def pipe_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of pipe times, one line a case and kind of core: measured / simulated."""
    yield f"| case | core | {' | '.join(PIPES)} |"
    yield "|---" * (len(PIPES) + 2) + "|"
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        core, _, pipe = row["metric"].removesuffix(TIME).partition("_")
        if row["metric"].endswith(TIME) and pipe in PIPES:
            simulated, error = outcome(row)
            text = f"{number(row['measured'])} / {simulated} {error and f'({error})'}".rstrip()
            cells.setdefault((row["case_id"], core), {})[pipe] = text
    for (case_id, core), texts in cells.items():
        yield f"| {case_id} | {core} | {' | '.join(texts.get(pipe, '') for pipe in PIPES)} |"


def main() -> None:
    """Print both tables and the summary of one set of cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="written by fidelity.py --json")
    parser.add_argument("--set", default="calibration", help="which set of the document")
    arguments = parser.parse_args()
    report = json.loads(arguments.json.read_text(encoding="utf-8"))[arguments.set]
    print(*duration_lines(report["rows"]), "", *pipe_lines(report["rows"]), "", sep="\n")
    for name in ("task_durations", "pipe_times", "rank_correlation", "pairs"):
        print(f"{name}: {report[name]}")


if __name__ == "__main__":
    main()

"""Prints what reviews tried: a table of counts, or the list of one review.

python tests/hostile/reviews.py [--review N]
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

from ascend_gym.core.toml_file import read_toml

HERE = Path(__file__).parent
SURFACES = {
    2: "code generation, compiler, calls, tiling",
    3: "precompiled headers, macros, overlapped runs",
    4: "headers, loads, code that counts as loaded",
    5: "library calls, Matmul, cube cores",
    6: "data cache, tiling keys, temporary buffers",
    7: "oracle and domain, answers, wire",
    8: "price, second look, domain: kernels and tiling",
}
GOT_THROUGH = ("zero has the reciprocal zero", "differences in half precision")
GOT_THROUGH += ("markdown in markdown, a thousand deep", "16 MiB of letters of two bytes in a name")


def tried() -> list[tuple[int, str, bool, str]]:
    """Return each idea: number of the review, what it was, whether it got through, and how it ends today."""
    with (HERE / "reviews.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            (int(each["review"]), each["idea"], each["got_through"] == "yes", each["outcome"])
            for each in csv.DictReader(file)
        ]
    ends = {"values": "incorrect", "wire": "refused"}
    for each in read_toml(HERE / "ideas.toml")["idea"]:
        where = f"{each['operator']}: " if "operator" in each else ""
        outcome = each.get("ends") or ends[each["surface"]]
        rows.append((7, where + each["idea"], each["idea"] in GOT_THROUGH, outcome))
    for each in read_toml(HERE / "kernel_ideas.toml")["idea"]:
        idea = f"{each['operator']}: {each['idea']}"
        rows.append((8, idea, "got_through" in each, " or ".join(each["ends"])))
    return rows


def main() -> None:
    """Print the table, or a list."""
    parser = argparse.ArgumentParser(description="What reviews tried against the isolation of candidates.")
    parser.add_argument("--review", type=int, choices=sorted(SURFACES), help="print the ideas of this one")
    wanted = parser.parse_args().review
    rows = tried()
    if wanted is not None:
        for _, idea, through, outcome in (row for row in rows if row[0] == wanted):
            print(f"{'got through: ' if through else ''}{idea} -> {outcome}")
        return
    counts, through = Counter(row[0] for row in rows), Counter(row[0] for row in rows if row[2])
    print("| review | surfaces | ideas on the list | got through, closed |\n|---|---|---|---|")
    for review, surfaces in SURFACES.items():
        print(f"| {review} | {surfaces} | {counts[review]} | {through[review]} |")


if __name__ == "__main__":
    main()

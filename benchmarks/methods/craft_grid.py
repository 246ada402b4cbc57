"""The ablation of AscendCraft: who writes the kernel, with which examples, and with what builds in between.

    python benchmarks/methods/craft_grid.py --model NAME --out DIR [--op NAME ..] [--seed N ..] [--budget N]
        [--arm NAME ..] [-- OPTIONS OF ascend-gym sweep]

Every arm is a variant of a method, so that the grid is a sweep: it is resumed by the same command with
``-- --resume``, and ``--base-url`` or ``$OPENAI_BASE_URL`` name any endpoint in the OpenAI format. Arms share
the budget of evaluations; builds and tokens are metered beside it. Standard output is a table of all arms,
``DIR/grid.html`` the page. With ``--model offline`` only rules lower in earnest: passes are a stand-in's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from ascend_gym.report.generation import meters_table
from ascend_gym.report.page.results import read_results
from ascend_gym.sweep.store import ResultsStore

ARMS = {
    **{
        f"direct {method}, examples {examples}": f"{method}:examples={examples}"
        for method in ("best-of-n", "iterate")
        for examples in ("none", "category")
    },
    **{
        f"language and rules, examples {examples}": f"ascend-craft:examples={examples}"
        for examples in ("none", "category")
    },
    **{
        f"language and {lowering}, examples {examples}, builds {'on' if builds else 'off'}": (
            f"ascend-craft:lowering={lowering},examples={examples},pass_builds={builds}"
        )
        for lowering in ("one-pass", "four-passes")
        for examples in ("none", "category")
        for builds in (True, False)
    },
}
"""Variants by what they are called here."""


def main() -> int:
    """Run the grid, print its table, write its page, and return the exit status of the sweep."""
    parser = argparse.ArgumentParser(description="The ablation of AscendCraft as a sweep.")
    parser.add_argument("--model", default="offline")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--op", action="append", help="operator; repeatable; default the suite generate")
    parser.add_argument("--seed", action="append", help="repeatable; default 0, 1 and 2")
    parser.add_argument("--budget", default="8", help="evaluations of a run")
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="repeatable; default all")
    parser.add_argument("options", nargs="*", help="of ascend-gym sweep, behind --")
    arguments = parser.parse_args()
    variants = [ARMS[arm] for arm in arguments.arm or ARMS]
    command = [sys.executable, "-m", "ascend_gym.cli", "sweep", "--out", str(arguments.out)]
    if "--resume" not in arguments.options:
        told = {
            "--op": arguments.op or ["generate"],
            "--method": variants,
            "--seed": arguments.seed or ["0", "1", "2"],
            "--budget": [arguments.budget],
            "--model": [arguments.model],
        }
        command += [part for name, values in told.items() for value in values for part in (name, value)]
    status = subprocess.run([*command, *arguments.options], check=False).returncode
    store = arguments.out / "results.sqlite"
    if store.exists():
        with ResultsStore(store) as results:
            print(meters_table(read_results(results, results.runs()).generated).markdown)
        report = ["report", "--store", str(store), "--html", str(arguments.out / "grid.html")]
        subprocess.run([sys.executable, "-m", "ascend_gym.cli", *report], check=False)
    return status


if __name__ == "__main__":
    raise SystemExit(main())

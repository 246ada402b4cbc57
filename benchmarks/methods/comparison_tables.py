"""Tables of docs/comparison.md from the runs that are kept in comparison_runs.csv.

    python benchmarks/methods/comparison_tables.py [--check]
    python benchmarks/methods/comparison_tables.py --collect SAMPLE=STORE [SAMPLE=STORE ...]
    python benchmarks/methods/comparison_tables.py --repeat OPERATOR

writes the tables into the page; ``--check`` changes nothing, and its status says whether the page differs.
``--collect`` first replaces the runs of each sample by those of a sweep's ``results.sqlite``: a line for each
run, with each best latency in microseconds and the number of charged evaluations that it was found with, the
baseline's at 0. ``--repeat`` makes the runs of one operator anew, some minutes for one of ``core``, and
compares them to the last digit that is kept; status 1 where one differs.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ascend_gym.report.comparison import Comparison, Curve, Run
from ascend_gym.report.metrics import (
    Estimate,
    PairedTest,
    geometric_mean,
    holm,
    paired_test,
    relative_speedup,
)
from ascend_gym.report.stored_runs import comparison_runs
from ascend_gym.sweep.store import ResultsStore

RUNS = Path(__file__).with_name("comparison_runs.csv")
PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
BUDGETS = (5, 10, 20)
AGENT, REFERENCE = "ascend-optimizer", "best-of-n"
_COLUMNS = ("sample", "method", "operator", "seed", "evaluations", "ended", "best_us")
_BLOCK = re.compile(r"(<!-- runs (\w+) -->\n).*?(<!-- end of runs -->)", re.DOTALL)

Samples = dict[str, list[Run]]


def read() -> Samples:
    """Return the kept runs of each sample."""
    samples: Samples = {}
    with RUNS.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            best_us: list[float] = []
            for point in line["best_us"].split():
                at, latency_us = point.split(":")
                best_us += best_us[-1:] * (int(at) - len(best_us)) + [float(latency_us)]
            best_us += best_us[-1:] * (int(line["evaluations"]) + 1 - len(best_us)) if best_us else []
            run = Run(
                line["method"], line["operator"], int(line["seed"]), Curve(tuple(best_us), line["ended"])
            )
            samples.setdefault(line["sample"], []).append(run)
    return samples


def collect(stores: dict[str, Path]) -> None:
    """Replace the kept runs of some samples by those of the stores of sweeps."""
    samples = read() if RUNS.exists() else {}
    for sample, path in stores.items():
        with closing(ResultsStore(path)) as store:
            samples[sample] = comparison_runs(store, store.runs())
    with RUNS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for sample, runs in samples.items():
            for run in sorted(runs, key=lambda run: (run.method, run.operator, run.seed)):
                assert run.curve is not None, f"{run} is not finished"
                ended = (run.curve.evaluations, run.curve.stop_reason, _points(run.curve))
                writer.writerow((sample, run.method, run.operator, run.seed, *ended))


def repeat(operator: str) -> list[str]:
    """Make the kept runs of an operator anew; return a line for each that differs.

    Raises:
        SystemExit: none is kept, or the sweep did not end well.
    """
    kept = [run for runs in read().values() for run in runs if run.operator == operator]
    if not kept:
        sys.exit(f"no run of {operator} is kept; operators: {sorted(_operators_of(read()))}")
    with tempfile.TemporaryDirectory(prefix="ascend-gym-repeat-") as folder:
        command = [sys.executable, "-m", "ascend_gym.cli", "sweep", "--op", operator, "--out", folder]
        command += ["--budget", str(BUDGETS[-1]), "--local-daemons", "1", "--workers", "2"]
        for method in sorted({run.method for run in kept}):
            command += ["--method", method]
        for seed in sorted({run.seed for run in kept}):
            command += ["--seed", str(seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with closing(ResultsStore(Path(folder) / "results.sqlite")) as store:
            made = {(run.method, run.seed): run.curve for run in comparison_runs(store, store.runs())}
    return [
        f"{run.method}, seed {run.seed}: kept {_points(run.curve)}, made {_points(now)}"
        for run in kept
        if _points(now := made[run.method, run.seed]) != _points(run.curve)
    ]


def _operators_of(samples: Samples) -> set[str]:
    return {run.operator for runs in samples.values() for run in runs}


def _points(curve: Curve | None) -> str:
    """Return the evaluations that found something better, each with its latency in microseconds."""
    assert curve is not None, "the run has ended"
    texts = [f"{each:.8g}" for each in curve.best_us]
    return " ".join(f"{at}:{text}" for at, text in enumerate(texts) if at == 0 or text != texts[at - 1])


def _pair_rows(samples: Samples) -> str:
    parts = {
        "eight of `core`": ["core"],
        "20 of `cann-ops-101`": ["fifths"],
        "all 28": ["core", "fifths"],
        "20 others of `cann-ops-101`": ["others"],
    }
    rows = []
    for title, names in parts.items():
        runs = [run for name in names for run in samples[name] if run.method in (AGENT, REFERENCE)]
        both = Comparison(runs, REFERENCE)
        cells = [
            " / ".join(f"{geometric_mean(both.speedups(method, budget)).value:.3f}" for budget in BUDGETS)
            for method in (REFERENCE, AGENT)
        ]
        over = [(both.speedups(AGENT, budget), both.speedups(REFERENCE, budget)) for budget in BUDGETS]
        cells += [_interval(relative_speedup(*each)) for each in over]
        cells[-1] += f" (p = {_p(paired_test(*over[-1]).p_value)})"
        rows.append((title, *cells))
    head = (
        "operators",
        "GM of `best-of-n` at 5, 10, 20",
        "of `ascend-optimizer`",
        "over Best-of-N at 5",
        "at 10",
        "at 20",
    )
    return _markdown(head, rows)


def _methods(samples: Samples) -> str:
    all_of_them = Comparison(samples["core"], AGENT)
    names = _by_mean(all_of_them)
    others = [name for name in names if name != AGENT]
    tests: list[PairedTest] = [
        paired_test(all_of_them.speedups(AGENT, 20), all_of_them.speedups(name, 20)) for name in others
    ]
    p_values = dict(zip(others, holm([test.p_value for test in tests]), strict=True))
    rows = []
    for name in names:
        means = [geometric_mean(all_of_them.speedups(name, budget)) for budget in BUDGETS]
        cells = [f"{mean.value:.3f}" for mean in means[:-1]] + [_interval(means[-1])]
        if name == AGENT:
            cells += [""] * 3
        else:
            cells += [
                _interval(
                    relative_speedup(all_of_them.speedups(AGENT, each), all_of_them.speedups(name, each))
                )
                for each in BUDGETS
            ]
            cells[-1] += f" (p = {_p(p_values[name])})"
        rows.append((f"`{name}`", *cells))
    head = ("method", "GM at 5", "at 10", "at 20", "`ascend-optimizer` over it at 5", "at 10", "at 20")
    return _markdown(head, rows)


def _variants(samples: Samples) -> str:
    runs = [run for run in samples["core"] if run.method == AGENT] + samples["variants"]
    compared = Comparison(runs, AGENT)
    rows = [
        (f"`{name}`", *(f"{geometric_mean(compared.speedups(name, each)).value:.3f}" for each in BUDGETS))
        for name in compared.methods
    ]
    return _markdown(("variant", *map(str, BUDGETS)), rows)


def _operators(runs: Sequence[Run], methods: Sequence[str] = ()) -> str:
    compared = Comparison(runs)
    names = list(methods) or _by_mean(compared)
    speedups = {name: compared.speedups(name, 20) for name in names}
    rows = []
    for at, operator in enumerate(compared.operators):
        means = [sum(speedups[name][at]) / len(compared.seeds) for name in names]
        rows.append((operator.rpartition("/")[2], *(f"{mean:.3f}" for mean in means)))
    return _markdown(("operator", *(f"`{name}`" for name in names)), sorted(rows))


def _by_mean(compared: Comparison) -> list[str]:
    return sorted(
        compared.methods, key=lambda name: geometric_mean(compared.speedups(name, 20)).value, reverse=True
    )


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _p(value: float) -> str:
    return f"{value:.2g}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def tables(samples: Samples) -> dict[str, str]:
    """Return the tables of the page in Markdown by name."""
    pair = (REFERENCE, AGENT)
    return {
        "pair": _pair_rows(samples),
        "fifths": _operators(samples["fifths"], pair),
        "others": _operators(samples["others"], pair),
        "methods": _methods(samples),
        "methods_by_operator": _operators(samples["core"]),
        "variants": _variants(samples),
    }


def page() -> str:
    """Return the text of the page with its tables as the kept runs have them."""
    made = tables(read())
    return _BLOCK.sub(lambda found: found[1] + made[found[2]] + found[3], PAGE.read_text("utf-8"))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--collect", nargs="+", default=[], metavar="SAMPLE=STORE")
    parser.add_argument("--repeat", metavar="OPERATOR")
    options = parser.parse_args()
    if options.repeat:
        differing = repeat(options.repeat)
        print("\n".join(differing) or f"{options.repeat}: every run is as it is kept")
        sys.exit(bool(differing))
    if options.collect:
        collect({name: Path(store) for name, store in (each.split("=", 1) for each in options.collect)})
    text = page()
    if options.check:
        sys.exit(text != PAGE.read_text("utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

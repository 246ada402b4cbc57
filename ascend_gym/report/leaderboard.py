"""Rankings of methods on a suite, each row with the command that repeats it, and paired comparisons."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ascend_gym.core.append_log import canonical_json
from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Run, Table
from ascend_gym.report.metrics import FAST_P, Estimate, PairedTest, geometric_mean, relative_speedup
from ascend_gym.report.stored_runs import comparison_runs, method_names, shared_settings
from ascend_gym.search.model_client import MAX_TOKENS
from ascend_gym.sweep.run_reader import settings_of
from ascend_gym.sweep.run_records import RunRecord
from ascend_gym.sweep.store import ResultsStore

_OPTIONS = (
    "temperature",
    "reasoning_effort",
    "max_tokens",
    "offline_model",
    "device_seconds",
    "tokens",
    "usd",
    "price",
    "duplicates",
)
_DEFAULTS = {"duplicates": "charged", "max_tokens": MAX_TOKENS}


def paired_comparison(one: Sequence[Run], other: Sequence[Run], budget: int) -> dict[str, Any]:
    """Compare runs of two methods within a budget, as JSON values.

    Args:
        one: finished runs of a method.
        other: finished runs of the method to compare with.
        budget: number of evaluations to consider.

    Raises:
        MisuseError: the two have no operator in common with the same seeds finished.
    """
    pair = Comparison(
        [
            *(Run("A", run.operator, run.seed, run.curve) for run in one),
            *(Run("B", run.operator, run.seed, run.curve) for run in other),
        ],
        reference="B",
    )
    if not pair.operators or len(pair.methods) != 2:
        raise MisuseError("the two have no operator in common for which the same seeds are finished")
    reference, row = pair.rows(budget)
    assert row.test is not None, "only the reference has none"
    speedups, others = pair.speedups("A", budget), pair.speedups("B", budget)
    ratios = [relative_speedup([a], [b]).value for a, b in zip(speedups, others, strict=True)]
    rows = [
        {
            "operator": name,
            "one": geometric_mean([ours]).value,
            "other": geometric_mean([theirs]).value,
            "ratio": ratio,
            "speedups": [ours, theirs],
        }
        for name, ours, theirs, ratio in zip(pair.operators, speedups, others, ratios, strict=True)
    ]
    return {
        "budget": budget,
        "seeds": pair.seeds,
        "left_out": pair.left_out,
        "geometric_mean": [asdict(each.geometric_mean) for each in (row, reference)],
        "fast_p": {f"{p:.1f}": [row.fast[at].value, reference.fast[at].value] for at, p in enumerate(FAST_P)},
        "ratio": asdict(row.relative),
        "test": asdict(row.test),
        "faster": sum(ratio > 1 for ratio in ratios),
        "equal": sum(ratio == 1 for ratio in ratios),
        "slower": sum(ratio < 1 for ratio in ratios),
        "operators": rows,
    }


def paired_table(document: dict[str, Any], one: str, other: str) -> Table:
    """Return the operators of ``paired_comparison`` as a table, with the overall result in its title."""
    title = (
        f"{one} over {other} at budget {document['budget']}: {Estimate(**document['ratio']).text(3)}, "
        f"p = {PairedTest(**document['test']).text}; "
        f"{document['faster']} faster, {document['equal']} equal, {document['slower']} slower"
    )
    rows = tuple(
        (row["operator"], *(f"{row[name]:.3f}" for name in ("one", "other", "ratio")))
        for row in document["operators"]
    )
    return Table(title, ("operator", one, other, "ratio"), rows)


def leaderboard(store: ResultsStore, suite: str, operators: Sequence[str]) -> dict[str, Any]:
    """Return the methods by geometric mean, as JSON values.

    Each row has one model, chip, budget and set of limits. A row counts the operators of the suite
    for which it has finished runs with all of its seeds; ``complete`` says whether these are all. Means of
    rows with different operators are not comparable.

    Args:
        store: runs.
        suite: name of the suite.
        operators: ids of its operators.
    """
    members = set(operators)
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for run in store.runs():
        if run.op_id in members:
            groups.setdefault(_identity(run), []).append(run)
    names = method_names([run for runs in groups.values() for run in runs], ())
    rows = [
        {"name": names[runs[0].run_id], **row}
        for runs in groups.values()
        if (row := _row(store, runs, suite, operators)) is not None
    ]
    rows.sort(key=lambda row: (-int(row["complete"]), -row["geometric_mean"]["value"], row["method"]))
    return {"suite": suite, "operators": list(operators), "rows": rows}


def sweep_command(runs: Sequence[RunRecord], operators: Sequence[str], seeds: Sequence[int]) -> str:
    """Return the command that reproduces runs of one method."""
    run, settings = runs[0], settings_of(runs[0])
    words = [*(word for name in operators for word in ("--op", name)), "--method", run.variant]
    words += [word for seed in seeds for word in ("--seed", str(seed))]
    words += ["--budget", str(run.budget), "--chip", run.chip, "--model", run.model]
    words += [
        word
        for name in _OPTIONS
        if settings.get(name) not in (None, _DEFAULTS.get(name))
        for word in (f"--{name.replace('_', '-')}", str(settings[name]))
    ]
    return shlex.join(["ascend-gym", "sweep", *words])


def _identity(run: RunRecord) -> tuple[object, ...]:
    """Return what runs of one row have in common: all settings but operator and seed."""
    settings = canonical_json(shared_settings(run))
    return run.variant, run.model, run.chip, run.budget, run.protocol_digest, settings


def _row(
    store: ResultsStore, runs: Sequence[RunRecord], suite: str, operators: Sequence[str]
) -> dict[str, Any] | None:
    compared = Comparison(comparison_runs(store, runs))
    if not compared.operators:
        return None
    run = runs[0]
    (figures,) = compared.rows(run.budget)
    complete = set(compared.operators) == set(operators)
    named = [suite] if complete else sorted(compared.operators)
    return {
        "method": run.variant,
        "model": run.model,
        "chip": run.chip,
        "budget": run.budget,
        "seeds": compared.seeds,
        "complete": complete,
        "operators": len(compared.operators),
        "left_out": compared.left_out,
        "geometric_mean": asdict(figures.geometric_mean),
        "fast_p": {f"{p:.1f}": asdict(each) for p, each in zip(FAST_P, figures.fast, strict=True)},
        "costs": _costs(store, runs, set(compared.operators)),
        "code_digests": sorted({each.code_digest for one in runs for each in store.sessions(one.run_id)}),
        "run_ids": [one.run_id for one in runs],
        "command": sweep_command(runs, named, compared.seeds),
    }


def _costs(store: ResultsStore, runs: Sequence[RunRecord], operators: set[str]) -> Mapping[str, float]:
    counted = {run.run_id for run in runs if run.op_id in operators}
    names = ("evaluations", "device_seconds", "prompt_tokens", "completion_tokens", "usd")
    totals = dict.fromkeys(names, 0.0)
    for run_id, *amounts in store.query(f"SELECT run_id, {', '.join(names)} FROM costs"):
        if run_id in counted:
            for name, amount in zip(names, amounts, strict=True):
                totals[name] += amount
    return totals


def leaderboard_table(board: Mapping[str, Any]) -> Table:
    """Return what ``leaderboard`` returns as a table."""
    columns = (
        "method",
        "model",
        "chip",
        "budget",
        "operators",
        "seeds",
        "GM",
        *(f"fast_{p:.1f} %" for p in FAST_P),
    )
    rows = tuple(
        (
            *(str(row[name]) for name in ("name", "model", "chip", "budget")),
            f"{row['operators']}/{len(board['operators'])}",
            str(len(row["seeds"])),
            Estimate(**row["geometric_mean"]).text(3),
            *(Estimate(**row["fast_p"][f"{p:.1f}"]).text(1, scale=100.0) for p in FAST_P),
        )
        for row in board["rows"]
    )
    return Table(f"Suite {board['suite']}, 95 % intervals", columns, rows)

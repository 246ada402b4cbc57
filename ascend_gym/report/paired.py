"""Paired comparison of two methods, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ascend_gym.core.errors import MisuseError
from ascend_gym.report.comparison import Comparison, Run, Table
from ascend_gym.report.metrics import FAST_P, fast_p, geometric_mean, paired_p_value, relative_speedup


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
        ]
    )
    if not pair.operators or len(pair.methods) != 2:
        raise MisuseError("the two have no operator in common for which the same seeds are finished")
    speedups, others = pair.speedups("A", budget), pair.speedups("B", budget)
    rows = [_operator(name, a, b) for name, a, b in zip(pair.operators, speedups, others, strict=True)]
    ratios = [row["ratio"] for row in rows]
    return {
        "budget": budget,
        "seeds": pair.seeds,
        "left_out": pair.left_out,
        "geometric_mean": [asdict(geometric_mean(table)) for table in (speedups, others)],
        "fast_p": {f"{p:.1f}": [fast_p(table, p).value for table in (speedups, others)] for p in FAST_P},
        "ratio": asdict(relative_speedup(speedups, others)),
        "p_value": paired_p_value(speedups, others),
        "faster": sum(ratio > 1 for ratio in ratios),
        "equal": sum(ratio == 1 for ratio in ratios),
        "slower": sum(ratio < 1 for ratio in ratios),
        "operators": rows,
    }


def paired_table(document: dict[str, Any], one: str, other: str) -> Table:
    """Return the operators of ``paired_comparison`` as a table, with the overall result in its title."""
    ratio = document["ratio"]
    title = (
        f"{one} over {other} at budget {document['budget']}: {ratio['value']:.3f} "
        f"[{ratio['low']:.3f}, {ratio['high']:.3f}], p = {document['p_value']:.3g}; "
        f"{document['faster']} faster, {document['equal']} equal, {document['slower']} slower"
    )
    rows = tuple(
        (row["operator"], *(f"{row[name]:.3f}" for name in ("one", "other", "ratio")))
        for row in document["operators"]
    )
    return Table(title, ("operator", one, other, "ratio"), rows)


def _operator(name: str, one: list[float], other: list[float]) -> dict[str, Any]:
    mean, other_mean = geometric_mean([one]).value, geometric_mean([other]).value
    ratio = relative_speedup([one], [other]).value if one != other else 1.0
    return {"operator": name, "one": mean, "other": other_mean, "ratio": ratio, "speedups": [one, other]}

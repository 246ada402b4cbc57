"""How programs for operators without sources are scored: evaluated, and against each price of the calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import geometric_mean

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.report.generation import BEYOND_BOUND_US, FACTORS, PAPER, by_category
from ascend_gym.suite.requests import request_for
from npu_daemon.eager import call_us
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.simulator.target import target_sheet

TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Score:
    """What became of one operator.

    Attributes:
        category: of the operator.
        built: whether both sides compile.
        passed: whether it is correct on the cases that were asked for.
        factors: latency of the framework calls over its own by price (``BEYOND_BOUND_US``); 0 if not correct.
        hidden: whether it is correct on the hidden cases, too; ``None`` if these were not evaluated.
        problem: why it is not correct.
        seconds: from the specification to the verdict on the public cases, wall time; 0 if not measured.
    """

    category: str
    built: bool = False
    passed: bool = False
    factors: Mapping[str, float] | None = None
    hidden: bool | None = None
    problem: str = ""
    seconds: float = 0.0

    def factor(self, price: str) -> float:
        """Return how many times as fast as the calls at a price it is."""
        return (self.factors or {}).get(price, 0.0)


def evaluated(
    evaluator: InProcessEvaluator, spec: OpSpec, candidate: Candidate, *, hidden: bool = False
) -> EvalResult:
    """Evaluate a candidate on public or hidden cases; no result is taken from the store."""
    cases = tuple(case.case_id for case in spec.hidden_cases) if hidden else ()
    request = request_for(spec, candidate, MeasureProtocol(), cases)
    evaluator.submit(request.model_copy(update={"use_cache": False}))
    ((_, result),) = evaluator.poll(TIMEOUT_S)
    return result


def score_of(spec: OpSpec, result: EvalResult, *, hidden: bool = False) -> Score:
    """Return what an evaluation says of an operator."""
    told = [str(each) for each in result.all_diagnostics] if result.latency_us is None else []
    cases = spec.hidden_cases if hidden else spec.cases
    factors = {}
    if result.latency_us:
        for price, beyond_us in BEYOND_BOUND_US.items():
            target = target_sheet(MeasureProtocol().chip).model_copy(update=dict(beyond_us or {}))
            calls_us = [sum(call_us(call, target) for call in case.eager) for case in cases]
            factors[price] = geometric_mean(calls_us) / result.latency_us
    return Score(
        category=spec.category,
        built=result.status is not Status.BUILD_ERROR,
        passed=result.status is Status.OK,
        factors=factors,
        problem="; ".join(told[:1]),
    )


def table_of(scores: list[Score]) -> str:
    """Return the table by category in Markdown: Fast_x at our price, then two of them at the others."""
    others = [price for price in BEYOND_BOUND_US if price != "ours"]
    heads = ["category", "Comp@1", "Pass@1", *(f"Fast{each:g}@1" for each in FACTORS), "hidden", *others]
    lines = [f"| {' | '.join([*heads, 'paper'])} |", "|---" * (len(heads) + 1) + "|"]
    return "\n".join([*lines, *(_row(name, own, others) for name, own in by_category(scores).items())])


def _row(name: str, scores: list[Score], others: list[str]) -> str:
    def percent(hits: list[bool]) -> str:
        return f"{100 * sum(hits) / len(scores):.1f}"

    cells = [percent([each.built for each in scores]), percent([each.passed for each in scores])]
    cells += [percent([each.factor("ours") >= least for each in scores]) for least in FACTORS]
    known = all(each.hidden is not None for each in scores)
    cells.append(percent([bool(each.hidden) for each in scores]) if known else "-")
    for price in others:
        cells.append(" / ".join(percent([e.factor(price) >= least for e in scores]) for least in FACTORS[1:]))
    paper = " / ".join(f"{each:g}" for each in PAPER[name]) if name in PAPER else "-"
    return f"| {name} ({len(scores)}) | {' | '.join(cells)} | {paper} |"

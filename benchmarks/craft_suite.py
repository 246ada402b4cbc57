"""AscendCraft over the suite ``generate``: what builds, what is correct, how fast against framework calls.

Each operator gets one program (@1), which is evaluated on its public cases and on those that searches do not
see. All tasks that were run are in the denominators. Standard output is a Markdown table by category; beside
it stand the figures of the paper (arXiv 2601.22760, table 1), measured on an NPU against PyTorch. Two columns
hold Fast0.8 and Fast1.0 against other prices of the same calls: their bound alone, and what the best kernels
of a vendor take beyond it on a device (``DEVICE_BEYOND_US``).

    python benchmarks/craft_suite.py [--operator NAME ..] [--each]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from statistics import geometric_mean

from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import drafted
from agents.ascend_craft.synthesis.graph import NotCoveredError
from ascend_gym.core.config import cache_root
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.report.generation import FACTORS, PAPER, by_category
from ascend_gym.staged.lower import lower
from ascend_gym.staged.syntax import StagedError
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.eager import call_us
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.simulator.target import target_sheet

DEVICE_BEYOND_US = {"elementwise_call_us": 0.0, "combining_call_us": 9.2}
"""Least of the published task durations on a 910B2 (hicann/cann-bench, float32, 4 to 16 MiB read) beyond the
bound of their traffic: sigmoid -0.5 to +0.3 us at up to 8 MiB, softmax +9.2 us at 8 MiB."""


@dataclass(frozen=True)
class Outcome:
    """What became of one operator.

    Attributes:
        category: of the operator.
        built: whether its program compiles on both sides.
        passed: whether it is correct on the public cases.
        hidden: whether it is correct on the hidden cases, too.
        factor: latency of the framework calls over its own on the public cases; 0 if not correct.
        bound_factor: the same against the bound of the calls alone.
        device_factor: the same against calls as the best kernels of a vendor take them on a device.
        seconds: from the specification to the verdict on the public cases, wall time.
        problem: why it is not correct.
    """

    category: str
    built: bool
    passed: bool
    hidden: bool
    factor: float
    seconds: float
    problem: str = ""
    bound_factor: float = 0.0
    device_factor: float = 0.0

    def figures(self) -> tuple[bool, ...]:
        """Return what each column of the table counts."""
        return (self.built, self.passed, *(self.factor >= factor for factor in FACTORS), self.hidden)


def main() -> int:
    """Print the table and return the exit status: 0 if every operator passes."""
    parser = argparse.ArgumentParser(description="AscendCraft over the suite generate, by rules.")
    specs = {spec.name: spec for spec in list_operators("generate")}
    parser.add_argument(
        "--operator", action="append", choices=specs, metavar="NAME", help="only this one; repeatable"
    )
    parser.add_argument("--each", action="store_true", help="a row for each operator, too")
    arguments = parser.parse_args()
    evaluator = InProcessEvaluator(SimulatorBackend(cache_root()))
    outcomes: list[Outcome] = []
    for spec in specs.values():
        if arguments.operator and spec.name not in arguments.operator:
            continue
        outcome = outcome_of(spec, evaluator)
        outcomes.append(outcome)
        if arguments.each or outcome.problem:
            print(
                f"{spec.name}: {outcome.factor:.3f}x, bound {outcome.bound_factor:.3f}x, device "
                f"{outcome.device_factor:.3f}x in {outcome.seconds:.1f} s {outcome.problem}",
                flush=True,
            )
    evaluator.close()
    print(
        "| category | Comp@1 | Pass@1 | Fast0.2@1 | Fast0.8@1 | Fast1.0@1 | hidden | bound | device | paper |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, own in by_category(outcomes).items():
        print(_row(name, own))
    return 0 if all(each.passed and each.hidden for each in outcomes) else 1


def outcome_of(spec: OpSpec, evaluator: InProcessEvaluator) -> Outcome:
    """Draft, check, lower and evaluate one operator; results are not taken from the store."""
    begun_s = time.monotonic()
    try:
        candidate = lower(checked(spec, drafted(spec)))
    except (NotCoveredError, StagedError) as error:
        return Outcome(spec.category, False, False, False, 0.0, time.monotonic() - begun_s, str(error))
    public = _evaluated(evaluator, spec, candidate, ())
    seconds = time.monotonic() - begun_s
    hidden = _evaluated(evaluator, spec, candidate, tuple(case.case_id for case in spec.hidden_cases))
    eager = _evaluated(evaluator, spec, spec.baseline, ())
    failed = [
        str(each)
        for result in (public, hidden)
        if result.latency_us is None
        for each in result.all_diagnostics
    ]
    factor = (eager.latency_us or 0.0) / public.latency_us if public.latency_us else 0.0
    others = [
        _calls_us(spec, beyond) / public.latency_us if public.latency_us else 0.0
        for beyond in (dict.fromkeys(DEVICE_BEYOND_US, 0.0), DEVICE_BEYOND_US)
    ]
    built = Status.BUILD_ERROR not in (public.status, hidden.status)
    passed = public.status is Status.OK
    return Outcome(
        *(spec.category, built, passed, hidden.status is Status.OK, factor, seconds, "; ".join(failed[:1])),
        bound_factor=others[0],
        device_factor=others[1],
    )


def _calls_us(spec: OpSpec, beyond_us: dict[str, float]) -> float:
    """Return the geometric mean over the public cases of what the calls take at other prices, in us."""
    target = target_sheet(MeasureProtocol().chip).model_copy(update=beyond_us)
    return geometric_mean([sum(call_us(call, target) for call in case.eager) for case in spec.cases])


def _evaluated(
    evaluator: InProcessEvaluator, spec: OpSpec, candidate: Candidate, cases: tuple[str, ...]
) -> EvalResult:
    request = request_for(spec, candidate, MeasureProtocol(), cases)
    evaluator.submit(request.model_copy(update={"use_cache": False}))
    ((_, result),) = evaluator.poll(600.0)
    return result


def _row(name: str, outcomes: list[Outcome]) -> str:
    columns = zip(*(each.figures() for each in outcomes), strict=True)
    shares = [f"{100 * sum(column) / len(outcomes):.1f}" for column in columns]
    for name_of in ("bound_factor", "device_factor"):
        factors = [getattr(each, name_of) for each in outcomes]
        cells = [100 * sum(each >= least for each in factors) / len(factors) for least in FACTORS[1:]]
        shares.append(" / ".join(f"{cell:.1f}" for cell in cells))
    paper = " / ".join(f"{each:g}" for each in PAPER[name]) if name in PAPER else "-"
    return f"| {name} ({len(outcomes)}) | {' | '.join(shares)} | {paper} |"


if __name__ == "__main__":
    raise SystemExit(main())

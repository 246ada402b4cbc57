"""AscendCraft over the suite ``generate``: what builds, what is correct, how fast against framework calls.

Each operator gets one program (@1), which is evaluated on its public cases and on those that searches do not
see. All tasks that were run are in the denominators. Standard output is a Markdown table by category; beside
it stand the figures of the paper (arXiv 2601.22760, table 1), measured on an NPU against PyTorch. Two columns
hold Fast0.8 and Fast1.0 against the other prices of the same calls (``report.generation.BEYOND_BOUND_US``).

    python benchmarks/methods/craft_suite.py [--operator NAME ..] [--each]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from craft_scoring import Score, evaluated, score_of, table_of

from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import drafted
from agents.ascend_craft.synthesis.graph import NotCoveredError
from ascend_gym.core.config import cache_root
from ascend_gym.core.records import OpSpec
from ascend_gym.core.status import Status
from ascend_gym.staged.lower import lower
from ascend_gym.staged.syntax import StagedError
from ascend_gym.suite.loader import list_operators
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator


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
    scores: list[Score] = []
    for spec in specs.values():
        if arguments.operator and spec.name not in arguments.operator:
            continue
        score = written(spec, evaluator)
        scores.append(score)
        if arguments.each or score.problem:
            factors = ", ".join(f"{price} {factor:.3f}x" for price, factor in (score.factors or {}).items())
            print(f"{spec.name}: {factors} in {score.seconds:.1f} s {score.problem}", flush=True)
    evaluator.close()
    print(table_of(scores))
    return 0 if all(each.passed and each.hidden for each in scores) else 1


def written(spec: OpSpec, evaluator: InProcessEvaluator) -> Score:
    """Draft, check, lower and evaluate one operator."""
    begun_s = time.monotonic()
    try:
        candidate = lower(checked(spec, drafted(spec)))
    except (NotCoveredError, StagedError) as error:
        seconds = time.monotonic() - begun_s
        return Score(spec.category, hidden=False, problem=str(error), seconds=seconds)
    public = score_of(spec, evaluated(evaluator, spec, candidate))
    seconds = time.monotonic() - begun_s
    hidden = evaluated(evaluator, spec, candidate, hidden=True)
    told = [str(each) for each in hidden.all_diagnostics[:1]] if hidden.latency_us is None else []
    return replace(
        public,
        built=public.built and hidden.status is not Status.BUILD_ERROR,
        hidden=hidden.status is Status.OK,
        problem=public.problem or "".join(told),
        seconds=seconds,
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""Answers of MultiKernelBench scored here, and programs of the rules written as its answers.

    python benchmarks/multi_kernel_bench.py score DIR [--hidden] [--operator NAME ..]
    python benchmarks/multi_kernel_bench.py export DIR [--operator NAME ..]

``DIR`` holds a file ``TASK.txt`` or ``TASK.py`` for each task, as its ``output/ascendc/.../run0`` does.
Answers are read as data; their operators are evaluated like any candidate. Tasks without a file have failed.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from agents.ascend_craft.draft import drafted
from agents.ascend_craft.synthesis.graph import NotCoveredError
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.report.generation import PAPER, FirstCandidate, category_table
from ascend_gym.rewrites.fenced import fenced
from ascend_gym.staged.lower import lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.syntax import StagedError
from ascend_gym.staged.verify import verify
from ascend_gym.suite.kernel_bench_answers import answer_of, candidate_of, read_answer, task_of
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.requests import request_for
from ascend_gym.suite.skeleton import interface_of
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

_ENDINGS = (".txt", ".py")


def main() -> int:
    """Score or export, and return 0."""
    specs = [spec for spec in list_operators("generate") if spec.category in PAPER]
    parser = argparse.ArgumentParser(description="Answers of MultiKernelBench.")
    parser.add_argument("what", choices=("score", "export"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hidden", action="store_true", help="score on the hidden cases")
    names = [spec.name for spec in specs]
    parser.add_argument(
        "--operator", action="append", choices=names, metavar="NAME", help="only this one; repeatable"
    )
    arguments = parser.parse_args()
    specs = [spec for spec in specs if spec.name in (arguments.operator or names)]
    if arguments.what == "export":
        return export(specs, arguments.folder)
    return score(specs, arguments.folder, hidden=arguments.hidden)


def export(specs: list[OpSpec], folder: Path) -> int:
    """Write an answer for each operator that the rules cover."""
    folder.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        try:
            verified = verify(parse(drafted(spec)), interface_of(spec), spec.cases)
            text = answer_of(lower(verified), spec).text
        except (NotCoveredError, StagedError, MisuseError) as error:
            print(f"{spec.name}: {error}")
            continue
        (folder / f"{task_of(spec.name)}.txt").write_text(fenced(text, "python"), encoding="utf-8")
    return 0


def score(specs: list[OpSpec], folder: Path, *, hidden: bool) -> int:
    """Evaluate the answer for each operator, and print the table by category."""
    evaluator = InProcessEvaluator(SimulatorBackend(cache_root()))
    problems: dict[str, list[str]] = defaultdict(list)
    found = [_first(spec, folder, evaluator, hidden=hidden, problems=problems) for spec in specs]
    evaluator.close()
    for name, told in problems.items():
        print(f"{name}: {told[0]}")
    print(category_table(f"Answers of {folder}", found).markdown)
    return 0


def _first(
    spec: OpSpec,
    folder: Path,
    evaluator: InProcessEvaluator,
    *,
    hidden: bool,
    problems: dict[str, list[str]],
) -> FirstCandidate:
    paths = [folder / f"{task_of(spec.name)}{ending}" for ending in _ENDINGS]
    path = next((each for each in paths if each.exists()), None)
    failed = FirstCandidate(spec.op_id, spec.category, built=False, factor=0.0)
    if path is None:
        problems[spec.name].append("there is no answer")
        return failed
    try:
        candidate = candidate_of(read_answer(path.read_text(encoding="utf-8")), spec)
    except MisuseError as error:
        problems[spec.name].append(str(error))
        return failed
    cases = tuple(case.case_id for case in spec.hidden_cases) if hidden else ()
    result, eager = (_evaluated(evaluator, spec, each, cases) for each in (candidate, spec.baseline))
    problems[spec.name].extend(str(each) for each in result.all_diagnostics[:1] if result.latency_us is None)
    if not problems[spec.name]:
        del problems[spec.name]
    factor = (eager.latency_us or 0.0) / result.latency_us if result.latency_us else 0.0
    built = result.status is not Status.BUILD_ERROR
    return FirstCandidate(spec.op_id, spec.category, built=built, factor=factor)


def _evaluated(
    evaluator: InProcessEvaluator, spec: OpSpec, candidate: Candidate, cases: tuple[str, ...]
) -> EvalResult:
    evaluator.submit(request_for(spec, candidate, MeasureProtocol(), cases))
    ((_, result),) = evaluator.poll(600.0)
    return result


if __name__ == "__main__":
    raise SystemExit(main())

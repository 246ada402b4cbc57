"""Answers of MultiKernelBench scored here, and programs of the rules written as its answers.

    python benchmarks/methods/multi_kernel_bench.py score DIR [--hidden] [--operator NAME ..]
    python benchmarks/methods/multi_kernel_bench.py export DIR [--operator NAME ..]

``DIR`` holds a file ``TASK.txt`` or ``TASK.py`` for each task, as its ``output/ascendc/.../run0`` does.
Answers are read as data; their operators are evaluated like any candidate. Tasks without a file have failed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craft_scoring import Score, evaluated, score_of, table_of

from agents.ascend_craft.draft import drafted
from agents.ascend_craft.synthesis.graph import NotCoveredError
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import OpSpec
from ascend_gym.report.generation import PAPER
from ascend_gym.report.kernel_bench_answers import answer_of, candidate_of, read_answer, task_of
from ascend_gym.rewrites.fenced import fenced
from ascend_gym.staged.lower import lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.syntax import StagedError
from ascend_gym.staged.verify import verify
from ascend_gym.suite.loader import list_operators
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
    scores = [_scored(spec, folder, evaluator, hidden=hidden) for spec in specs]
    evaluator.close()
    for spec, each in zip(specs, scores, strict=True):
        if each.problem:
            print(f"{spec.name}: {each.problem}")
    print(table_of(scores))
    return 0


def _scored(spec: OpSpec, folder: Path, evaluator: InProcessEvaluator, *, hidden: bool) -> Score:
    paths = [folder / f"{task_of(spec.name)}{ending}" for ending in _ENDINGS]
    path = next((each for each in paths if each.exists()), None)
    if path is None:
        return Score(spec.category, problem="there is no answer")
    try:
        candidate = candidate_of(read_answer(path.read_text(encoding="utf-8")), spec)
    except MisuseError as error:
        return Score(spec.category, problem=str(error))
    return score_of(spec, evaluated(evaluator, spec, candidate, hidden=hidden), hidden=hidden)


if __name__ == "__main__":
    raise SystemExit(main())

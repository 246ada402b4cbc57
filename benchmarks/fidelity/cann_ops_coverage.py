"""How far each operator of a cann-ops checkout gets on the simulator, with the reason where it stops.

Steps, in order: load (folder understood), host (tiling code compiles), definition (it registers the
operator), kernel (device code compiles), data (inputs and golden outputs), tiling (the tiling function
decides), run (every block executes), correct (outputs agree with the golden ones), price. Each operator is
measured in a process of its own with a time limit. Progress goes to standard error; the counts close the
table on standard output.

With ``--larger`` the examples run at larger, unaligned shapes instead: their literals are rewritten in a copy
of the checkout: to the shapes that ``cann_ops_larger.toml`` chooses for the operator, otherwise by the rules
of ``enlarged_examples.py``, tried in order until one is complete. The reason says which rule it was,
or how far each got.

Several chips are tried in order until the operator completes on one: some tiling structures have room for
the 40 cores of a 910B3 only.

    python benchmarks/fidelity/cann_ops_coverage.py --cann-ops DIR [--op NAME ...] [--larger]
        [--chip NAME ...] [--json FILE [--resume]]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from enlarged_examples import RULES, enlarge_example, resize_example

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, MeasureProtocol, Phase, TensorSpec
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.cann_cases import own_case_folder
from ascend_gym.suite.imported import EXAMPLE_FOLDER, imported_place, paper_levels, select_operators
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity
from npu_daemon.importer.writing import write_example

STEPS = ("load", "host", "definition", "kernel", "data", "tiling", "run", "correct", "price")
COMPLETE = "complete"
_PAPER = frozenset(paper_levels())
_MATMUL = frozenset(Path(__file__).with_name("cann_ops_matmul.txt").read_text(encoding="ascii").split())
LARGER = Path(__file__).with_name("cann_ops_larger.toml")
CHOSEN = "chosen"
NOT_LARGER = "the example stays as it is"
INPUT_SEED = 0
_BUILD_STEP = {Phase.BUILD_TILING: "host", Phase.BUILD_KERNEL: "kernel", Phase.GUARD: "kernel"}
_RUN_STEP = {Phase.RUN_TILING: "tiling"}
_REASON_LENGTH = 220

Outcome = tuple[str, str]  # the step that failed and why, or COMPLETE and the shapes of the tensors


def main() -> int:
    """Measure every selected operator, print the table and return the exit status."""
    arguments = _parse()
    if arguments.child:
        step, reason = measure(Path(arguments.child), arguments.chip[0])
        print(json.dumps({"stopped_at": step, "reason": reason}))
        return 0
    checkout = arguments.cann_ops.resolve()
    listed = sorted(
        (_PAPER - _MATMUL if arguments.paper else set()) | (_MATMUL if arguments.matmul else set())
    )
    folders = list(select_operators(checkout, [*arguments.op, *listed]).values())
    rows = _earlier(arguments.json) if arguments.resume else []
    measured_before = {row["operator"] for row in rows}
    with tempfile.TemporaryDirectory(prefix="ascend-gym-larger-") as scratch:
        copy = _copied(checkout, Path(scratch)) if arguments.larger else None
        for number, folder in enumerate(folders, start=1):
            if folder.name in measured_before:
                continue
            if copy is None:
                measured = partial(_measure_apart, folder, arguments.limit_s)
            else:
                larger = copy / folder.relative_to(checkout)
                measured = partial(_measure_larger, folder, larger, arguments.limit_s)
            started = time.monotonic()
            rows.append(_row(folder, *_first_complete(measured, arguments.chip)))
            rows[-1]["seconds"] = f"{time.monotonic() - started:.1f}"
            _show(rows[-1], number, len(folders))
            if arguments.json:
                arguments.json.write_text(json.dumps(_report(rows), indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    print(summary(rows))
    return 0


def measure(folder: Path, chip: str) -> Outcome:
    """Take one operator as far as it goes."""
    try:
        spec = load_operator(folder.name, op_dir=folder)
    except AscendGymError as error:
        return "load", str(error).removeprefix(f"{folder}/")
    backend = SimulatorBackend(cache_root())
    case, protocol = spec.cases[0], MeasureProtocol(chip=chip)
    built = backend.build(spec, case, spec.baseline, protocol)
    if isinstance(built, Failure):
        definition = built.status is Status.TILING_ERROR
        return "definition" if definition else _step(built, _BUILD_STEP, "host"), _reason(built)
    try:
        oracle = oracle_for(spec)
        data = CaseDataCache(cache_root() / "coverage", harness_identity()).obtain(
            spec, oracle, case, INPUT_SEED
        )
    except AscendGymError as error:
        return "data", str(error)
    run = backend.run(built, case, data.input_files, protocol)
    if isinstance(run, Failure):
        return _step(run, _RUN_STEP, "run"), _reason(run)
    try:
        verdict = oracle.judge(case, run.outputs, data.expected)
        if not verdict.correct:
            return "correct", verdict.message
        priced = backend.measure(run, case, protocol)
    finally:
        backend.cleanup(run)
    return ("price", _reason(priced)) if isinstance(priced, Failure) else (COMPLETE, _shapes(case))


def table(rows: Sequence[dict[str, str]]) -> str:
    """Return a Markdown table with one line per operator."""
    lines = ["| operator | category | chip | stops at | reason |", "|---|---|---|---|---|"]
    for row in rows:
        reason = row["reason"].replace("|", "\\|")
        place = f"{row['operator']} | {row['category']} | {row['chip']}"
        lines.append(f"| {place} | {row['stopped_at']} | {reason} |")
    return "\n".join(lines)


def summary(rows: Sequence[dict[str, str]]) -> str:
    """Return the counts: how many operators got past each step, of all and of each list."""
    lists = {"paper": _PAPER - _MATMUL, "paper, cube": _PAPER & _MATMUL, "matmul": _MATMUL}
    groups = {"all": rows}
    for name, listed in lists.items():
        groups[name] = [row for row in rows if row["operator"] in listed]
    lines = [f"| operators | count | {' | '.join(STEPS)} |", "|---|---|" + "---|" * len(STEPS)]
    for name, members in groups.items():
        counts = " | ".join(str(passed) for passed in passed_steps(members).values())
        lines.append(f"| {name} | {len(members)} | {counts} |")
    return "\n" + "\n".join(lines)


def passed_steps(rows: Sequence[dict[str, str]]) -> dict[str, int]:
    """Return, for each step, how many operators passed it."""
    stopped = Counter(row["stopped_at"] for row in rows)
    counts, left = {}, len(rows)
    for step in STEPS:
        left -= stopped[step]
        counts[step] = left
    return counts


def _copied(checkout: Path, scratch: Path) -> Path:
    shutil.copytree(checkout / "src", scratch / "src", symlinks=True)
    return scratch


def _measure_larger(folder: Path, copy: Path, limit_s: float, chip: str) -> Outcome:
    """Measure a copy of an operator at larger shapes: chosen ones, or by the first rule that completes."""
    if own_case_folder(folder) is not None:
        return "load", "it runs at a case of ours: there is no example to enlarge"
    own = read_toml(LARGER).get(folder.name)
    try:
        shapes = _example_shapes(folder)
    except AscendGymError as error:
        return "load", str(error).removeprefix(f"{folder}/")
    outcomes = {}
    for rule in [CHOSEN] if own else RULES:
        shutil.copytree(folder / EXAMPLE_FOLDER, copy / EXAMPLE_FOLDER, dirs_exist_ok=True)
        if own:
            chosen = {tuple(old): tuple(new) for old, new in own.get("shapes", [])}
            resize_example(copy / EXAMPLE_FOLDER, chosen, own.get("edits", []))
        else:
            enlarge_example(copy / EXAMPLE_FOLDER, shapes, rule)
        grew = _grew(copy, shapes)
        outcomes[rule] = _measure_apart(copy, limit_s, chip) if grew else (STEPS[0], NOT_LARGER)
        remove_tree(imported_place(copy))
        if outcomes[rule][0] == COMPLETE:
            return COMPLETE, f"{rule}: {outcomes[rule][1]}"
    best = max(outcomes.values(), key=lambda outcome: STEPS.index(outcome[0]))[0]
    return best, "; ".join(f"{rule}: {step} {reason}" for rule, (step, reason) in outcomes.items())


def _example_shapes(folder: Path) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of all tensors of an example."""
    with tempfile.TemporaryDirectory(prefix="ascend-gym-shapes-") as target:
        return write_example(folder, Path(target), 1).shapes


def _first_complete(measured: Callable[[str], Outcome], chips: Sequence[str]) -> tuple[str, Outcome]:
    """Return the first chip on which an operator completes, and how; else the first one and what it said."""
    tried = {}
    for chip in chips:
        tried[chip] = measured(chip)
        if tried[chip][0] == COMPLETE:
            return chip, tried[chip]
    return chips[0], tried[chips[0]]


def _grew(copy: Path, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Say whether the example of a copy works on more elements than the given shapes have."""
    try:
        grown = _example_shapes(copy)
    except AscendGymError:
        return True  # measuring says what is wrong
    return sum(map(math.prod, grown)) > sum(map(math.prod, shapes))


def _measure_apart(folder: Path, limit_s: float, chip: str) -> Outcome:
    command = [sys.executable, "-P", __file__, "--child", str(folder), "--chip", chip]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=limit_s)
        answer: dict[str, str] = json.loads(output.splitlines()[-1])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return STEPS[0], f"measuring took longer than {limit_s:g} s"
    except (IndexError, ValueError):
        last = (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        return STEPS[0], f"measuring failed: {last}"
    return answer["stopped_at"], " ".join(answer["reason"].split())[:_REASON_LENGTH]


def _row(folder: Path, chip: str, outcome: Outcome) -> dict[str, str]:
    step, reason = outcome
    return {
        "operator": folder.name,
        "category": folder.parent.name,
        "chip": chip,
        "stopped_at": step,
        "reason": reason,
    }


def _step(failure: Failure, steps: dict[Phase, str], otherwise: str) -> str:
    return steps.get(failure.diagnostics[0].phase, otherwise)


def _shapes(case: Case) -> str:
    inputs = [tensor for tensor in case.inputs if not tensor.optional_absent]
    return f"{_counted(inputs)} to {_counted(case.outputs)}"


def _counted(tensors: Sequence[TensorSpec]) -> str:
    shapes = Counter(str(shape) for tensor in tensors for shape in tensor.shapes)
    return " ".join(f"{count} x {shape}" if count > 1 else shape for shape, count in shapes.items())


def _reason(failure: Failure) -> str:
    return f"{failure.status.value}: {failure.diagnostics[0]}"


def _earlier(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    rows: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["operators"]
    return rows


def _report(rows: Sequence[dict[str, str]]) -> dict[str, object]:
    return {"passed": passed_steps(rows), "count": len(rows), "operators": list(rows)}


def _show(row: dict[str, str], number: int, total: int) -> None:
    line = f"[{number}/{total}] {row['operator']}: {row['stopped_at']} {row['reason']}"
    print(line, file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-ops", type=Path, metavar="DIR", help="the checkout")
    parser.add_argument("--op", nargs="+", default=[], metavar="NAME", help="only these operators")
    parser.add_argument("--paper", action="store_true", help="the vector operators of the published list")
    parser.add_argument("--matmul", action="store_true", help="the operators that use the Matmul object")
    parser.add_argument("--larger", action="store_true", help="at larger, unaligned shapes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every operator")
    parser.add_argument(
        "--resume", action="store_true", help="measure only what is not in the file of --json"
    )
    parser.add_argument("--limit-s", type=float, default=240.0, help="wall seconds per operator")
    parser.add_argument("--chip", nargs="+", default=["910B2"], help="chips, tried until one completes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.cann_ops and not arguments.child:
        parser.error("--cann-ops DIR is needed")
    if arguments.resume and not arguments.json:
        parser.error("--resume goes on with the file of --json: name one")
    return arguments


if __name__ == "__main__":
    sys.exit(main())

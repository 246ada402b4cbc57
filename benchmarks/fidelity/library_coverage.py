"""How far each operator of the libraries by domain gets on the simulator, one line an operator.

Each operator is imported, and runs at the smallest case of its manifest, in a process of its own with a time
limit. They are taken in the order of a digest of their names, so that the lines of a sweep that was stopped
are a drawn sample. Lines are kept in a CSV file, which ``--resume`` goes on with; ``--again CLASS`` measures
those of a class once more. The table at the end is what docs/coverage.md shows; without checkouts it is made
of the file alone.

    python benchmarks/fidelity/library_coverage.py --cann-library DIR [DIR ...] --csv FILE [--resume]
        [--again CLASS ...] [--op NAME ...] [--jobs 2] [--slice-s 540] [--chip 910B2]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import AscendGymError, OperatorFormatError
from ascend_gym.core.protocols import Failure, Oracle
from ascend_gym.core.records import Case, MeasureProtocol, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.domain_library import operator_folders, read_library_operator
from ascend_gym.suite.imported import imported_place
from ascend_gym.suite.inputs import numpy_dtype
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.baseline_oracle import BaselineOracle
from npu_daemon.case_data import CaseDataCache
from npu_daemon.harness import harness_identity
from npu_daemon.importer.library import NO_REFERENCE

COLUMNS = ("library", "operator", "part", "reference", "class", "case", "seconds", "cause", "no_reference")
CLASSES = {
    "right": "agrees with its reference",
    "runs": "builds, runs and is priced; its authors left no reference",
    "wrong": "runs, and differs from its reference",
    "run fault": "the kernel stops at a fault: bounds, alignment, a race, a call used against its page",
    "run limit": "more simulated work than a run may take",
    "tiling": "the tiling function refuses the case or fails",
    "kernel build": "the kernel does not compile",
    "host build": "the tiling program does not compile",
    "no case": "neither tests nor examples say a case that the importer understands",
    "other chip": "not configured for the 910B",
    "not reached": "the sweep was stopped before it",
    "sources": "the folder has no tiling function or kernel for the 910B that is found",
}
_INPUT_SEED = 0
_CAUSE_LENGTH = 300
_BUILD_CLASS = {Phase.BUILD_TILING: "host build", Phase.RUN_TILING: "tiling"}
_LIMITS = (Status.RESOURCE_LIMIT, Status.TIMEOUT)


def main() -> int:
    """Measure every selected operator, write the file, print the counts."""
    arguments = _parse()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.chip)))
        return 0
    rows = {(row["library"], row["operator"]): row for row in _earlier(arguments)}
    waiting = []
    for root in arguments.cann_library:
        for name, folder in operator_folders(root.resolve()).items():
            earlier = rows.get((root.resolve().name, name))
            if not to_measure(earlier, name, arguments.again, arguments.op):
                continue
            try:
                read_library_operator(folder, root.resolve())
            except OperatorFormatError as error:
                _keep(rows, root.resolve(), name, folder, not_imported(str(error)))
                continue
            waiting.append((digest_of("drawn", root.resolve().name, name), root.resolve(), name, folder))
    waiting.sort(key=lambda each: each[0])
    for _, root, name, folder in waiting:
        if (root.name, name) not in rows:
            _keep(rows, root, name, folder, {"class": "not reached", "cause": ""})
    ends_s = time.monotonic() + arguments.slice_s

    def measured(folder: Path) -> dict[str, str] | None:
        in_time = time.monotonic() < ends_s
        return _measure_apart(folder, arguments.chip, arguments.limit_s) if in_time else None

    with ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = {pool.submit(measured, folder): (root, name, folder) for _, root, name, folder in waiting}
        for number, task in enumerate(as_completed(tasks), start=1):
            told_fields = task.result()
            if told_fields is None:
                continue
            row = _keep(rows, *tasks[task], told_fields)
            told = (
                f"[{number}/{len(waiting)}] {row['library']}/{row['operator']}: {row['class']} {row['cause']}"
            )
            print(told, file=sys.stderr, flush=True)
            _write(arguments.csv, rows.values())
    _write(arguments.csv, rows.values())
    print(summary(list(rows.values())))
    return 0


def not_imported(needs: str) -> dict[str, str]:
    """Return the class and cause of an operator that was not imported."""
    if "it is for Ascend 950 alone" in needs or "it is configured for" in needs:
        return {"class": "other chip", "cause": needs}
    no_case = re.search(r"no case|golden|reference", needs)
    return {"class": "no case" if no_case else "sources", "cause": needs}


def measure(folder: Path, chip: str) -> dict[str, str]:
    """Take one operator as far as it goes, at its smallest case; return the fields of its line."""
    try:
        spec = load_operator(folder.name, op_dir=folder)
    except AscendGymError as error:
        return not_imported(str(error).replace(f"{folder}/", "").removeprefix(f"{folder}: "))
    case = min(spec.cases, key=_case_bytes)
    told = {"reference": "none" if spec.reference == "baseline" else "golden", "case": case.case_id}
    if spec.reference == "baseline":
        told["no_reference"] = no_reference(imported_place(folder) / "op.toml")
    backend, protocol = SimulatorBackend(cache_root()), MeasureProtocol(chip=chip)
    built = backend.build(spec, case, spec.baseline, protocol)
    if isinstance(built, Failure):
        return told | _failed(built, "kernel build")
    oracle: Oracle = oracle_for(spec)
    if spec.reference == "baseline":
        oracle = BaselineOracle(oracle, spec, backend, protocol)
    try:
        data = CaseDataCache(cache_root() / "coverage", harness_identity()).obtain(
            spec, oracle, case, _INPUT_SEED
        )
    except AscendGymError as error:
        return told | _of_own_sources(str(error))
    run = backend.run(built, case, data.input_files, protocol)
    if isinstance(run, Failure):
        return told | _failed(run, "run fault")
    try:
        verdict = oracle.judge(case, run.outputs, data.expected)
        if not verdict.correct:
            return told | {"class": "wrong", "cause": verdict.message}
        priced = backend.measure(run, case, protocol)
    finally:
        backend.cleanup(run)
    if isinstance(priced, Failure):
        return told | _failed(priced, "run fault")
    return told | {"class": "right" if told["reference"] == "golden" else "runs", "cause": ""}


def no_reference(manifest: Path) -> str:
    """Return why an imported operator has no reference: what the first comment of its manifest says."""
    first = manifest.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return first.removeprefix(NO_REFERENCE) if first.startswith(NO_REFERENCE) else ""


def _of_own_sources(said: str) -> dict[str, str]:
    """Return class and cause where the operator's own sources, which are its reference, do not run."""
    found = re.search(r"own sources do not run: (\w+): (.*)", said, re.DOTALL)
    if found is None:
        return {"class": "no case", "cause": said}
    kind = "tiling" if "[run_tiling]" in found[2] else "run fault"
    limited = kind == "run fault" and Status(found[1]) in _LIMITS
    return {"class": "run limit" if limited else kind, "cause": f"{found[1]}: {found[2]}"}


def _case_bytes(case: Case) -> int:
    tensors = [each for each in (*case.inputs, *case.outputs) if not each.optional_absent]
    return sum(sum(map(math.prod, each.shapes)) * numpy_dtype(each.dtype).itemsize for each in tensors)


def _failed(failure: Failure, otherwise: str) -> dict[str, str]:
    first = failure.diagnostics[0]
    kind = _BUILD_CLASS.get(first.phase, otherwise)
    if first.phase is Phase.GUARD and "the host code" in first.message:
        kind = "host build"
    if failure.status in _LIMITS and kind == "run fault":
        kind = "run limit"
    return {"class": kind, "cause": f"{failure.status.value}: {first}"}


def _measure_apart(folder: Path, chip: str, limit_s: float) -> dict[str, str]:
    """Measure in another process, which is ended after ``limit_s`` seconds."""
    command = [sys.executable, "-P", __file__, "--child", str(folder), "--chip", chip]
    started_s = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, errors = process.communicate(timeout=limit_s)
        answer: dict[str, str] = json.loads(output.splitlines()[-1])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        answer = {"class": "run limit", "cause": f"measuring took longer than {limit_s:g} s"}
    except (IndexError, ValueError):
        last = (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        answer = {"class": "run fault", "cause": f"measuring failed: {last}"}
    return answer | {"seconds": f"{time.monotonic() - started_s:.0f}"}


def _keep(
    rows: dict[tuple[str, str], dict[str, str]], root: Path, name: str, folder: Path, told: dict[str, str]
) -> dict[str, str]:
    part = "experimental" if folder.is_relative_to(root / "experimental") else "stable"
    row = {"library": root.name, "operator": name, "part": part, "reference": "", "case": "", "seconds": ""}
    row |= told
    for field in ("cause", "no_reference"):
        row[field] = " ".join(row.get(field, "").replace(f"{root}/", "").split())[:_CAUSE_LENGTH]
    rows[root.name, name] = row
    return row


def summary(rows: Sequence[dict[str, str]]) -> str:
    """Return a Markdown table: operators of each part by class, and the shares that run and are right."""
    parts = sorted(
        {(row["library"], row["part"]) for row in rows}, key=lambda each: (each[1] != "stable", each)
    )
    shown = [name for name in CLASSES if name != "other chip"]
    lines = [
        f"| library | for the 910B | {' | '.join(shown)} | run, of those reached | right, of those judged |",
        "|---|---|" + "---|" * (len(shown) + 2),
    ]
    for part in parts:
        own = [row for row in rows if (row["library"], row["part"]) == part and row["class"] != "other chip"]
        counts = Counter(row["class"] for row in own)
        reached = len(own) - counts["not reached"]
        ran = counts["right"] + counts["runs"] + counts["wrong"]
        judged = sum(row["reference"] == "golden" for row in own)
        lines.append(
            f"| {part[0]}, {part[1]} | {len(own)} | {' | '.join(str(counts[name]) for name in shown)} "
            f"| {_share(ran, reached)} | {_share(counts['right'], judged)} |"
        )
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def to_measure(
    earlier: dict[str, str] | None, name: str, again: Sequence[str], operators: Sequence[str]
) -> bool:
    """Say whether a sweep measures an operator of the given libraries.

    Args:
        earlier: its line in the file, which stays until there is another; ``None`` without one.
        name: of the operator.
        again: classes to measure once more; "not reached" always is.
        operators: names to measure, whatever their class unless ``again`` says some; empty for all.
    """
    if operators and name not in operators:
        return False
    named = bool(operators) and not again
    return earlier is None or named or earlier["class"] in (*again, "not reached")


def _earlier(arguments: argparse.Namespace) -> list[dict[str, str]]:
    """Return the lines of the file that the sweep starts from."""
    if not (arguments.resume or not arguments.cann_library) or not arguments.csv.is_file():
        return []
    with arguments.csv.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["library"], row["part"], row["operator"])))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-library", nargs="+", type=Path, default=[], metavar="DIR", help="checkouts")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="rewritten after every operator")
    parser.add_argument("--resume", action="store_true", help="keep what is in the file")
    parser.add_argument("--again", nargs="+", default=[], metavar="CLASS", help="but for these classes")
    parser.add_argument("--op", nargs="+", default=[], metavar="NAME", help="only these, of any class")
    parser.add_argument("--jobs", type=int, default=1, help="operators at a time")
    parser.add_argument("--limit-s", type=float, default=240.0, help="wall seconds per operator")
    parser.add_argument("--slice-s", type=float, default=math.inf, help="begin no operator after so many")
    parser.add_argument("--chip", default="910B2")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.child and not arguments.csv:
        parser.error("--csv FILE is needed")
    return arguments


if __name__ == "__main__":
    sys.exit(main())

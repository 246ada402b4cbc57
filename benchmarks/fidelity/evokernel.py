"""Runs whole operators of EvoKernel, which a 910B compiled and ran, and compares verdicts and times.

EvoKernel (arXiv 2603.10846) publishes operators that language models wrote, with what an Ascend 910B said
of each: whether it compiled, whether it was right, and milliseconds of a framework's call. The folder is
that of the data set, with ops-*-910b and pytorch-references. Arguments and expected tensors come from the
references, which run confined (evokernel_reference.py; they need torch); bindings are read, not compiled
(evokernel_binding.py). Where a whole case is too large to simulate, its batch is made smaller, if binding and
tiling take that. Values are right within 1e-2, absolute and relative, as the data set judges; outputs that
are all zero are wrong.

    python benchmarks/fidelity/evokernel.py --evokernel DIR --work DIR [--only NAME ..] [--timeout S]

``--work`` keeps cases and rows; a second call goes on where the first one ended.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from evokernel_rows import RIGHT, TIMEOUT, UNKNOWN, WRONG, Row, judged, keep, table

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.protocols import Built, Failure, RunOutput
from ascend_gym.core.records import Candidate, Case, DType, MeasureProtocol, OpSpec, TensorSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.sources import read_candidate
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.importer.record import python_folders, run_confined
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.host_schema import DefinitionError, OperatorDefinition
from npu_daemon.simulator.host_side import build_host, describe_operator

CHIP = "910B2"
GUESSED = 0.4  # least likeness of names that tells arguments
MOST_MS = 5.0  # device's time of a case that is made smaller
WHOLE_MS = 100.0  # longest device's time of a case as it is
MOST_ELEMENTS = 1 << 24  # of the inputs of a case; of larger ones the batch is made smaller
WHOLE_ELEMENTS = 1 << 25  # of inputs and parameters of a case as it is
_PREPARE_S = 180.0  # for each operator
_TOGETHER = 12  # operators whose references are run by one process
_REFERENCE = Path(__file__).with_name("evokernel_reference.py")
_INCLUDE = re.compile(r'^[ \t]*#include[ \t]*"(?P<name>\w+_tiling\.h)"', re.M)


@dataclass(frozen=True)
class Operator:
    """An operator of the data set, its reference, and what the device said."""

    name: str
    folder: Path
    reference: Path
    compiled: bool
    correct: bool
    device_ms: float


def operators(root: Path) -> list[Operator]:
    """Return the operators of the data set, the quickest on the device first.

    Raises:
        FileNotFoundError: an operator has no reference.
    """
    references = {
        _plain(re.sub(r"^\d+_", "", path.stem)): path for path in (root / "pytorch-references").rglob("*.py")
    }
    found = []
    for path in root.glob("ops-*-910b/*/result.json"):
        said = json.loads(path.read_text(encoding="utf-8"))
        name = path.parent.name
        reference = references.get(_plain(name.removesuffix("Custom")))
        if reference is None:
            raise FileNotFoundError(f"{name}: expected a reference in {root / 'pytorch-references'}")
        device_ms = (said.get("performance") or {}).get("mean") or said.get("mean_ms") or 0.0
        found.append(
            Operator(
                name, path.parent, reference, bool(said["compiled"]), bool(said["correctness"]), device_ms
            )
        )
    return sorted(found, key=lambda each: (each.device_ms, each.name))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def prepare(wanted: Sequence[Operator], work: Path, most_elements: int) -> None:
    """Write the cases of operators that have none yet, in a confined process.

    Args:
        wanted: the operators.
        work: folder of the cases.
        most_elements: of the inputs of a case; of a larger one the batch is made smaller.
    """
    jobs = []
    for each in wanted:
        place = work / each.name
        place.mkdir(parents=True, exist_ok=True)
        if (place / "case.json").is_file() or (place / "error.txt").is_file():
            continue
        job = {"name": each.name, "binding": str(each.folder / "CppExtension/csrc/op.cpp")}
        job |= {"reference": str(each.reference), "device_ms": each.device_ms or 1.0}
        limits = {"most_ms": MOST_MS, "whole_ms": WHOLE_MS}
        jobs.append(job | limits | {"most_elements": most_elements, "whole_elements": WHOLE_ELEMENTS})
    if not jobs:
        return
    readable = [*python_folders(), _REFERENCE.parent, *(each.folder for each in wanted)]
    with tempfile.TemporaryDirectory(
        prefix="references-", dir=work
    ) as name:  # its size is watched all the time
        scratch = Path(name)
        (scratch / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        done = run_confined(
            [sys.executable, str(_REFERENCE), "jobs.json"],
            cwd=scratch,
            wall_s=_PREPARE_S * len(jobs),
            readable=[*readable, *(each.reference for each in wanted)],
            env={"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        for job in jobs:
            for written in (scratch / job["name"]).glob("*"):
                shutil.move(written, work / job["name"] / written.name)
    if done.returncode != 0:
        print(done.stderr.decode("utf-8", "replace")[-2000:], file=sys.stderr)


class Runner:
    """Builds and runs operators with one backend."""

    def __init__(self, work: Path, timeout_s: float) -> None:
        self._work = work
        self._backend = SimulatorBackend(cache_root(), CHIP)
        self._protocol = MeasureProtocol(
            chip=CHIP, run_timeout_s=timeout_s, memory_limit_bytes=8 << 30, output_limit_bytes=4 << 30
        )

    def row(self, operator: Operator) -> Row:
        """Build an operator, run its case if it has one, and return what comes of it."""
        row = Row(operator.name, _of_device(operator), device_ms=operator.device_ms)
        place = self._work / operator.name
        started = time.monotonic()
        try:
            self._fill(row, operator, place)
        except (AscendGymError, DefinitionError, ValueError) as error:
            row.here, row.why = "not read", str(error)[:300]
        row.seconds = round(time.monotonic() - started, 1)
        return row

    def _fill(self, row: Row, operator: Operator, place: Path) -> None:
        candidate = read_candidate(_copy(operator.folder, place / "operator"), _main_name(operator.folder))
        definition = self._definition(candidate, place)
        if isinstance(definition, Failure):
            row.here, row.why = definition.status.value, _why(definition)
            return
        case, files, expected = self._case(row, definition, place)
        spec = OpSpec(
            op_id=f"evokernel/{operator.name.lower()}",
            op_type=definition.op_type,
            folder=str(place),
            level=1,
            category="generated",
            description=operator.name,
            auto_sync=True,
            cases=(case,),
            baseline=candidate,
            folder_digest="0",
        )
        built = self._backend.build(spec, case, candidate, self._protocol)
        if isinstance(built, Failure):
            row.here, row.why = built.status.value, _why(built)
            return
        if files:
            self._run(row, built, case, files, expected)

    def _case(
        self, row: Row, definition: OperatorDefinition, place: Path
    ) -> tuple[Case, list[list[Path]], list[Path]]:
        """Return the case that was prepared, its inputs and expected outputs; no files if there is none."""
        case_file, error = place / "case.json", place / "error.txt"
        if not case_file.is_file():
            row.why = (
                error.read_text(encoding="utf-8")[:300] if error.is_file() else "the reference did not end"
            )
            return _smallest_case(definition), [], []
        said = json.loads(case_file.read_text(encoding="utf-8"))
        row.alike = round(said["alike"], 2)
        row.sizes = (place / "sizes.json").read_text(encoding="utf-8")
        case, files = case_of(definition, said["arguments"], place)
        return case, files, [place / name for name in said["expected"]]

    def _run(self, row: Row, built: Built, case: Case, files: list[list[Path]], expected: list[Path]) -> None:
        """Run the case, in program order where that is a race, and judge its outputs."""
        run = self._backend.run(built, case, files, self._protocol)
        race = ""
        if isinstance(run, Failure):
            row.here = TIMEOUT if run.status is Status.TIMEOUT else run.status.value
            row.why = _why(run)
            if "race on" not in row.why:
                return
            race, run = row.here, self._backend.run(built, case, files, self._protocol, rerun=1)
            if isinstance(run, Failure):
                row.in_order = _why(run)
                return
        try:
            self._judge(row, run, expected)
        finally:
            self._backend.cleanup(run)
        if row.here == WRONG and (row.alike < GUESSED or not expected):
            row.here, row.why = UNKNOWN, row.why or "the arguments are guessed"
        if race:
            row.here, row.in_order = race, row.here

    def _definition(self, candidate: Candidate, place: Path) -> OperatorDefinition | Failure:
        toolchain = self._backend.toolchain
        scratch = place / "host"
        scratch.mkdir(exist_ok=True)
        library = build_host(candidate.host, scratch, toolchain.host_folder)
        if isinstance(library, Failure):
            return library
        return describe_operator(library, load_chip(CHIP).tiling_geometry(), toolchain.host_folder)

    def _judge(self, row: Row, run: RunOutput, expected: Sequence[Path]) -> None:
        values = [np.fromfile(path, np.float32) for path in expected]
        outputs = [np.asarray(one, np.float32).reshape(-1) for group in run.outputs for one in group]
        worst = 0.0
        for output in outputs:
            row.here, error = judged(output, values)
            worst = max(worst, error)
            if row.here != RIGHT:
                break
        row.error = worst
        if not values:
            row.why = "no tensor of the reference has as many elements"
        price = self._backend.price(run, load_chip(CHIP))
        if isinstance(price, Failure):
            row.why = row.why or _why(price)
            return
        row.task_us = round(float(price["task_us"]), 2)
        row.cores = run.handle.tiling.block_dim


def case_of(
    definition: OperatorDefinition, arguments: Sequence[dict[str, Any]], place: Path
) -> tuple[Case, list[list[Path]]]:
    """Return the case of a call, and the files of its inputs.

    Args:
        definition: of the operator.
        arguments: of the call: inputs, attributes and outputs, each kind in the order of the definition.
        place: folder of the files.

    Raises:
        DefinitionError: there are fewer or more tensors than the operator has.
    """
    numbers = [one["number"] for one in arguments if "number" in one]
    tensors = [one for one in arguments if "number" not in one]
    parameters = [*definition.inputs, *definition.outputs]
    if len(tensors) != len(parameters):
        raise DefinitionError(f"the call has {len(tensors)} tensors, the definition {len(parameters)}")
    specs = [
        TensorSpec(name=parameter.name, dtype=DType(one["dtype"]), shapes=(tuple(one["shape"]),))
        for parameter, one in zip(parameters, tensors, strict=True)
    ]
    cut = len(definition.inputs)
    attributes = {}
    for attribute, value in zip(definition.attributes, numbers, strict=False):
        convert = {"float": float, "int": int, "bool": bool}.get(attribute.type, lambda same: same)
        attributes[attribute.name] = tuple(value) if isinstance(value, list) else convert(value)
    case = Case(
        case_id="reference", inputs=tuple(specs[:cut]), outputs=tuple(specs[cut:]), attributes=attributes
    )
    return case, [[place / one["file"]] for one in tensors[:cut]]


def _smallest_case(definition: OperatorDefinition) -> Case:
    """Return a case to build for, with the element types of the first column."""
    column = definition.dtype_columns()[0]
    types = {"DT_FLOAT": "float32", "DT_BF16": "bfloat16"}
    sides = []
    for parameters, slots in ((definition.inputs, column.inputs), (definition.outputs, column.outputs)):
        sides.append(
            tuple(
                TensorSpec(
                    name=parameter.name,
                    dtype=DType(types.get(slot.type, slot.type.removeprefix("DT_").lower())),
                    shapes=((1,),),
                )
                for parameter, slot in zip(parameters, slots, strict=True)
            )
        )
    return Case(case_id="build", inputs=sides[0], outputs=sides[1])


def _copy(folder: Path, place: Path) -> Path:
    """Copy an operator's sources; a tiling header that was exported under another name gets its own, too."""
    shutil.rmtree(place, ignore_errors=True)
    for side in ("op_host", "op_kernel"):
        shutil.copytree(folder / side, place / side)
    headers = list((place / "op_host").glob("*_tiling.h"))
    for source in (place / "op_host").glob("*.cpp"):
        for found in _INCLUDE.finditer(source.read_text(encoding="utf-8")):
            wanted = place / "op_host" / found["name"]
            if not wanted.exists() and len(headers) == 1:
                shutil.copyfile(headers[0], wanted)
    return place


def _main_name(folder: Path) -> str:
    return next((folder / "op_kernel").glob("*.cpp")).stem


def _of_device(operator: Operator) -> str:
    if not operator.compiled:
        return Status.BUILD_ERROR.value
    return RIGHT if operator.correct else WRONG


def _why(failure: Failure) -> str:
    return " ".join(str(failure.diagnostics[0]).split())[:300]


def main() -> int:
    """Run what has no row yet, print the tables and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--evokernel", type=Path, metavar="DIR", required=True, help="the data set")
    parser.add_argument("--work", type=Path, metavar="DIR", required=True, help="keeps cases and rows")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these operators, again")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="for each run; 60 by default"
    )
    parser.add_argument(
        "--most-elements", type=int, metavar="N", default=MOST_ELEMENTS, help="of inputs; larger ones shrink"
    )
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    everything = operators(arguments.evokernel.resolve())
    wanted = [each for each in everything if not arguments.only or each.name in arguments.only]
    file = work / "rows.json"
    rows = [Row(**each) for each in json.loads(file.read_text("utf-8"))] if file.is_file() else []
    rows = [row for row in rows if row.operator not in arguments.only]
    work.mkdir(parents=True, exist_ok=True)
    runner = Runner(work, arguments.timeout)
    pending = [each for each in wanted if each.name not in {row.operator for row in rows}]
    unbound: list[Operator] = []  # only built, when all others were run
    for start in range(0, len(pending), _TOGETHER):
        prepare(pending[start : start + _TOGETHER], work, arguments.most_elements)
        for each in pending[start : start + _TOGETHER]:
            if (work / each.name / "case.json").is_file():
                keep(runner.row(each), rows, file)
            else:
                unbound.append(each)
    for each in unbound:
        keep(runner.row(each), rows, file)
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

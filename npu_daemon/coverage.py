"""Which lines of an operator's own sources its cases reach, on the host and on the device.

The sources are built once more with marks: each basic block says when it is executed that it was reached
(``simulator/kernel_ir/block_marks.py``). Blocks of op_host are those of the source. Blocks of op_kernel are
those that the optimiser leaves, as the verifier reads no others: a branch between two values, which it turns
into a selection, is none. A line is reached when some block that has instructions of it was, in any build for
the element types of a case, on any core. Lines without instructions do not count: declarations, templates
that nobody instantiates, branches that the compiler decides.
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, Diagnostic, MeasureProtocol, OpSpec, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import stored_array, write_array
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.cache_folder import BUILDS_FOLDER
from npu_daemon.simulator.build_cache import BuildCache, KernelBuild
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.host_side import run_tiling
from npu_daemon.simulator.kernel_ir.block_marks import MarkedBlock, reached_numbers, read_marks
from npu_daemon.simulator.kernel_ir.compilation import marks_file
from npu_daemon.simulator.kernel_run import diagnose_run, run_limits, write_job
from npu_daemon.simulator.task_type import CoreKind
from npu_daemon.simulator.toolchain import Toolchain

_FOLDER_OF_KERNELS = "/kernel/"
_TELL = "tells_reached 1\n"


@dataclass(frozen=True)
class FileCoverage:
    """A source file: the lines that instructions were made of, and those of them that some case reached."""

    path: str
    lines: frozenset[int]
    reached: frozenset[int]

    @property
    def missed(self) -> list[tuple[int, int]]:
        """First and last line of each stretch that no case reaches; lines without instructions join them."""
        stretches = groupby(sorted(self.lines), key=lambda line: line in self.reached)
        missed = [list(stretch) for is_reached, stretch in stretches if not is_reached]
        return [(stretch[0], stretch[-1]) for stretch in missed]


@dataclass(frozen=True)
class Coverage:
    """What the cases of an operator reach.

    Attributes:
        files: of its sources that instructions were made of, by path.
        failures: case and reason for each that could not be run.
    """

    files: tuple[FileCoverage, ...]
    failures: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return what to tell: lines reached of each side, places that no case reaches, cases that fail."""
        sides = []
        for side, kernel in (("op_host", False), ("op_kernel", True)):
            files = [each for each in self.files if ("op_kernel/" in each.path) is kernel]
            reached, all_lines = (
                sum(map(len, kind)) for kind in ([f.reached for f in files], [f.lines for f in files])
            )
            sides.append(f"{side} {reached} of {all_lines} lines")
        lines = [f"reached: {', '.join(sides)}"]
        lines += [f"no case reaches {place}" for place in self.missed()]
        return [*lines, *(f"not run: {failure}" for failure in self.failures)]

    def missed(self) -> list[str]:
        """Return the places that no case reaches, as ``FILE:FIRST-LAST``."""
        return [f"{each.path}:{_stretch(*lines)}" for each in self.files for lines in each.missed]

    def document(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        counts = {each.path: [len(each.reached), len(each.lines)] for each in self.files}
        return {"reached_of_lines": counts, "missed": self.missed(), "failures": list(self.failures)}


@dataclass
class _Tally:
    """Lines by file, as runs report them."""

    paths: frozenset[str]
    lines: dict[str, set[int]] = field(default_factory=dict)
    reached: dict[str, set[int]] = field(default_factory=dict)

    def add(self, blocks: Sequence[MarkedBlock], numbers: set[int]) -> None:
        """Add the blocks of a library and the numbers of those that were reached."""
        for number, block in enumerate(blocks):
            for file, line in block:
                path = posixpath.normpath(file.removeprefix(_FOLDER_OF_KERNELS))
                if path in self.paths:
                    self.lines.setdefault(path, set()).add(line)
                    self.reached.setdefault(path, set()).update({line} if number in numbers else ())

    def files(self) -> tuple[FileCoverage, ...]:
        """Return the lines so far."""
        return tuple(
            FileCoverage(path, frozenset(lines), frozenset(self.reached[path]))
            for path, lines in sorted(self.lines.items())
        )


def coverage_of(spec: OpSpec, cache_dir: Path, toolchain: Toolchain, protocol: MeasureProtocol) -> Coverage:
    """Build an operator's own sources with marks, run its cases, and return what they reach.

    Args:
        spec: the operator.
        cache_dir: where builds are kept.
        toolchain: of the simulator.
        protocol: chip, limits, and the seed of the inputs.

    Raises:
        OperatorFormatError: inputs cannot be drawn.
    """
    builds = BuildCache(cache_dir / BUILDS_FOLDER, toolchain, marked=True)
    files = (*spec.baseline.host.files, *spec.baseline.kernel.files)
    tally, failures = _Tally(frozenset(file.path for file in files)), []
    for case in (*spec.cases, *spec.hidden_cases):
        failure = _run_case(spec, case, builds, toolchain, protocol, tally)
        if failure is not None:
            reason = "; ".join(str(each) for each in failure.diagnostics)
            failures.append(f"case {case.case_id}: {failure.status.value}: {reason}")
    return Coverage(tally.files(), tuple(failures))


def _run_case(
    spec: OpSpec,
    case: Case,
    builds: BuildCache,
    toolchain: Toolchain,
    protocol: MeasureProtocol,
    tally: _Tally,
) -> Failure | None:
    """Run one case and add what it reaches; return why it does not run to its end."""
    chip = load_chip(protocol.chip)
    kernel = builds.candidate(spec, case, spec.baseline, chip, protocol)
    if isinstance(kernel, Failure):
        return kernel
    for library in (kernel.host.library, *kernel.libraries.values()):  # lines count also where the run fails
        tally.add(read_marks(marks_file(library)), set())
    with tempfile.TemporaryDirectory(prefix="ascend-gym-coverage-") as name:
        folder = Path(name)
        inputs = _written_inputs(spec, case, protocol.input_seed, folder)
        geometry = chip.tiling_geometry(kernel.libraries.keys())
        tiling = run_tiling(
            kernel.host.library,
            kernel.host.definition,
            case,
            geometry,
            folder,
            toolchain.host_folder,
            input_files=inputs,
        )
        if isinstance(tiling, Failure):
            return tiling
        tally.add(read_marks(marks_file(kernel.host.library)), reached_numbers(tiling.reached))
        job = write_job(folder, kernel, case, inputs, tiling, chip, protocol)
        try:
            outcome = job.execute_again(toolchain.run_program, run_limits(protocol), _TELL)
        finally:
            job.close()
    failure = diagnose_run(outcome, kernel, protocol, outcome.seconds)
    return failure or _add_kernel(kernel, outcome.stdout.decode("ascii", "replace"), tally)


def _add_kernel(kernel: KernelBuild, printed: str, tally: _Tally) -> Failure | None:
    """Add what a run prints at its end: a line with the digits of vector and of cube cores."""
    rows = [line.split("\t") for line in printed.splitlines() if line.startswith("reached\t")]
    if not rows:
        message = "the kernel prints more than is kept, so that what it reaches is not known: print less"
        complaint = Diagnostic(phase=Phase.RUN_KERNEL, message=message)
        return Failure(Status.RESOURCE_LIMIT, (complaint,))
    _, vector, cube = rows[-1]
    for kind, digits in ((CoreKind.VECTOR, vector), (CoreKind.CUBE, cube)):
        if kind in kernel.libraries:
            tally.add(read_marks(marks_file(kernel.libraries[kind])), reached_numbers(digits))
    return None


def _written_inputs(spec: OpSpec, case: Case, seed: int, folder: Path) -> list[list[Path]]:
    """Write the inputs of a case as memory of the device holds them."""
    written = []
    for number, arrays in enumerate(oracle_for(spec).inputs(case, seed)):
        row = [folder / f"input_{number}_{index}.bin" for index in range(len(arrays))]
        for path, array in zip(row, arrays, strict=True):
            write_array(path, stored_array(array))
        written.append(row)
    return written


def _stretch(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"

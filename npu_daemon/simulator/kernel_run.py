"""One execution of a built kernel: its job description, its files, and what its end means."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, MeasureProtocol, Phase, TensorSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import Array, loaded_array, numpy_dtype, stored_array, write_array
from npu_daemon.processors import WhenIdle
from npu_daemon.sandbox import MemoryFile, ProcessOutcome, Reach, ResourceLimits, run_limited, wall_limit_s
from npu_daemon.simulator.build_cache import KernelBuild
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.host_schema import OperatorDefinition, match_column, match_outputs, match_tensors
from npu_daemon.simulator.host_side import TilingOutcome
from npu_daemon.simulator.places import own_place
from npu_daemon.simulator.run_report import (
    REPORTED_FAULT_EXIT,
    library_lines,
    limit_lines,
    reported_failure,
)

T = TypeVar("T")

RECORD_LIMIT = 20_000_000
_OUTPUT_UNIT_BYTES = 4096
_NOWHERE = "/dev/null"
_ADDRESS_UNIT_BYTES = 2 * 2**20
# At most mapped beside a tensor: 32 B more, the rest of the page, two guard pages (src/runtime/gm.cpp).
_MARGIN_BYTES = 32 + 3 * 4096
_SHAPE_WORDS = 9  # rank and up to eight extents, 64 bits each


@dataclass(frozen=True)
class KernelJob:
    """One run: what it is told, and the two files that it can write to.

    Attributes:
        folder: holds what the run program reads beside inputs and libraries.
        description: lines for the run program, apart from where it writes.
        tensor_ranges: lines ``in|out address bytes name`` of inputs and outputs, for trusted programs.
        reach: what the run program reads from other folders.
        trace: what it did; of any length up to the limit of the run.
        outputs: one tensor after another, each at a multiple of a page; of a fixed length.
        beside: reads the trace beside other work.
        waiting: such work, done or dropped before the files are given up.
    """

    folder: Path
    description: str
    tensor_ranges: str
    reach: Reach
    trace: MemoryFile
    outputs: MemoryFile
    beside: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, max_workers=1))
    waiting: list[WhenIdle[Any]] = field(default_factory=list)

    def execute(self, program: Path, limits: ResourceLimits) -> ProcessOutcome:
        """Run the program; it leaves a trace and outputs."""
        paths = self.trace.path, self.outputs.path
        return self._execute(program, limits, paths, (self.trace.fd, self.outputs.fd), "")

    def execute_again(self, program: Path, limits: ResourceLimits, further_lines: str) -> ProcessOutcome:
        """Run the program with further lines in its job, for what it prints: it leaves nothing."""
        return self._execute(program, limits, (_NOWHERE, _NOWHERE), (), further_lines)

    def when_idle(self, work: Callable[[], T]) -> WhenIdle[T]:
        """Return work that reads the trace, which begins when a processor is idle or its result is wanted."""
        self.waiting.append(WhenIdle(self.beside, work))
        return self.waiting[-1]

    def described(self, trace: str, outputs: str, further_lines: str = "") -> str:
        """Return the lines for the run program; it writes to two files that are there already."""
        return f"{self.description}trace {trace}\noutputs {outputs}\n{further_lines}"

    def close(self) -> None:
        """Give up the files; arrays of outputs stay."""
        for work in self.waiting:
            work.drop()
        self.beside.shutdown()
        self.trace.close()
        self.outputs.close()

    def _execute(
        self,
        program: Path,
        limits: ResourceLimits,
        paths: tuple[str, str],
        fds: tuple[int, ...],
        further_lines: str,
    ) -> ProcessOutcome:
        with MemoryFile.holding("job", self.described(*paths, further_lines)) as job:
            return run_limited(
                [str(program), job.path],
                cwd=self.folder,
                limits=limits,
                reach=self.reach,
                pass_fds=(job.fd, *fds),
            )


def place_tensors(tensors: Sequence[TensorSpec]) -> list[list[int]]:
    """Return a canonical global memory address for every tensor, the same on every host."""
    addresses = []
    next_address = _ADDRESS_UNIT_BYTES
    for tensor in tensors:
        row = []
        for size_bytes in tensor_sizes_bytes(tensor):
            row.append(next_address)
            units = (size_bytes + _MARGIN_BYTES) // _ADDRESS_UNIT_BYTES + 1
            next_address += units * _ADDRESS_UNIT_BYTES
        addresses.append(row)
    return addresses


def tensor_sizes_bytes(tensor: TensorSpec) -> list[int]:
    """Return the size of each tensor of a parameter."""
    return [tensor.dtype.size_bytes(math.prod(shape)) for shape in tensor.shapes]


def write_job(
    folder: Path,
    kernel: KernelBuild,
    case: Case,
    inputs: Sequence[Sequence[Path]],
    tiling: TilingOutcome,
    chip: Chip,
    protocol: MeasureProtocol,
    rerun: int = 0,
) -> KernelJob:
    """Write everything that the run program reads, and make what it writes to.

    Reruns have other addresses (the canonical ones in the trace are the same) and other bytes in memory that
    nothing was written to.

    Args:
        folder: where the files go.
        kernel: what is run.
        case: what it is run for.
        inputs: raw little-endian files, one list for each input parameter.
        tiling: what the tiling program decided.
        chip: what it is run as.
        protocol: time limit of the run.
        rerun: see ``Backend.run``.
    """
    definition = kernel.host.definition
    places, outputs_bytes = output_places(case)
    (folder / "tiling_data").write_bytes(tiling.tiling_data)
    addresses = place_tensors((*case.inputs, *case.outputs))
    filled = _write_initial(folder, definition, case) if tiling.need_atomic else {}
    lines = [
        *library_lines(kernel.libraries, kernel.task_type.value),
        f"tiling {folder / 'tiling_data'}",
        f"block_dim {tiling.block_dim}",
        *chip.core_lines(),
        f"tiling_key {tiling.tiling_key}",
        f"workspace_bytes {sum(tiling.workspace_bytes)}",
        f"record_limit {RECORD_LIMIT}",
        *limit_lines(protocol.run_timeout_s),
        f"rerun {rerun}",
        *_parameter_lines(definition, case, inputs, places, addresses, filled),
    ]
    return KernelJob(
        folder,
        "".join(f"{line}\n" for line in lines),
        _range_lines(case, addresses, filled),
        Reach((*kernel.libraries.values(), *(file for files in inputs for file in files)), keeps_files=False),
        MemoryFile("trace"),
        MemoryFile.of_size("outputs", outputs_bytes),
    )


def run_limits(protocol: MeasureProtocol) -> ResourceLimits:
    """Return what a run may use."""
    return ResourceLimits(
        wall_s=wall_limit_s(protocol.run_timeout_s),
        cpu_s=protocol.run_timeout_s + 2.0,
        memory_bytes=protocol.memory_limit_bytes,
        file_bytes=protocol.output_limit_bytes,
    )


def output_places(case: Case) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Return where in the file of outputs each tensor of each output parameter begins, and its length."""
    sizes = [size for tensor in case.outputs for size in tensor_sizes_bytes(tensor)]
    units = (-(-size // _OUTPUT_UNIT_BYTES) * _OUTPUT_UNIT_BYTES for size in sizes)
    *begins, end = accumulate(units, initial=0)
    remaining = iter(begins)
    return tuple(tuple(islice(remaining, len(tensor.shapes))) for tensor in case.outputs), end


def read_outputs(job: KernelJob, case: Case) -> tuple[tuple[Array, ...], ...]:
    """Return the outputs of a run that is over, mapped as they are; only they hold memory from now on."""
    mapped = job.outputs.mapped()
    job.outputs.close()
    places, _ = output_places(case)

    def arrays(tensor: TensorSpec, begins: Sequence[int]) -> Iterator[Array]:
        for shape, begin in zip(tensor.shapes, begins, strict=True):
            yield loaded_array(mapped, tensor.dtype, shape, begin)

    return tuple(tuple(arrays(tensor, begins)) for tensor, begins in zip(case.outputs, places, strict=True))


def _write_initial(folder: Path, definition: OperatorDefinition, case: Case) -> dict[str, Sequence[Path]]:
    """Write what outputs with initial values (``OpDef.InitValue``) hold at launch; return files by output."""
    column = definition.columns().index(match_column(definition, case))
    files: dict[str, Sequence[Path]] = {}
    for parameter, tensor in zip(definition.outputs, match_outputs(definition, case), strict=True):
        values = parameter.initial_values
        if tensor is None or not values:
            continue
        value = values[column % len(values)]
        files[tensor.name] = [folder / f"initial-{tensor.name}-{item}" for item in range(len(tensor.shapes))]
        for path, shape in zip(files[tensor.name], tensor.shapes, strict=True):
            write_array(path, stored_array(np.full(shape, value).astype(numpy_dtype(tensor.dtype))))
    return files


def _parameter_lines(
    definition: OperatorDefinition,
    case: Case,
    inputs: Sequence[Sequence[Path]],
    output_places: Sequence[Sequence[int]],
    addresses: Sequence[Sequence[int]],
    filled: Mapping[str, Sequence[Path]],
) -> list[str]:
    """Return the arguments in the order of the definition; an output named like an input is in place."""
    places = {id(tensor): row for tensor, row in zip((*case.inputs, *case.outputs), addresses, strict=True)}
    in_files = {**filled, **{tensor.name: files for tensor, files in zip(case.inputs, inputs, strict=True)}}
    targets = {tensor.name: row for tensor, row in zip(case.outputs, output_places, strict=True)}
    lines = []
    matched_inputs = match_tensors(definition.inputs, case.inputs, "inputs")
    matched_outputs = match_outputs(definition, case)
    parameters = (*definition.inputs, *definition.outputs)
    for parameter, tensor in zip(parameters, (*matched_inputs, *matched_outputs), strict=True):
        if tensor is None:
            lines.append(f"parameter {parameter.name} absent")
            continue
        lines.append(f"parameter {parameter.name} {'list' if parameter.kind == 'dynamic' else 'plain'}")
        for item, (shape, size_bytes) in enumerate(
            zip(tensor.shapes, tensor_sizes_bytes(tensor), strict=True)
        ):
            source = in_files[tensor.name][item] if tensor.name in in_files else "-"
            target = targets[tensor.name][item] if tensor.name in targets else "-"
            extents = " ".join(str(extent) for extent in shape)
            lines.append(
                f"tensor {places[id(tensor)][item]} {size_bytes} {source} {target} {extents}".rstrip()
            )
    return [*lines, *_shape_lines(definition)]


def _shape_lines(definition: OperatorDefinition) -> list[str]:
    """Return the argument after the outputs, into which the kernel writes shapes that only it knows."""
    count = sum(parameter.shape_depends_on_compute for parameter in definition.outputs)
    if count == 0:
        return []
    words = count * _SHAPE_WORDS
    return ["parameter shape_out plain", f"tensor 0 {words * 8} - - {words}"]


def _range_lines(case: Case, addresses: Sequence[Sequence[int]], filled: Collection[str]) -> str:
    """Return ``in|out address bytes name`` of every tensor, but for those computed in place.

    What a kernel updates in place, or finds filled at launch, it may leave as it is; what the case leaves
    open it need not write.
    """
    tensors = (*case.inputs, *case.outputs)
    sides = [*("in" for _ in case.inputs), *("out" for _ in case.outputs)]
    in_place = {tensor.name for tensor in case.inputs} & {tensor.name for tensor in case.outputs}
    in_place |= set(filled)
    return "".join(
        f"{side} {address} {size_bytes} {tensor.name}\n"
        for side, tensor, row in zip(sides, tensors, addresses, strict=True)
        if not tensor.optional_absent and not tensor.open and tensor.name not in in_place
        for address, size_bytes in zip(row, tensor_sizes_bytes(tensor), strict=True)
    )


def diagnose_run(
    outcome: ProcessOutcome, kernel: KernelBuild, protocol: MeasureProtocol, seconds: float
) -> Failure | None:
    """Return what went wrong in a run, or ``None`` when it ended well.

    Args:
        outcome: how the process ended.
        kernel: what was run, which places in messages refer to.
        protocol: the limits that it had.
        seconds: wall time of the run.
    """
    if outcome.returncode == 0 and not outcome.timed_out:
        return None
    if outcome.returncode == REPORTED_FAULT_EXIT:
        unreadable = Failure.of(
            Status.RUNTIME_FAULT, Phase.RUN_KERNEL, "the kernel ended without a readable report", seconds
        )
        return reported_failure(outcome, kernel.libraries, own_place, seconds) or unreadable
    if outcome.timed_out:
        message = f"the kernel did not end within {protocol.run_timeout_s:g} s: look for an endless loop"
        return Failure.of(Status.TIMEOUT, Phase.RUN_KERNEL, message, seconds)
    if outcome.exceeded is not None:
        return Failure.of(
            Status.RESOURCE_LIMIT, Phase.RUN_KERNEL, f"the run exceeded its {outcome.exceeded} limit", seconds
        )
    log = outcome.stderr.decode("utf-8", "replace").strip()
    how = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.returncode}"
    return Failure.of(
        Status.RUNTIME_FAULT,
        Phase.RUN_KERNEL,
        f"the kernel ended its process with {how}. {log}".strip(),
        seconds,
    )

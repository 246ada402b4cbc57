"""One execution of a built kernel: its job description, its files, and what its end means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, Diagnostic, MeasureProtocol, Phase, TensorSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.inputs import numpy_dtype
from npu_daemon.sandbox import ProcessOutcome, Reach
from npu_daemon.simulator.build_cache import KernelBuild
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.host_schema import OperatorDefinition, match_column, match_outputs, match_tensors
from npu_daemon.simulator.host_side import TilingOutcome
from npu_daemon.simulator.run_report import REPORTED_FAULT_EXIT, Place, library_lines, reported_failure

RECORD_LIMIT = 20_000_000
_ADDRESS_UNIT_BYTES = 2 * 2**20
# At most mapped beside a tensor: 32 B more, the rest of the page, two guard pages (src/runtime/gm.cpp).
_MARGIN_BYTES = 32 + 3 * 4096
_SHAPE_WORDS = 9  # rank and up to eight extents, 64 bits each
_SOURCE_LINE = re.compile(r"((?:shared|op_kernel|op_host)/[^\s:]+):(\d+)")


@dataclass(frozen=True)
class KernelJob:
    """Files of one run.

    Attributes:
        folder: holds all of them.
        path: job description for the run program.
        trace: where the trace is written.
        tensor_ranges: canonical addresses of inputs and outputs, for the pricing program.
        output_files: for each output parameter of the case, one file per tensor.
        reach: what the run program reads from other folders.
    """

    folder: Path
    path: Path
    trace: Path
    tensor_ranges: Path
    output_files: tuple[tuple[Path, ...], ...]
    reach: Reach


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
    sizes = []
    for shape in tensor.shapes:
        size_bytes = tensor.dtype.itemsize_bytes
        for extent in shape:
            size_bytes *= extent
        sizes.append(size_bytes)
    return sizes


def write_job(
    folder: Path,
    kernel: KernelBuild,
    case: Case,
    inputs: Sequence[Sequence[Path]],
    tiling: TilingOutcome,
    chip: Chip,
    protocol: MeasureProtocol,
    turn: int = 0,
) -> KernelJob:
    """Write everything that the run program reads and return where it is.

    Runs of different turns have other addresses (the canonical ones in the trace are the same) and other
    bytes in memory that nothing was written to.
    """
    definition = kernel.host.definition
    outputs = tuple(
        tuple(folder / f"output-{index}-{item}.bin" for item in range(len(tensor.shapes)))
        for index, tensor in enumerate(case.outputs)
    )
    reach = Reach((*kernel.libraries.values(), *(file for files in inputs for file in files)))
    job = KernelJob(folder, folder / "job", folder / "trace", folder / "tensor_ranges", outputs, reach)
    (folder / "tiling_data").write_bytes(tiling.tiling_data)
    addresses = place_tensors((*case.inputs, *case.outputs))
    filled = _write_initial(folder, definition, case) if tiling.need_atomic else {}
    lines = [
        *library_lines(kernel.libraries, kernel.task_type.value),
        f"trace {job.trace}",
        f"tiling {folder / 'tiling_data'}",
        f"block_dim {tiling.block_dim}",
        *chip.core_lines(),
        f"tiling_key {tiling.tiling_key}",
        f"workspace_bytes {sum(tiling.workspace_bytes)}",
        f"record_limit {RECORD_LIMIT}",
        f"time_limit_ms {int(protocol.run_timeout_s * 1000)}",
        f"turn {turn}",
        *_parameter_lines(definition, case, inputs, outputs, addresses, filled),
    ]
    job.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    job.tensor_ranges.write_text(_range_lines(case, addresses, filled), encoding="utf-8")
    return job


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
            np.full(shape, value).astype(numpy_dtype(tensor.dtype)).tofile(path)
    return files


def _parameter_lines(
    definition: OperatorDefinition,
    case: Case,
    inputs: Sequence[Sequence[Path]],
    outputs: Sequence[Sequence[Path]],
    addresses: Sequence[Sequence[int]],
    filled: Mapping[str, Sequence[Path]],
) -> list[str]:
    """Return the arguments in the order of the definition; an output named like an input is in place."""
    places = {id(tensor): row for tensor, row in zip((*case.inputs, *case.outputs), addresses, strict=True)}
    in_files = {**filled, **{tensor.name: files for tensor, files in zip(case.inputs, inputs, strict=True)}}
    out_files = {tensor.name: files for tensor, files in zip(case.outputs, outputs, strict=True)}
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
            target = out_files[tensor.name][item] if tensor.name in out_files else "-"
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
    """Return what went wrong in a run, or ``None`` when it ended well."""
    if outcome.returncode == 0 and not outcome.timed_out:
        return None
    if outcome.returncode == REPORTED_FAULT_EXIT:
        unreadable = _failure(Status.RUNTIME_FAULT, "the kernel ended without a readable report", seconds)
        return reported_failure(outcome, kernel.libraries, own_place, seconds) or unreadable
    if outcome.timed_out:
        message = f"the kernel did not end within {protocol.run_timeout_s:g} s: look for an endless loop"
        return _failure(Status.TIMEOUT, message, seconds)
    if outcome.exceeded is not None:
        return _failure(Status.RESOURCE_LIMIT, f"the run exceeded its {outcome.exceeded} limit", seconds)
    log = outcome.stderr.decode("utf-8", "replace").strip()
    how = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.returncode}"
    return _failure(Status.RUNTIME_FAULT, f"the kernel ended its process with {how}. {log}".strip(), seconds)


def own_place(rows: Iterable[str]) -> Place:
    """Return file and line of the innermost row that lies in the operator's own sources."""
    for row in rows:
        found = _SOURCE_LINE.search(row)
        if found:
            return found[1], int(found[2])
    return None, None


def _failure(status: Status, message: str, seconds: float) -> Failure:
    return Failure(status, (Diagnostic(phase=Phase.RUN_KERNEL, message=message),), seconds)

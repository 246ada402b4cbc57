"""Running the host side of an operator: its definition, and what its tiling function decides for a case."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, Diagnostic, Phase
from ascend_gym.core.status import Status
from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited
from npu_daemon.simulator.host_build import build_host
from npu_daemon.simulator.host_request import ChipGeometry, request_lines, value_files
from npu_daemon.simulator.host_schema import (
    Decision,
    DefinitionError,
    OperatorDefinition,
    TilingStructure,
)
from npu_daemon.simulator.host_toolchain import runner_of
from npu_daemon.simulator.kernel_prelude import kernel_prelude

__all__ = [
    "ChipGeometry",
    "OperatorDefinition",
    "TilingOutcome",
    "build_host",
    "describe_operator",
    "infer_shapes",
    "kernel_prelude",
    "run_tiling",
]

TILING_LIMITS = ResourceLimits(wall_s=30.0, cpu_s=5.0, memory_bytes=1 << 30, file_bytes=1 << 20)

_ANY_OPERATOR = "-"
_SHAPES = TypeAdapter(list[tuple[Annotated[int, Field(ge=0, lt=1 << 40)], ...]])
_SHOWN_LOG_LINES = 5
_CRASHES: dict[int, str] = {
    signal.SIGSEGV: "it read or wrote memory that is not its own",
    signal.SIGFPE: "it divided a whole number by zero",
    signal.SIGABRT: "it aborted",
}
_FAULT_STATUS = {"tiling": Status.TILING_ERROR, "unsupported": Status.UNSUPPORTED}


@dataclass(frozen=True)
class TilingOutcome:
    """What a tiling function decided for one case.

    Attributes:
        block_dim: number of blocks to launch, at least 1.
        tiling_key: selects the branch of the kernel.
        tiling_data: bytes handed to the kernel.
        workspace_bytes: size of each workspace asked for, the library's share included.
        schema: structure registered for this tiling key, ``None`` when none was.
        need_atomic: outputs with initial values have to be filled before the launch.
        schedule_mode: 1 when all blocks must run at the same time.
        seconds: wall seconds of the run.
        reached: which marked blocks were executed (``kernel_ir/block_marks.py``).
    """

    block_dim: int
    tiling_key: int
    tiling_data: bytes
    workspace_bytes: tuple[int, ...]
    schema: TilingStructure | None
    need_atomic: bool
    schedule_mode: int
    seconds: float
    reached: str = ""

    @property
    def digest(self) -> str:
        """Digest of all that a kernel learns from its tiling program."""
        told = (self.block_dim, self.tiling_key, self.tiling_data, self.workspace_bytes, self.schedule_mode)
        return digest_of("launch", *told)


def describe_operator(
    host_lib: Path,
    chip: ChipGeometry,
    toolchain: Path,
    *,
    op_type: str | None = None,
    limits: ResourceLimits = TILING_LIMITS,
) -> OperatorDefinition | Failure:
    """Load built host code and read the operator definition that it registers.

    Args:
        host_lib: library made by ``build_host``.
        chip: chip whose variant of the definition is wanted.
        toolchain: folder of the host side in a toolchain (``Toolchain.host_folder``).
        op_type: operator type; ``None`` for the only one registered.
        limits: what the untrusted code may use.
    """
    argv = [str(runner_of(toolchain)), "describe", str(host_lib), op_type or _ANY_OPERATOR, chip.soc_version]
    answer, seconds = _ask(
        argv, host_lib.parent, limits, Reach((toolchain,), keeps_files=False), Phase.BUILD_TILING
    )
    if isinstance(answer, Failure):
        return answer
    try:
        definition = OperatorDefinition.model_validate(answer.get("definition"))
        definition.columns()
    except ValidationError as error:
        return _failure(f"the operator definition is not usable: {_first_problem(error)}", seconds)
    except DefinitionError as error:
        return _failure(str(error), seconds)
    return definition


def run_tiling(
    host_lib: Path,
    definition: OperatorDefinition,
    case: Case,
    chip: ChipGeometry,
    work_dir: Path,
    toolchain: Path,
    *,
    input_files: Sequence[Sequence[Path]] = (),
    limits: ResourceLimits = TILING_LIMITS,
) -> TilingOutcome | Failure:
    """Run the tiling function of built host code for one case.

    Args:
        host_lib: library made by ``build_host``.
        definition: what ``describe_operator`` read from that library.
        case: shapes, types and attributes.
        chip: figures that the tiling function may ask for.
        work_dir: an existing folder of this run; the request file is written into it.
        toolchain: folder of the host side in a toolchain (``Toolchain.host_folder``).
        input_files: raw little-endian files of the inputs of the case, one per tensor. Only inputs declared
            as value dependent are read; without files their values are unknown to the tiling function.
        limits: what the untrusted code may use.
    """
    answer, seconds = _called(
        "run", host_lib, (definition, case, chip, input_files), work_dir, toolchain, limits
    )
    return answer if isinstance(answer, Failure) else _outcome(answer, definition, seconds)


def infer_shapes(
    host_lib: Path,
    definition: OperatorDefinition,
    case: Case,
    chip: ChipGeometry,
    work_dir: Path,
    toolchain: Path,
    *,
    input_files: Sequence[Sequence[Path]] = (),
    limits: ResourceLimits = TILING_LIMITS,
) -> list[tuple[int, ...]] | Failure:
    """Run the InferShape function of built host code; return the shape of each output tensor of the case.

    The arguments are those of ``run_tiling``. The case has all outputs, of any shape.
    """
    answer, seconds = _called(
        "infer", host_lib, (definition, case, chip, input_files), work_dir, toolchain, limits
    )
    if isinstance(answer, Failure):
        return answer
    try:
        shapes = _SHAPES.validate_python(answer.get("shapes"))
    except ValidationError as error:
        return _failure(f"the shapes are not usable: {_first_problem(error)}", seconds)
    expected = sum(len(each.shapes) for each in case.outputs)
    if len(shapes) != expected:
        return _failure(f"expected {expected} shapes of outputs, got {len(shapes)}", seconds)
    return shapes


def _called(
    action: str,
    host_lib: Path,
    call: tuple[OperatorDefinition, Case, ChipGeometry, Sequence[Sequence[Path]]],
    work_dir: Path,
    toolchain: Path,
    limits: ResourceLimits,
) -> tuple[dict[str, Any] | Failure, float]:
    """Return the answer about a call (operator, case, chip, input files), with its wall seconds."""
    definition, case, _, input_files = call
    try:
        lines = request_lines(*call)
    except DefinitionError as error:
        return _failure(str(error), 0.0), 0.0
    request = work_dir / "tiling_request"
    request.write_text("\n".join(lines) + "\n", encoding="ascii")
    argv = [str(runner_of(toolchain)), action, str(host_lib), str(request)]
    readable = (toolchain, host_lib, *value_files(definition, case, input_files))
    reach = Reach(readable, keeps_files=False)
    return _ask(argv, work_dir, limits, reach, Phase.RUN_TILING)


def _outcome(
    answer: Mapping[str, Any], definition: OperatorDefinition, seconds: float
) -> TilingOutcome | Failure:
    """Read what a tiling function decided."""
    try:
        decision = Decision.model_validate(answer.get("decision"))
    except ValidationError as error:
        return _failure(f"the tiling decision is not usable: {_first_problem(error)}", seconds)
    return TilingOutcome(
        block_dim=decision.block_dim,
        tiling_key=decision.tiling_key,
        tiling_data=bytes.fromhex(decision.tiling_data),
        workspace_bytes=decision.workspace_bytes,
        schema=definition.structure_for(decision.tiling_key),
        need_atomic=decision.need_atomic,
        schedule_mode=decision.schedule_mode,
        seconds=seconds,
        reached=str(answer.get("reached", "")),
    )


def _ask(
    argv: Sequence[str], cwd: Path, limits: ResourceLimits, reach: Reach, phase: Phase
) -> tuple[dict[str, Any] | Failure, float]:
    """Run ``host_tiling`` and return its answer, or what kept it from answering, with its wall seconds."""
    outcome = run_limited(argv, cwd=cwd, limits=limits, reach=reach)
    if outcome.timed_out:
        message = f"the host code did not end within {limits.wall_s:g} s; look for an endless loop"
        return _failure(message, outcome.seconds, phase, Status.TIMEOUT), outcome.seconds
    if outcome.exceeded is not None:
        message = f"the host code exceeded its {outcome.exceeded} limit"
        return _failure(message, outcome.seconds, phase, Status.RESOURCE_LIMIT), outcome.seconds
    try:
        answer = json.loads(outcome.stdout)
    except (ValueError, RecursionError):
        return _failure(_crash_message(outcome), outcome.seconds, phase), outcome.seconds
    if not isinstance(answer, dict):
        message = f"the host code answered with {type(answer).__name__} instead of an object"
        return _failure(message, outcome.seconds, phase), outcome.seconds
    if "fault" in answer:
        status = _FAULT_STATUS.get(str(answer["fault"]), Status.TILING_ERROR)
        message = _with_log(str(answer.get("message")), outcome)
        return _failure(message, outcome.seconds, phase, status), outcome.seconds
    return answer, outcome.seconds


def _crash_message(outcome: ProcessOutcome) -> str:
    if outcome.output_truncated:
        return _with_log("the answer of the host code is too long", outcome)
    if outcome.signal is None:
        text = f"the host code ended the program with exit status {outcome.returncode} instead of returning"
        return _with_log(text, outcome)
    reason = _CRASHES.get(outcome.signal, "it was killed")
    return _with_log(f"the host code crashed with {_signal_name(outcome.signal)}: {reason}", outcome)


def _signal_name(number: int) -> str:
    """Return the name of a signal; those for real-time use between the first and the last have none."""
    return next((each.name for each in signal.Signals if each == number), f"signal {number}")


def _with_log(message: str, outcome: ProcessOutcome) -> str:
    log = outcome.stderr.decode("utf-8", "replace").splitlines()[-_SHOWN_LOG_LINES:]
    return "\n    ".join([message, *log])


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _failure(
    message: str, seconds: float, phase: Phase = Phase.RUN_TILING, status: Status = Status.TILING_ERROR
) -> Failure:
    return Failure(status, (Diagnostic(phase=phase, message=message),), seconds)

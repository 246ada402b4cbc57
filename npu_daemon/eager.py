"""Prices of framework calls, for operators without sources; no call is made.

Each call launches one kernel. Its price is the minimum time of its traffic on the chip plus the overhead of
the best hand-written kernels of its kind (chip file, benchmarks/fidelity/framework_calls.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_gym.core.protocols import Backend
from ascend_gym.core.records import (
    Case,
    CaseResult,
    DeviceInfo,
    Diagnostic,
    EvalRequest,
    EvalResult,
    FrameworkCall,
    LaunchCost,
    Phase,
    Profile,
    TargetSheet,
)
from ascend_gym.core.status import Status

_PROFILE_TIMES = [
    name
    for name, field in Profile.model_fields.items()
    if field.is_required() and name not in ("task_duration_us", "block_dim")
]

_COMBINING = re.compile(
    r"sum|mean|max|min|prod(uct)?|var|std|norm|(log_)?softmax|bmm|cum\w+"
    r"|\w+_loss|\w+_pool[123]d|\w+_norm(_statistics)?"
)
"""Calls whose kernels combine elements; all others count as element-wise, which cost less."""


def eager_result(request: EvalRequest, cases: Sequence[Case], backend: Backend) -> EvalResult:
    """Return the price of the framework calls of each case, as the evaluation of the operator's skeleton.

    Raises:
        ValueError: the backend has no facts about the chip.
    """
    chip = request.protocol.chip
    target = backend.target(chip)
    device: DeviceInfo = backend.describe().model_copy(update={"chip": chip, "target": target})
    if target is None:
        raise ValueError(f"there are no facts about the chip {chip!r}, so framework calls have no price")
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=Status.OK,
        cases=tuple(_case_result(case, target) for case in cases),
        device=device,
    )


def _case_result(case: Case, target: TargetSheet) -> CaseResult:
    total_us = sum(call_us(call, target) for call in case.eager)
    names = ", ".join(call.name for call in case.eager)
    message = f"not measured: what {len(case.eager)} framework calls ({names}) take on a {target.chip}"
    return CaseResult(
        case_id=case.case_id,
        status=Status.OK,
        samples_us=(total_us,),
        profile=Profile(
            task_duration_us=total_us, block_dim=target.aiv_cores, **dict.fromkeys(_PROFILE_TIMES, 0)
        ),
        diagnostics=(Diagnostic(phase=Phase.PRICE, message=message),),
    )


def call_us(call: FrameworkCall, target: TargetSheet) -> float:
    """Return the price of a call, in microseconds."""
    combining = _COMBINING.fullmatch(call.name)
    beyond_us = target.combining_call_us if combining else target.elementwise_call_us
    return bound_us(call, target) + beyond_us


def bound_us(call: FrameworkCall, target: TargetSheet) -> float:
    """Return the minimum time of a kernel with the traffic of a call, in microseconds.

    For the best number of blocks, it is the time of an empty launch of that many blocks plus the longest of:
    reading new data from HBM, reading and writing everything through L2, and the cores' own read and write
    rates.
    """
    return min(launch.vector_us + _moving_us(call, launch, target) for launch in target.launches)


def _moving_us(call: FrameworkCall, launch: LaunchCost, target: TargetSheet) -> float:
    copies, cycles_per_us = target.copies, target.clock_mhz * launch.blocks
    return max(
        call.fresh_bytes / copies.hbm_gb_per_s / 1e3,
        (call.read_bytes + call.written_bytes) / copies.l2_gb_per_s / 1e3,
        call.fresh_bytes / copies.core_hbm_bytes_per_cycle / cycles_per_us,
        call.read_bytes / copies.core_l2_bytes_per_cycle / cycles_per_us,
        call.written_bytes / copies.core_write_bytes_per_cycle / cycles_per_us,
    )

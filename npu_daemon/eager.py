"""What the calls of a framework would cost, for operators without sources: no call is made.

A call launches one kernel. It takes the least that its traffic takes on the chip, and what the best
hand-written kernels of its kind still take beyond that (chip file, benchmarks/framework_calls.py).
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
"""Calls whose kernels combine elements; all others are taken for element-wise ones, which cost less."""


def eager_result(request: EvalRequest, cases: Sequence[Case], backend: Backend) -> EvalResult:
    """Return the price of the framework calls of each case, as the evaluation of the operator's skeleton."""
    chip = request.protocol.chip
    target = backend.target(chip)
    device: DeviceInfo = backend.describe().model_copy(update={"chip": chip, "target": target})
    if target is None:
        raise ValueError(f"nothing is known of the chip {chip!r}, so that framework calls have no price")
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
    """Return what the kernel of a call takes, in microseconds."""
    combining = _COMBINING.fullmatch(call.name)
    beyond_us = target.combining_call_us if combining else target.elementwise_call_us
    return bound_us(call, target) + beyond_us


def bound_us(call: FrameworkCall, target: TargetSheet) -> float:
    """Return what a kernel with the traffic of a call takes at least, in microseconds.

    With as many blocks as serve it best: an empty launch of so many, and the longest of reading what is new
    from HBM, reading and writing all through L2, and what so many cores can read and write.
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

"""One way to break the kernel of add, and what must be said about it."""

from __future__ import annotations

from dataclasses import dataclass

from simulated import Workbench

from ascend_gym.core.records import Phase
from ascend_gym.core.status import Status

ADD = "AscendC::Add(yLocal, x1Local, x2Local, count);"
LOOP_BODY = "CopyOut(offset, count);"
COPY_IN = "AscendC::DataCopyPad(x1Local, x1Gm[offset]"
COPY_OUT = "AscendC::DataCopyPad(yGm[offset]"
OUT_BUFFER = "pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));"
OPERATOR, CASE = "add", "fp16_1777x1003"


@dataclass(frozen=True)
class Fault:
    """An edit of the kernel and its consequence.

    Attributes:
        name: of the fault.
        old: text of the kernel.
        new: replaces it.
        says: what the diagnostics must contain.
        call: which call is blamed; ``None``: not checked.
        status: how the evaluation ends.
        phase: where.
    """

    name: str
    old: str
    new: str
    says: str
    call: str | None = None
    status: Status = Status.RUNTIME_FAULT
    phase: Phase = Phase.RUN_KERNEL


def check_explained(bench: Workbench, fault: Fault) -> None:
    """Evaluate the broken kernel; assert that its failure is explained and charged once."""
    result = bench.evaluate(
        bench.edited(kernel={fault.old: fault.new}),
        run_timeout_s=0.5 if fault.status is Status.TIMEOUT else 20.0,
    )
    first = result.all_diagnostics[0]
    assert result.status is fault.status, [str(d) for d in result.all_diagnostics]
    assert first.phase is fault.phase
    assert fault.says in " ".join(d.message for d in result.all_diagnostics)
    if fault.call is not None:
        assert first.call == fault.call
    assert result.charge.evaluations == 1

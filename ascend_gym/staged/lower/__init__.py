"""Lowering by rules: a verified program becomes an operator folder of Ascend C, in four passes.

``plan`` makes the host side, ``state`` queues, buffers and their initialisation, ``stages`` a function for
each stage and the loops around them, ``align`` the copies. What there is after each of them builds. The same
program gives the same bytes.
"""

from __future__ import annotations

from enum import Enum

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.staged.lower.context import Context
from ascend_gym.staged.lower.plan import host_source
from ascend_gym.staged.lower.stages import Stages
from ascend_gym.staged.lower.state import empty_kernel, kernel_source
from ascend_gym.staged.verify import Verified


class Pass(str, Enum):
    """The passes, in order."""

    PLAN = "plan"
    STATE = "state"
    STAGES = "stages"
    ALIGN = "align"


def lower(verified: Verified, upto: Pass = Pass.ALIGN) -> Candidate:
    """Return host and kernel sources of a program.

    Args:
        verified: the program.
        upto: the last pass. Before ``stages`` the kernel does nothing, and before ``align`` its copies move
            whole blocks of 32 bytes, whatever they should move.
    """
    passes = list(Pass)
    context = Context(verified, padded=upto is Pass.ALIGN)
    kernel = empty_kernel(context)
    if upto is not Pass.PLAN:
        computes = passes.index(upto) >= passes.index(Pass.STAGES)
        kernel = kernel_source(context, Stages(context) if computes else None)
    name = verified.interface.name
    host, device = f"op_host/{name}.cpp", f"op_kernel/{name}.cpp"
    return Candidate(
        host=Sources(files=(SourceFile(path=host, text=host_source(context)),), main=host),
        kernel=Sources(files=(SourceFile(path=device, text=kernel),), main=device),
    )

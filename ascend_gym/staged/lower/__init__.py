"""Lowering by rules: a verified program becomes an operator folder of Ascend C, in four passes.

``plan`` makes the host side, ``state`` queues, buffers and their initialisation, ``stages`` a function for
each stage and the loops around them, ``align`` the copies. The same program gives the same bytes.
"""

from __future__ import annotations

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.staged.lower.context import Context
from ascend_gym.staged.lower.plan import host_source
from ascend_gym.staged.lower.stages import Stages
from ascend_gym.staged.lower.state import kernel_source
from ascend_gym.staged.verify import Verified


def lower(verified: Verified) -> Candidate:
    """Return host and kernel sources of a program."""
    context = Context(verified)
    name = verified.interface.name
    host, kernel = f"op_host/{name}.cpp", f"op_kernel/{name}.cpp"
    stages = Stages(context)
    return Candidate(
        host=Sources(files=(SourceFile(path=host, text=host_source(context)),), main=host),
        kernel=Sources(files=(SourceFile(path=kernel, text=kernel_source(context, stages)),), main=kernel),
    )

"""The simulator's boundary before a device: what it refuses, no NPU sees.

Host code of an operator runs in the runner's process, which the driver keeps from being confined, and a
kernel of a device reaches all of its memory. So sources are built for the simulator first, where LLVM IR
says what they do (``docs/isolation.md``); nothing of that build is run on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from npu_daemon.cache_folder import BUILDS_FOLDER
from npu_daemon.simulator.build_cache import BuildCache
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.toolchain import obtain_toolchain

_SETTLED = (Status.GUARD_REJECTED, Status.RESOURCE_LIMIT, Status.TIMEOUT)


class Boundary:
    """Reads candidates as the simulator does.

    Args:
        cache_dir: where toolchains and builds are kept; the simulator's own may be the same.
        chip: what operators are defined for.
        announce: told when the simulator is built; by default written to standard error.

    Attributes:
        digest: identity of what judges.

    Raises:
        InfrastructureError: the simulator does not compile on this host.
    """

    def __init__(self, cache_dir: Path, chip: Chip, announce: Callable[[str], None] | None = None) -> None:
        toolchain = obtain_toolchain(cache_dir, announce or _tell)
        self.digest = toolchain.digest
        self._chip = chip
        self._builds = BuildCache(cache_dir / BUILDS_FOLDER, toolchain)

    def judge(
        self, spec: OpSpec, case: Case, candidate: Candidate, protocol: MeasureProtocol
    ) -> Failure | None:
        """Return why a candidate is refused or, if it cannot be read, why not; ``None`` when it may run.

        A candidate that cannot be read is ``unsupported``: the simulator lacks something that it uses, or it
        does not compile, which the device's own compiler says better.

        Args:
            spec: the operator.
            case: the case that the candidate would be built for.
            candidate: tiling and kernel sources.
            protocol: time limits of the build.
        """
        read = self._builds.candidate(spec, case, candidate, self._chip, protocol)
        if not isinstance(read, Failure):
            return None
        if read.status in _SETTLED:
            return read
        said = read.diagnostics[0]
        message = (
            "the simulator, which checks sources before a device runs them, cannot read this: "
            f"{said.message} (whoever runs the daemon can allow it: run_unread in section [cann])"
        )
        return Failure(Status.UNSUPPORTED, (said.model_copy(update={"message": message}),), read.seconds)


def unread(failure: Failure | None) -> bool:
    """Whether a judgement is that the candidate cannot be read."""
    return failure is not None and failure.status is Status.UNSUPPORTED


def _tell(message: str) -> None:
    sys.stderr.write(message + "\n")

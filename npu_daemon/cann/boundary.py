"""The simulator's boundary as a check before any device: candidates that it refuses do not reach an NPU.

Host code of an operator runs in the runner's process, which cannot be confined because of the driver, and a
kernel on a device can reach all of its memory. Sources are therefore first built for the simulator, where
their LLVM IR shows what they do (``docs/isolation.md``). No part of that build runs on the device. It
also tells which kernel a case launches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from npu_daemon.cache_folder import BUILDS_FOLDER
from npu_daemon.cann.instance import Instance, instance_of
from npu_daemon.simulator.build_cache import BuildCache, HostBuild, TilingKey
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.host_side import TilingOutcome
from npu_daemon.simulator.task_type import core_kinds, kernel_task_types
from npu_daemon.simulator.tiling_run import tiling_alone
from npu_daemon.simulator.toolchain import obtain_toolchain

_SETTLED = (Status.GUARD_REJECTED, Status.RESOURCE_LIMIT, Status.TIMEOUT)


class Boundary:
    """Checks candidates as the simulator does.

    Args:
        cache_dir: folder for toolchains and builds, which may be the simulator's own.
        chip: chip that operators are defined for.
        announce: called with a message when the simulator is built; by default written to standard error.

    Attributes:
        digest: identity of the check.

    Raises:
        InfrastructureError: the simulator does not compile on this host.
    """

    def __init__(self, cache_dir: Path, chip: Chip, announce: Callable[[str], None] | None = None) -> None:
        self._toolchain = obtain_toolchain(cache_dir, announce or _tell)
        self.digest = self._toolchain.digest
        self._chip = chip
        self._builds = BuildCache(cache_dir / BUILDS_FOLDER, self._toolchain)

    def judge(
        self, spec: OpSpec, case: Case, candidate: Candidate, protocol: MeasureProtocol
    ) -> Failure | Instance:
        """Return why a candidate is refused or cannot be judged, else the kernel that the case launches.

        A candidate that cannot be judged is ``unsupported``: it uses something that the simulator lacks, or
        does not compile, which the device's own compiler reports better.

        Args:
            spec: operator.
            case: case for which the candidate would be built.
            candidate: tiling and kernel sources.
            protocol: time limits of the build.
        """
        kinds, found = core_kinds(kernel_task_types(candidate.kernel)), [Instance()]

        def decide(host: HostBuild) -> TilingKey:
            tiling = tiling_alone(host, kinds, case, self._chip, self._toolchain)
            key = tiling.tiling_key if isinstance(tiling, TilingOutcome) else None
            found.append(instance_of(host.definition, case, key))
            return lambda: key

        read = self._builds.candidate(spec, case, candidate, self._chip, protocol, decide)
        if not isinstance(read, Failure):
            return found[-1]
        if read.status in _SETTLED:
            return read
        said = read.diagnostics[0]
        message = (
            "the simulator, which checks sources before a device runs them, cannot read this: "
            f"{said.message} (whoever runs the daemon can allow it: run_unread in section [cann])"
        )
        return Failure(Status.UNSUPPORTED, (said.model_copy(update={"message": message}),), read.seconds)


def unread(failure: Failure) -> bool:
    """Whether a judgement says that the candidate cannot be judged."""
    return failure.status is Status.UNSUPPORTED


def _tell(message: str) -> None:
    sys.stderr.write(message + "\n")

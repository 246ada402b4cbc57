"""Runs of a candidate's tiling program: in the folder of a run, or alone, beside the build of its kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case
from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.simulator.build_cache import HostBuild
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.host_side import TilingOutcome, run_tiling
from npu_daemon.simulator.task_type import CoreKind
from npu_daemon.simulator.toolchain import Toolchain


def tiling_of(
    host: HostBuild,
    kinds: Collection[CoreKind],
    case: Case,
    chip: Chip,
    toolchain: Toolchain,
    work_dir: Path,
    inputs: Sequence[Sequence[Path]] = (),
) -> TilingOutcome | Failure:
    """Return what a built tiling program decides for a case.

    Args:
        host: the program.
        kinds: kinds of core that its kernel is built for.
        case: case.
        chip: chip whose sizes it reads.
        toolchain: programs of this host.
        work_dir: an existing folder of this run.
        inputs: raw little-endian files, one per tensor, in parameter order; without them values are unknown.
    """
    geometry, folder = chip.tiling_geometry(kinds), toolchain.host_folder
    return run_tiling(host.library, host.definition, case, geometry, work_dir, folder, input_files=inputs)


def tiling_alone(
    host: HostBuild, kinds: Collection[CoreKind], case: Case, chip: Chip, toolchain: Toolchain
) -> TilingOutcome | Failure | None:
    """Return what a built tiling program decides before its kernel is built; ``None`` if it needs values.

    Args:
        host: the program.
        kinds: kinds of core that its kernel is built for.
        case: case.
        chip: chip whose sizes it reads.
        toolchain: programs of this host.
    """
    if host.definition.value_dependent_inputs():
        return None
    folder = Path(tempfile.mkdtemp(prefix="ascend-gym-tiling-"))
    try:
        return tiling_of(host, kinds, case, chip, toolchain, folder)
    finally:
        remove_tree(folder)

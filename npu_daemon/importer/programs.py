"""Runs the programs of an example, and compilers that read one, with limits and confined."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited

_MEMORY_BYTES = 64 << 30  # of addresses: tensor libraries reserve far more than they use
_FILE_BYTES = 4 << 30
_FOLDER_BYTES = 16 << 30
_PROCESSES = 512
_PROCESSOR = (Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu"))


def run_confined(
    argv: Sequence[str],
    *,
    cwd: Path,
    wall_s: float,
    readable: Sequence[Path] = (),
    programs: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> ProcessOutcome:
    """Run a program that may start programs of the system, and may only write below ``cwd``.

    Args:
        argv: program and arguments.
        cwd: working directory.
        wall_s: wall seconds after which it is killed.
        readable: files and folders that it may read, besides those of the system.
        programs: folders with programs that it may start, besides those of the system.
        env: variables on top of the few that are inherited.

    Raises:
        InfrastructureError: it cannot be executed, or could not be supervised.
    """
    limits = ResourceLimits(
        wall_s=wall_s,
        cpu_s=wall_s * 4,
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_FILE_BYTES,
        processes=_PROCESSES,
        folder_bytes=_FOLDER_BYTES,
    )
    reach = Reach(_existing(readable), starts_programs=True, programs=_existing(programs))
    return run_limited(argv, cwd=cwd, limits=limits, reach=reach, env=env)


def python_folders() -> tuple[Path, ...]:
    """Return the folders that a Python program reads to import whatever this process can.

    They include processor information, from which numeric libraries select their code.
    """
    own = [Path(each) for each in (sys.prefix, sys.base_prefix, *sys.path) if each]
    return _existing([*own, *_PROCESSOR])


def _existing(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path for path in dict.fromkeys(paths) if path.exists())

"""Whether the simulator's own programs and files still work.

Asked before a candidate is blamed for what looks like a missing library, a program that cannot be executed,
or a file that cannot be read.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from ascend_gym.core.wheel import COMPILER_PACKAGE, compiler_program
from npu_daemon.own_programs import unstartable
from npu_daemon.simulator.host_toolchain import runner_of
from npu_daemon.simulator.toolchain import Toolchain, current_digest


def simulator_trouble(toolchain: Toolchain) -> str | None:
    """Return what is wrong with the simulator on this host, or ``None``.

    What lies in the cache is verified and repaired elsewhere (``own_files``).
    """
    programs = (
        *(toolchain.run_program, toolchain.launcher_program, toolchain.price_program),
        *(toolchain.races_program, runner_of(toolchain.host_folder)),
    )
    for command in (*([str(program)] for program in programs), [compiler_program(), "clang", "--version"]):
        problem = unstartable(command)
        if problem is not None:
            return problem
    if current_digest() != toolchain.digest:
        return "the simulator's sources are not those that this process began with: start it again"
    wheel = distribution(COMPILER_PACKAGE)
    for file in wheel.files or ():
        path = Path(str(wheel.locate_file(file)))
        try:
            whole = file.size is None or path.stat().st_size == file.size
        except OSError:
            whole = False
        if not whole:
            return f"{path} is missing or damaged: install the package {COMPILER_PACKAGE} again"
    return None

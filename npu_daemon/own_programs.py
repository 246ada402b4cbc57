"""Whether a program of this host starts: asked before a candidate is blamed for one that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.remove_tree import scratch_folder
from npu_daemon.sandbox import ResourceLimits, run_limited

NOT_STARTED = re.compile(
    r"Error 12[67]\b|command not found|cannot execute|error while loading shared libraries"
)
"""What make, shells and the dynamic loader say of a program that they could not start."""
_NOT_EXECUTED = (126, 127)  # exit statuses of shells and of the dynamic loader
_LIMITS = ResourceLimits(wall_s=30.0, cpu_s=30.0, memory_bytes=1 << 46, file_bytes=1 << 20, processes=256)


def unstartable(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """Return why a program of this host does not start, or ``None``; what it then does is of no interest.

    Args:
        command: program and arguments with which it ends soon.
        environment: its variables.
    """
    with scratch_folder(prefix="ascend-gym-check-") as folder:
        try:
            outcome = run_limited(command, cwd=folder, limits=_LIMITS, reach=None, env=environment)
        except InfrastructureError as error:
            return str(error)
    said = outcome.stderr.decode("utf-8", "replace").strip()
    if outcome.returncode not in _NOT_EXECUTED and not NOT_STARTED.search(said):
        return None
    return f"{command[0]} does not start on this host: {said[-300:] or f'exit status {outcome.returncode}'}"

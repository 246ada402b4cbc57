"""Ray in a process of its own, which it may end: a driver that has lost its cluster still has its tables.

When the head or its own node is gone, Ray ends the process that is connected to it, with a log of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from ascend_gym.core.child_process import ChildProcess
from ascend_gym.core.errors import AscendGymError, InfrastructureError
from ascend_gym.core.interrupts import SIGNALS, interrupts_held_back
from ascend_gym.core.own_python import own_python_command
from ascend_gym.sweep.jobs import RunTask, Update

_END_TIMEOUT_S = 30.0


class RayProcess:
    """An ``Executor`` on a Ray cluster: a ``RayExecutor`` in a child process.

    Args:
        address: see ``connected_ray``.
        runs: likewise.

    Raises:
        MisuseError: Ray is not installed.
        InfrastructureError: there is no cluster at the address.
    """

    def __init__(self, address: str, runs: int) -> None:
        self._child = ChildProcess([*own_python_command(__name__), address, str(runs)])
        self._line = Connection(os.dup(self._child.line.fileno()))
        self._over = False
        try:
            self._answer()
        except AscendGymError:
            self.close()
            raise

    def capacity(self) -> int:
        """Return the cluster's number of units of the resource."""
        count: int = self._call("capacity")
        return count

    def start(self, task: RunTask) -> None:
        """Start a run."""
        self._call("start", task)

    def updates(self, timeout_s: float) -> list[Update]:
        """Return updates of runs; see ``Executor.updates``."""
        found: list[Update] = self._call("updates", timeout_s)
        return found

    def stop_all(self) -> None:
        """Ask all runs to stop."""
        self._call("stop_all")

    def close(self) -> None:
        """Kill all runs that are still active, and end the process."""
        if self._over:
            return
        self._over = True
        self._line.close()
        self._child.line.close()
        with suppress(subprocess.TimeoutExpired):
            self._child.process.wait(_END_TIMEOUT_S)
        self._child.kill()
        self._child.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        with interrupts_held_back():  # an answer belongs to its call
            try:
                self._line.send((name, arguments))
            except OSError as error:
                raise self._gone() from error
            return self._answer()

    def _answer(self) -> Any:
        try:
            error, value = self._line.recv()
        except (EOFError, OSError) as lost:
            raise self._gone() from lost
        if error is not None:
            raise error
        return value

    def _gone(self) -> InfrastructureError:
        with suppress(subprocess.TimeoutExpired):
            self._child.process.wait(_END_TIMEOUT_S)
        lines = [line.strip() for line in self._child.said().splitlines() if line.strip()]
        reason = f" ({lines[-1]})" if lines else ""
        return InfrastructureError(f"the Ray cluster is gone{reason}")


def main() -> None:
    """Serve calls until the line is closed."""
    from ascend_gym.sweep.ray_executor import RayExecutor, connected_ray

    for number in SIGNALS:  # it ends with its parent
        signal.signal(number, signal.SIG_IGN)
    address, runs, line = sys.argv[1], int(sys.argv[2]), Connection(int(sys.argv[3]))
    try:
        with connected_ray(address, runs) as ray:
            executor = RayExecutor(ray)
            line.send((None, None))
            with suppress(EOFError, ConnectionError):
                _serve(executor, line)
            executor.close()
    except AscendGymError as error:
        line.send((error, None))


def _serve(executor: Any, line: Connection) -> None:
    while True:
        name, arguments = line.recv()
        try:
            line.send((None, getattr(executor, name)(*arguments)))
        except AscendGymError as error:
            line.send((error, None))


if __name__ == "__main__":
    main()

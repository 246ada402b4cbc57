"""The broker's worker processes: started, watched through pidfds, killed and reaped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


class WorkerProcesses:
    """Keeps the processes of workers by worker id.

    Args:
        command: makes the command line of a worker from its id and scratch folder.
        scratch_folder: where each worker gets a folder for temporary files, removed when it has ended.
    """

    def __init__(self, command: Callable[[str, Path], Sequence[str]], scratch_folder: Path) -> None:
        self._command = command
        self._scratch_folder = scratch_folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pidfds: dict[int, str] = {}

    def start(self, worker_id: str) -> int:
        """Start a worker; return a descriptor that becomes readable when the process ends."""
        scratch = self._scratch_folder / worker_id
        scratch.mkdir()
        process = subprocess.Popen(
            self._command(worker_id, scratch),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
        )
        self._processes[worker_id] = process
        pidfd = os.pidfd_open(process.pid)
        self._pidfds[pidfd] = worker_id
        return pidfd

    def kill(self, worker_id: str) -> None:
        """Kill a worker; its descriptor becomes readable."""
        process = self._processes.get(worker_id)
        if process is not None:
            process.kill()

    def watches(self, pidfd: int) -> bool:
        """Whether ``pidfd`` belongs to a worker."""
        return pidfd in self._pidfds

    def reap(self, pidfd: int) -> tuple[str, str, bool]:
        """Collect an ended worker; return its id, how it ended, and whether that was by SIGKILL."""
        worker_id = self._pidfds.pop(pidfd)
        os.close(pidfd)
        returncode = self._processes.pop(worker_id).wait()
        shutil.rmtree(self._scratch_folder / worker_id, ignore_errors=True)
        return worker_id, _how_it_ended(returncode), returncode == -signal.SIGKILL

    def close(self) -> None:
        """Kill and reap every worker. What their candidates left is killed by their sandboxes."""
        for process in self._processes.values():
            process.kill()
        for pidfd in list(self._pidfds):
            self.reap(pidfd)


def _how_it_ended(returncode: int) -> str:
    if returncode < 0:
        return f"its process was killed by {signal.Signals(-returncode).name}"
    return f"its process ended with exit status {returncode}, see the daemon's messages"

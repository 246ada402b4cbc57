"""The broker's worker processes: started, watched through pidfds (one epoll for all), killed and reaped."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.sandbox.server import PR_SET_PDEATHSIG, prctl


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process, stopped or not, when its parent ends in any way.

    Raises:
        InfrastructureError: the parent has already ended.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        raise InfrastructureError(f"parent process {parent_pid} is gone")


class WorkerProcesses:
    """The processes of workers, by worker id.

    Args:
        command: returns the command line of a worker from its id and scratch folder.
        scratch_folder: parent of each worker's folder for temporary files, which is removed when it ends.

    Attributes:
        ended_fd: becomes readable when ``reap`` has processes to collect.
    """

    def __init__(self, command: Callable[[str, Path], Sequence[str]], scratch_folder: Path) -> None:
        self._command = command
        self._scratch_folder = scratch_folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pidfds: dict[int, str] = {}
        self._killed: set[str] = set()
        self._cleaner = ThreadPoolExecutor(1)  # candidates may have left a million files
        self._ended = select.epoll()
        self.ended_fd = self._ended.fileno()

    def start(self, worker_id: str) -> None:
        """Start a worker."""
        scratch = self._scratch_folder / worker_id
        scratch.mkdir()
        process = subprocess.Popen(
            self._command(worker_id, scratch),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),  # before it can be stopped on its way there
        )
        self._processes[worker_id] = process
        pidfd = os.pidfd_open(process.pid)
        self._pidfds[pidfd] = worker_id
        self._ended.register(pidfd, select.EPOLLIN)

    def kill(self, worker_id: str) -> None:
        """Kill a worker; ``reap`` collects it once it has ended."""
        process = self._processes.get(worker_id)
        if process is not None:
            self._killed.add(worker_id)
            process.kill()

    def reap(self) -> Iterator[tuple[str, str, bool]]:
        """Collect ended workers: id, how it ended, and whether by SIGKILL."""
        for pidfd, _ in self._ended.poll(0):
            yield self._collect(pidfd)

    def close(self) -> None:
        """Kill and collect every worker. Their sandboxes kill the remaining processes of candidates."""
        for process in self._processes.values():
            process.kill()
        for pidfd in list(self._pidfds):
            self._collect(pidfd)
        self._ended.close()
        self._cleaner.shutdown()

    def _collect(self, pidfd: int) -> tuple[str, str, bool]:
        worker_id = self._pidfds.pop(pidfd)
        self._ended.unregister(pidfd)
        os.close(pidfd)
        returncode = self._processes.pop(worker_id).wait()
        self._cleaner.submit(_clean_up, self._scratch_folder / worker_id)
        asked = worker_id in self._killed
        self._killed.discard(worker_id)
        how = "the daemon ended it" if asked else _how_it_ended(returncode)
        return worker_id, how, returncode == -signal.SIGKILL


def _clean_up(scratch: Path) -> None:
    with contextlib.suppress(OSError):
        remove_tree(scratch)


def _how_it_ended(returncode: int) -> str:
    if returncode < 0:
        return f"its process was killed by {signal.Signals(-returncode).name}"
    return f"its process ended with exit status {returncode}, see the daemon's messages"

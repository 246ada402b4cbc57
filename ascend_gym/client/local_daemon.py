"""A private daemon as a child process, started on demand and stopped when no longer used."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import subprocess
import threading
import time
import weakref
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ascend_gym.core.child_process import ChildProcess
from ascend_gym.core.closing import Closing
from ascend_gym.core.errors import AscendGymError, InfrastructureError, MisuseError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.text import limit_hint

START_TIMEOUT_S = 300.0
_SOON_S = 2.0
_SHORTEST_WAIT_S = 0.01
_STOP_TIMEOUT_S = 10.0
_EXIT_MISUSE = 2  # of npu-daemon serve
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DaemonOptions:
    """Options of a private daemon.

    Attributes:
        backend: ``simulator``, or ``module:Class`` of another backend.
        chip: chip to measure or simulate.
        workers: number of worker processes; 0 lets the daemon choose.
        cache_dir: folder for builds, inputs and results; ``None`` is the user's cache root.
    """

    backend: str = "simulator"
    chip: str = "910B2"
    workers: int = 0
    cache_dir: Path | None = None

    def arguments(self) -> list[str]:
        """Return the options of ``npu-daemon serve``."""
        cache = ["--cache-dir", str(self.cache_dir)] if self.cache_dir is not None else []
        return ["--backend", self.backend, "--chip", self.chip, "--workers", str(self.workers), *cache]


class LocalDaemon(Closing):
    """A daemon that belongs to this process: nobody else can reach it, and it ends with the process.

    It is ready when the constructor returns. It ends on ``close``, when the object is garbage collected, and
    when this process ends in any way, because its control socket is then closed.

    Args:
        options: options of the daemon.
        start_timeout_s: how long starting may take; the first start on a host builds the simulator.

    Attributes:
        ended_fd: descriptor that becomes readable when the daemon ends, also in forked children.

    Raises:
        MisuseError: the daemon rejects the options.
        InfrastructureError: it did not become ready; the message quotes its output.
    """

    def __init__(
        self, options: DaemonOptions | None = None, start_timeout_s: float = START_TIMEOUT_S
    ) -> None:
        self.options = options or DaemonOptions()
        try:
            folder = PrivateFolder()
        except OSError as error:
            raise InfrastructureError(
                f"the local daemon did not start: {error}; name a folder that can be written to by TMPDIR"
            ) from error
        try:
            self._child = ChildProcess(self._command(folder.path))
        except OSError as error:
            folder.remove()
            problem = f"the local daemon did not start: {error}"
            raise InfrastructureError(problem + limit_hint(problem)) from error
        self.process_pid = self._child.process.pid
        self.ended_fd = os.pidfd_open(self.process_pid)
        self._reap = weakref.finalize(self, _reap, self._child, folder, self.ended_fd, os.getpid())
        self.address = self._wait_ready(start_timeout_s)

    def _command(self, folder: Path) -> list[str]:
        return [
            *(*own_python_command("npu_daemon.__main__"), "serve"),
            *("--bind", f"ipc://{folder}/clients", "--private-folder", str(folder)),
            *(*self.options.arguments(), "--control-fd"),
        ]

    def _wait_ready(self, start_timeout_s: float) -> str:
        control, process = self._child.line, self._child.process
        deadline_s = time.monotonic() + start_timeout_s
        self._tell_what_takes_long(control, deadline_s)
        control.settimeout(max(deadline_s - time.monotonic(), _SHORTEST_WAIT_S))
        error: type[AscendGymError] = InfrastructureError
        try:
            with control.makefile("r") as stream:
                address = stream.readline().strip()
            if address:
                return address
            status = process.wait(_STOP_TIMEOUT_S)
            problem = f"it ended with exit status {status}"
            error = MisuseError if status == _EXIT_MISUSE else InfrastructureError
        except (TimeoutError, subprocess.TimeoutExpired):
            problem = f"it was not ready within {start_timeout_s:g} s"
        said = self.messages()
        self.close()
        problem = f"the local daemon did not start: {problem}{limit_hint(said)}"
        raise error(f"{problem}; its messages:\n{said}")

    def _tell_what_takes_long(self, control: socket.socket, deadline_s: float) -> None:
        """Log once what a slowly starting daemon is doing; on a new host it builds the simulator."""
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while (left_s := deadline_s - time.monotonic()) > 0 and not poll.poll(1000 * min(_SOON_S, left_s)):
            if said := self.messages():
                _LOG.warning("waiting for the private daemon; it says: %s", said.splitlines()[-1])
                return

    def has_ended(self) -> bool:
        """Whether the daemon process has ended. Must not be called after ``close``."""
        poll = select.poll()
        poll.register(self.ended_fd, select.POLLIN)
        return bool(poll.poll(0))

    def messages(self) -> str:
        """Return the end of the daemon's output so far."""
        return self._child.said()

    def close(self) -> None:
        """Stop the daemon and wait until it has ended."""
        self._reap()


def _reap(child: ChildProcess, folder: PrivateFolder, ended_fd: int, owner_pid: int) -> None:
    """Stop the daemon; in a forked child only release its resources, since it belongs to the parent."""
    os.close(ended_fd)
    if os.getpid() != owner_pid:
        child.close()
        folder.leave()
        return
    with contextlib.suppress(OSError):  # the daemon has closed its end already
        child.line.shutdown(socket.SHUT_RDWR)  # forked children hold copies: closing ours would not end it
    child.close()
    try:
        child.process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
    folder.remove()


@dataclass
class SharedDaemons:
    """The private daemons of this process: one per set of options, with reference counting."""

    daemons: dict[DaemonOptions, LocalDaemon] = field(default_factory=dict)
    _users: Counter[LocalDaemon] = field(default_factory=Counter)
    _lock: threading.RLock = field(default_factory=threading.RLock)  # collection may release inside

    def acquire(self, options: DaemonOptions, start_timeout_s: float) -> LocalDaemon:
        """Return the daemon with ``options``, starting one if there is none or it has ended.

        A forked child uses the daemon that its parent had at the time of the fork.
        """
        with self._lock:
            daemon = self.daemons.get(options)
            if daemon is None or daemon.has_ended():  # who uses the ended one releases it later
                daemon = self.daemons[options] = LocalDaemon(options, start_timeout_s)
            self._users[daemon] += 1
            return daemon

    def release(self, daemon: LocalDaemon) -> None:
        """Release one use; the daemon is stopped after the last one."""
        with self._lock:
            self._users[daemon] -= 1
            if self._users[daemon]:
                return
            del self._users[daemon]
            if self.daemons.get(daemon.options) is daemon:
                del self.daemons[daemon.options]
            daemon.close()


SHARED_DAEMONS = SharedDaemons()

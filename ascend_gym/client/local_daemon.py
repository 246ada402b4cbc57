"""A private daemon as a child process, started when needed and gone when not."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import make_private_folder

START_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 10.0
_QUOTED_BYTES = 4000


@dataclass(frozen=True)
class DaemonOptions:
    """What a private daemon is started with.

    Attributes:
        backend: ``simulator``, or ``module:Class`` of another backend.
        chip: chip to measure for.
        workers: worker processes; 0 lets the daemon choose.
        cache_dir: builds, inputs and results; ``None`` is the cache root of this user.
    """

    backend: str = "simulator"
    chip: str = "910B2"
    workers: int = 0
    cache_dir: Path | None = None

    def arguments(self) -> list[str]:
        """Return the options of ``npu-daemon serve``."""
        cache = ["--cache-dir", str(self.cache_dir)] if self.cache_dir is not None else []
        return ["--backend", self.backend, "--chip", self.chip, "--workers", str(self.workers), *cache]


class LocalDaemon:
    """A daemon that belongs to this process: nobody else can reach it, and it ends when this process does.

    It is ready when the constructor returns. It ends on ``close``, when the object is collected, and when
    this process ends in whatever way, because its control socket is then closed.

    Args:
        options: what to start.
        start_timeout_s: how long it may take; the first start on a host builds the simulator.

    Raises:
        InfrastructureError: it did not get ready; the message quotes what it said.
    """

    def __init__(
        self, options: DaemonOptions | None = None, start_timeout_s: float = START_TIMEOUT_S
    ) -> None:
        folder = make_private_folder()
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - kept open: the daemon writes, messages() reads
        control, daemon_end = socket.socketpair()
        with daemon_end:
            arguments = (options or DaemonOptions()).arguments()
            process = subprocess.Popen(
                [
                    *(*own_python_command("npu_daemon.__main__"), "serve"),
                    *("--bind", f"ipc://{folder}/clients", "--private-folder", str(folder)),
                    *("--control-fd", str(daemon_end.fileno())),
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=self._messages,
                pass_fds=[daemon_end.fileno()],
                start_new_session=True,
            )
        self.owner_pid = os.getpid()
        self.process_pid = process.pid
        self._reap = weakref.finalize(self, _reap, process, control, self._messages, folder, self.owner_pid)
        self.address = self._wait_ready(control, process, start_timeout_s)

    def _wait_ready(
        self, control: socket.socket, process: subprocess.Popen[bytes], start_timeout_s: float
    ) -> str:
        control.settimeout(start_timeout_s)
        try:
            with control.makefile("r") as stream:
                address = stream.readline().strip()
            problem = "" if address else f"it ended with exit status {process.wait(_STOP_TIMEOUT_S)}"
        except (TimeoutError, subprocess.TimeoutExpired):
            address, problem = "", f"it was not ready within {start_timeout_s:g} s"
        if not address:
            said = self.messages()
            self.close()
            raise InfrastructureError(f"the local daemon did not start: {problem}; its messages:\n{said}")
        return address

    def messages(self) -> str:
        """Return the end of what the daemon has written so far."""
        written_bytes = os.fstat(self._messages.fileno()).st_size
        start = max(0, written_bytes - _QUOTED_BYTES)
        return os.pread(self._messages.fileno(), _QUOTED_BYTES, start).decode(errors="replace").strip()

    def close(self) -> None:
        """Stop the daemon and wait until it is gone."""
        self._reap()

    def __enter__(self) -> LocalDaemon:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _reap(
    process: subprocess.Popen[bytes],
    control: socket.socket,
    messages: IO[bytes],
    folder: Path,
    owner_pid: int,
) -> None:
    """Stop the daemon; in a forked child only let go of it, since it belongs to the parent."""
    messages.close()
    if os.getpid() != owner_pid:
        control.close()
        return
    with control, contextlib.suppress(OSError):  # OSError: the daemon has closed its end already
        control.shutdown(socket.SHUT_RDWR)  # forked children hold copies: closing ours would not end it
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class SharedDaemons:
    """The private daemons of this process: one per set of options, for as long as somebody uses it."""

    daemons: dict[DaemonOptions, LocalDaemon] = field(default_factory=dict)
    _users: dict[DaemonOptions, int] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)  # collection may release inside

    def acquire(self, options: DaemonOptions, start_timeout_s: float) -> str:
        """Return the address of the daemon with ``options``, starting it for its first user.

        A forked child uses the daemon that its parent had at that time.
        """
        with self._lock:
            self._users[options] = self._users.get(options, 0) + 1
            try:
                if options not in self.daemons:
                    self.daemons[options] = LocalDaemon(options, start_timeout_s)
            except InfrastructureError:
                self._users[options] -= 1
                raise
            return self.daemons[options].address

    def release(self, options: DaemonOptions) -> None:
        """Give up one use; the daemon is stopped after the last one."""
        with self._lock:
            self._users[options] -= 1
            if self._users[options] == 0 and self.daemons[options].owner_pid == os.getpid():
                del self._users[options]
                self.daemons.pop(options).close()


SHARED_DAEMONS = SharedDaemons()

"""Execution of a program within limits, with proof that none of its processes is left.

``run_limited`` delegates each run to a supervisor process (see ``server``), so that it is safe to call
from several threads, and a program that forks twice, changes its session or ignores signals is found and
killed. The number of processes is limited by counting the program's own descendants: ``RLIMIT_NPROC`` also
counts all other processes of the same user and is not enforced for root.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.sandbox.confinement import BUBBLEWRAP, Reach, confined_spec, sandbox_level
from npu_daemon.sandbox.preload import Preload

ALLOWED_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")
REPORT_GRACE_S = 10.0
NOTHING_ELSE = Reach()
_READ_BYTES = 1 << 16
_DROPPED_BYTES = 16 << 20
_SERVER_SCRIPT = Path(__file__).with_name("server.py")
_PRELOADED_SERVER_SCRIPT = Path(__file__).with_name("preloaded_server.py")

ExceededLimit = Literal["wall", "cpu", "file", "folder", "output", "processes"]


def wall_limit_s(cpu_s: float) -> float:
    """Return the wall seconds after which a program is killed that may take ``cpu_s`` CPU seconds.

    A busy host gives each program a share of a processor: what a candidate is told must not depend on that.
    """
    return 3.0 * cpu_s + 5.0


@dataclass(frozen=True)
class ResourceLimits:
    """What a program may use.

    Attributes:
        wall_s: wall seconds until the whole process tree is killed.
        cpu_s: CPU seconds per process (rounded up to whole seconds).
        memory_bytes: address space per process.
        file_bytes: size of each file written.
        processes: threads of all processes of the program together.
        output_bytes: how much of stdout and of stderr is kept. A further 16 MiB is read and dropped; then the
            program is stopped, unless it is as trusted as this process.
        open_files: open descriptors per process.
        folder_bytes: total size of all files in the working folder, sampled during the run and once at the
            end; ``None`` if the program shares the folder.
        folder_entries: maximum number of files and folders there, if ``folder_bytes`` is given.
    """

    wall_s: float
    cpu_s: float
    memory_bytes: int
    file_bytes: int
    processes: int = 64
    output_bytes: int = 1 << 20
    open_files: int = 256
    folder_bytes: int | None = None
    folder_entries: int = 10_000

    def longest(self) -> str:
        """Say in a message what a program took that was ended by its limits of time."""
        return f"more than {self.cpu_s:g} s of a processor, or {self.wall_s:g} s in all"


@dataclass(frozen=True)
class ProcessOutcome:
    """Outcome of a limited program.

    Attributes:
        returncode: exit code, or ``None`` if a signal ended the program.
        signal: number of that signal, or ``None``.
        timed_out: whether it was stopped at its wall or CPU limit.
        output_truncated: whether stdout or stderr was longer than the part that was kept.
        stdout: standard output, up to the limit.
        stderr: standard error, up to the limit.
        seconds: wall seconds from start to end of the program.
        cpu_seconds: CPU seconds of the program and all its descendants.
        exceeded: the limit at which it was stopped, if any. It is never the address space limit: beyond it
            the program's own allocations fail.
        peak_memory_bytes: largest resident size of any of its processes.
    """

    returncode: int | None
    signal: int | None
    timed_out: bool
    output_truncated: bool
    stdout: bytes
    stderr: bytes
    seconds: float
    cpu_seconds: float
    exceeded: ExceededLimit | None = None
    peak_memory_bytes: int = 0


def run_limited(
    argv: Sequence[str],
    *,
    cwd: Path,
    limits: ResourceLimits,
    reach: Reach | None = NOTHING_ELSE,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    preload: Preload | None = None,
) -> ProcessOutcome:
    """Run ``argv`` within ``limits`` and return once it and all its descendants have ended.

    Args:
        argv: program and arguments; a bare program name is looked up in ``PATH``.
        cwd: working directory, also used as ``TMPDIR``.
        limits: limits of the program.
        reach: files that it can access besides system, executable and working directory; ``None``: everything
            that this process can, for programs that are equally trusted.
        env: variables on top of ``ALLOWED_ENVIRONMENT`` of this process; nothing else is inherited.
        pass_fds: descriptors that the program inherits under the same numbers (all above 2).
        preload: program to run, which is loaded once; ``argv`` then contains only its arguments.

    Raises:
        InfrastructureError: the program cannot be executed, or could not be supervised or killed.
    """
    if preload is not None:
        if sandbox_level() == BUBBLEWRAP and reach is not None:
            reach, argv, preload = preload.widened(reach), preload.as_command(argv), None
        else:
            argv = [sys.executable, *argv]
    spec = _spec(argv, cwd, limits, reach, env, pass_fds)
    with ExitStack() as stack:
        control, supervisor_end = _closing(stack, *socket.socketpair())
        pipes = [os.pipe() for _ in range(2)]
        readers = [stack.enter_context(os.fdopen(read_end, "rb", buffering=0)) for read_end, _ in pipes]
        server = _server(preload)
        try:
            server.start_supervisor([supervisor_end.fileno(), *(end for _, end in pipes), *pass_fds])
        finally:
            supervisor_end.close()
            for _, write_end in pipes:
                os.close(write_end)
        most_bytes = None if reach is None else limits.output_bytes + _DROPPED_BYTES
        capture = _Capture(control, readers, limits.output_bytes, most_bytes)
        control.sendall(json.dumps(spec).encode() + b"\n")
        if not capture.until_closed(time.monotonic() + limits.wall_s + REPORT_GRACE_S):
            _kill_hung(server, capture)
    return _outcome(argv, capture)


def _spec(
    argv: Sequence[str],
    cwd: Path,
    limits: ResourceLimits,
    reach: Reach | None,
    env: Mapping[str, str] | None,
    pass_fds: Sequence[int],
) -> dict[str, Any]:
    """Return the supervisor's instructions."""
    environment = _environment(cwd, env)
    executable = _resolve(argv[0], cwd, environment)
    confined = {} if reach is None else confined_spec(executable, cwd, reach, environment, sandbox_level())
    return {
        **confined,
        "argv": list(argv),
        "executable": executable,
        "cwd": str(cwd),
        "env": environment,
        "fds": list(pass_fds),
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "folder_bytes": limits.folder_bytes,
        "folder_entries": limits.folder_entries,
    }


def _closing(stack: ExitStack, *sockets: socket.socket) -> tuple[socket.socket, ...]:
    return tuple(stack.enter_context(end) for end in sockets)


def _environment(cwd: Path, extra: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ALLOWED_ENVIRONMENT if name in os.environ}
    return {"PATH": os.defpath, **inherited, "TMPDIR": str(cwd), **(extra or {})}


def _resolve(program: str, cwd: Path, environment: Mapping[str, str]) -> str:
    if "/" in program:
        return str(cwd / program)
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        raise InfrastructureError(f"program {program!r} was not found in PATH; install it on this host")
    return found


def _kill_hung(server: _ProcessServer, capture: _Capture) -> None:
    """Kill a supervisor that does not report; the server then kills what it supervised."""
    supervisor_pid = capture.supervisor_pid
    if supervisor_pid is None:
        server.kill()
    else:
        os.kill(supervisor_pid, signal.SIGKILL)


def _outcome(argv: Sequence[str], capture: _Capture) -> ProcessOutcome:
    report = capture.report
    if report is None:
        raise InfrastructureError(f"the supervisor of {argv[0]} ended without a report")
    if report["problem"]:
        raise InfrastructureError(f"could not run {argv[0]}: {report['problem']}")
    exceeded: ExceededLimit | None = "output" if capture.flooded else report["exceeded"]
    return ProcessOutcome(
        returncode=report["returncode"],
        signal=report["signal"],
        timed_out=exceeded in ("wall", "cpu"),
        output_truncated=capture.truncated,
        stdout=bytes(capture.kept[0]),
        stderr=bytes(capture.kept[1]),
        seconds=report["seconds"],
        cpu_seconds=report["cpu_seconds"],
        exceeded=exceeded,
        peak_memory_bytes=report["peak_memory_bytes"],
    )


class _Capture:
    """Reads both output pipes to their end, keeping a bounded part, until the supervisor reports.

    Attributes:
        kept: beginnings of stdout and stderr.
        truncated: whether there was more.
        flooded: whether there was so much more that the program was stopped.
    """

    def __init__(
        self,
        control: socket.socket,
        readers: Sequence[IO[bytes]],
        limit_bytes: int,
        most_bytes: int | None = None,
    ) -> None:
        self.kept = (bytearray(), bytearray())
        self.truncated = False
        self.flooded = False
        self._most_bytes = most_bytes
        self._read_bytes = [0, 0]
        self._said = bytearray()
        self._control = control
        self._readers = readers
        self._limit_bytes = limit_bytes
        for reader in readers:
            os.set_blocking(reader.fileno(), False)

    @property
    def supervisor_pid(self) -> int | None:
        """Process id of the supervisor; ``None`` until it has reported it."""
        return int(self._lines[0]) if self._lines else None

    @property
    def report(self) -> dict[str, Any] | None:
        """The supervisor's report on how the program ended, if there is one."""
        parsed: dict[str, Any] | None = json.loads(self._lines[1]) if len(self._lines) > 1 else None
        return parsed

    @property
    def _lines(self) -> list[bytes]:
        return [bytes(line) for line in self._said.splitlines(keepends=True) if line.endswith(b"\n")]

    def until_closed(self, deadline_s: float) -> bool:
        """Read until the supervisor has ended; return ``False`` if it has not by ``deadline_s``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            for index, reader in enumerate(self._readers):
                selector.register(reader, selectors.EVENT_READ, index)
            while (remaining_s := deadline_s - time.monotonic()) > 0:
                for key, _ in selector.select(remaining_s):
                    if key.fileobj is self._control:
                        chunk = self._control.recv(_READ_BYTES)
                        self._said += chunk
                        if not chunk:
                            return self._drain()
                    elif not self._read(key.data):
                        selector.unregister(key.fileobj)
        return False

    def _drain(self) -> bool:
        for index in range(len(self._readers)):
            while self._read(index):
                continue
        return True

    def _read(self, index: int) -> bool:
        """Read once; return whether there may be more to read."""
        chunk = None if self.flooded else self._readers[index].read(_READ_BYTES)
        if not chunk:
            return False
        self._read_bytes[index] += len(chunk)
        if self._most_bytes is not None and self._read_bytes[index] > self._most_bytes:
            self.flooded = self.truncated = True
            self._control.shutdown(socket.SHUT_WR)  # the supervisor ends what nobody listens to
            return False
        room = self._limit_bytes - len(self.kept[index])
        self.kept[index].extend(chunk[:room])
        self.truncated |= len(chunk) > room
        return True


class _ProcessServer:
    """The process that forks supervisors for this process; it ends when this process does."""

    def __init__(self, preload: Preload | None) -> None:
        self.owner_pid = os.getpid()
        script = _SERVER_SCRIPT if preload is None else _PRELOADED_SERVER_SCRIPT
        program = [preload.as_argument()] if preload is not None else []
        self._socket, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with server_end:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script), str(server_end.fileno()), *program],
                pass_fds=[server_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={},
            )

    def start_supervisor(self, fds: Sequence[int]) -> None:
        """Fork a supervisor that owns copies of ``fds``."""
        socket.send_fds(self._socket, [b"r"], list(fds))

    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill a server that does not answer."""
        self._process.kill()

    def close(self) -> None:
        """Let the server finish, then reap it."""
        self._socket.close()
        if os.getpid() == self.owner_pid:
            self._process.wait()


_server_lock = threading.Lock()
_servers: dict[Preload | None, _ProcessServer] = {}


def _server(preload: Preload | None = None) -> _ProcessServer:
    with _server_lock:
        server = _servers.get(preload)
        if server is None or server.owner_pid != os.getpid() or not server.is_alive():
            if not _servers:
                atexit.register(_close_servers)
            server = _servers[preload] = _ProcessServer(preload)
        return server


def start_loading(preload: Preload) -> None:
    """Start the server of a program ahead of its first run, which then does not wait for it."""
    if sandbox_level() != BUBBLEWRAP:
        _server(preload)


def _close_servers() -> None:
    for server in _servers.values():
        if server.owner_pid == os.getpid():
            server.close()

"""A run in a child process, which streams its files and steps to the parent.

Each run has its own process because OpenEvolve needs a main thread, a crash must only affect one run, and
memory must be released. The child ends when its standard input is closed, so a killed parent leaves no
children. Consecutive runs in one place are forked from the same server process.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import sys
import weakref
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ascend_gym.core.child_process import ChildProcess
from ascend_gym.core.interrupts import SIGNALS
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.search.journal import JOURNAL_NAME
from ascend_gym.sweep.jobs import FilePart, RunEnd, RunEnding, RunStep, RunTask, Update
from ascend_gym.sweep.run_folders import LOG_NAMES, SETTINGS_NAME

_ORDER_BYTES = 1 << 20
_STATUS_BYTES = 16
_END_TIMEOUT_S = 60.0  # a busy host takes its time to end a process

_READ_BYTES = 1 << 16
_EXIT_MISUSE = 2


class ForkServer:
    """Starts children that execute ``main()`` of a module, one after the other, as forks of one process.

    Starting an interpreter with its imports takes most of a second of processor time, a fork a hundredth.

    The parent sends one request per child: its working folder and arguments, with its standard input and
    output as descriptors. The server answers with the child's exit status. Standard error of children
    is kept for ``said``. The server ends when its connection is closed and its child has ended; the
    child ends when its standard input is closed. In that case the server removes the folder, because
    nobody else knows of it.

    Args:
        module: module with ``main``, which exits with the status of the child, and ``prepare``, called once
            before.

    Attributes:
        module: as given.
        ended: whether the server has ended.

    Raises:
        OSError: the server could not be started.
    """

    def __init__(self, module: str) -> None:
        self.module, self.ended = module, False
        self._process = ChildProcess([*own_python_command(__name__), module], socket.SOCK_SEQPACKET)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the child has ended."""
        return self._process.line.fileno()

    def begin(self, folder: Path, arguments: Sequence[str], stdin: int, stdout: int) -> None:
        """Start a child process; the previous one must have ended.

        Args:
            folder: working directory of the child; not removed here.
            arguments: command-line arguments.
            stdin: descriptor for its standard input; stays open here.
            stdout: descriptor for its standard output; stays open here.

        Raises:
            OSError: the server has ended, or the arguments are too long.
        """
        self._process.messages.truncate(0)
        self._process.messages.seek(0)  # the server's own position too: both have the same open file
        try:
            socket.send_fds(
                self._process.line, [json.dumps([str(folder), *arguments]).encode()], [stdin, stdout]
            )
        except OSError:
            self._end()
            raise

    def status(self) -> int | None:
        """Wait for the exit status of the child; ``None`` if the server has ended without one."""
        answer = self._answer() if select.select([self], [], [], _END_TIMEOUT_S)[0] else b""
        if answer:
            return int(answer)
        self._end()
        return None

    def _answer(self) -> bytes:
        """Return the server's answer; empty if it has ended, whether or not it read its request."""
        try:
            return self._process.line.recv(_STATUS_BYTES)
        except ConnectionResetError:
            return b""

    def said(self) -> str:
        """Return the end of the child's standard error."""
        return self._process.said()

    def close(self) -> None:
        """Stop the server and its child, and wait until the server has ended."""
        if not self.ended:
            self._end()
        self._process.close()

    def _end(self) -> None:
        self.ended = True
        self._process.kill()


def main() -> None:
    """Serve requests; a forked child returns from the loop and executes its request."""
    for number in SIGNALS:  # it ends with its parent; its children take them as they like
        signal.signal(number, signal.SIG_IGN)
    module, line = import_module(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    module.prepare()
    while _is_server(line):
        continue
    if line.fileno() == -1:  # closed by the child
        module.main()


def _is_server(line: socket.socket) -> bool:
    """Process one request; return whether this process is still the server."""
    order, descriptors, _, _ = socket.recv_fds(line, _ORDER_BYTES, 2)
    if not order:
        return False
    arguments = json.loads(order)
    child = os.fork()
    if not child:
        line.close()
        for standard, descriptor in enumerate(descriptors):
            os.dup2(descriptor, standard)
            os.close(descriptor)
        sys.argv[1:] = arguments
        return False
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    try:
        line.send(str(os.waitstatus_to_exitcode(status)).encode())
    except BrokenPipeError:
        shutil.rmtree(arguments[0], ignore_errors=True)
        return False
    return True


class RunPlace:
    """Executes one run at a time.

    Args:
        host: name of this place; by default the host name.
    """

    def __init__(self, host: str | None = None) -> None:
        self._host = host or socket.gethostname()
        self._server: ForkServer | None = None

    def begin(self, task: RunTask) -> ChildRun:
        """Start a run; the previous one must have ended.

        Raises:
            OSError: no process can be started, or the disk is full.
        """
        if self._server is None or self._server.ended or self._server.module != task.module:
            self.close()
            self._server = ForkServer(task.module)
        return ChildRun(task, self._host, self._server)

    def close(self) -> None:
        """Stop the current run, if any."""
        if self._server is not None:
            self._server.close()
            self._server = None


class ChildRun:
    """Executes or resumes one run in a scratch folder.

    Args:
        task: run to execute.
        host: name of this place.
        server: starts the process.
    """

    def __init__(self, task: RunTask, host: str, server: ForkServer) -> None:
        self._task, self._host, self._server = task, host, server
        scratch = PrivateFolder()  # the next daemon of this host removes it if this process is killed
        self._remove_scratch = weakref.finalize(self, scratch.remove)
        self._folder = scratch.path / "run"
        self._folder.mkdir()
        self._sent_bytes = {name: len(data) for name, data in task.files.items()}
        for name, data in {**task.files, SETTINGS_NAME: task.job.settings}.items():
            (self._folder / name).write_bytes(data)
        self._line = b""
        self._end: RunEnd | None = None
        self._stop_fd, self._steps_fd = self._begun()

    def _begun(self) -> tuple[int, int]:
        """Start the process; return the ends of the pipes for stopping it and for its steps."""
        daemon = ["--daemon", self._task.daemon] if self._task.daemon is not None else []
        stdin, stop_fd = os.pipe()
        steps_fd, stdout = os.pipe()
        try:
            self._server.begin(self._folder, [*daemon, *self._task.arguments], stdin, stdout)
        except OSError:
            os.close(stop_fd)
            os.close(steps_fd)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        return stop_fd, steps_fd

    def updates(self, timeout_s: float) -> Update:
        """Return news of the run, waiting up to ``timeout_s``. Once it returns the end, the run is gone."""
        waited: list[int] = [self._steps_fd, self._server.fileno()]
        ready = select.select(waited, [], [], timeout_s)[0]
        steps: list[RunStep] = []
        while self._steps_fd in ready and (data := os.read(self._steps_fd, _READ_BYTES)):
            self._take(data, steps)
            ready = select.select(waited, [], [], 0)[0]
        end = self._ended() if ready else None
        parts = self._new_parts(everything=end is not None)
        if end is not None:
            self._close()
        return Update(self._task.job.job_id, self._task.attempt, self._host, parts, tuple(steps), end)

    def stop(self) -> None:
        """Ask the run to stop; ``updates`` returns its end."""
        if self._stop_fd >= 0:
            os.close(self._stop_fd)
            self._stop_fd = -1

    def _close(self) -> None:
        self.stop()
        os.close(self._steps_fd)
        self._remove_scratch()

    def _take(self, data: bytes, steps: list[RunStep]) -> None:
        """Process the child's output: one JSON line per step, and one for the end."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "ending" in event:
                self._end = RunEnd(RunEnding(event["ending"]), event["message"])
            else:
                steps.append(RunStep(**event))

    def _ended(self) -> RunEnd:
        """Return how the child ended, as it reported itself if possible."""
        status = self._server.status()
        if self._end is not None:
            return self._end
        was_asked_to_stop = self._stop_fd < 0
        without_a_word = RunEnding.INTERRUPTED if was_asked_to_stop else RunEnding.LOST
        ending = RunEnding.REFUSED if status == _EXIT_MISUSE else without_a_word
        return RunEnd(ending, f"exit status {status}: {self._server.said()}")

    def _new_parts(self, *, everything: bool) -> tuple[FilePart, ...]:
        """Return what was appended to the logs, and at the end every other file too.

        The journal is read first and sent last, so that no result arrives without its timing and answer.
        """
        journal = self._new_part(JOURNAL_NAME)
        others = [self._new_part(name) for name in LOG_NAMES if name != JOURNAL_NAME]
        parts = [part for part in (*others, journal) if part is not None]
        return (*parts, *(self._results() if everything else ()))

    def _new_part(self, name: str) -> FilePart | None:
        path = self._folder / name
        if not path.exists():
            return None
        sent_bytes, size_bytes = self._sent_bytes.get(name, 0), path.stat().st_size
        offset_bytes = sent_bytes if size_bytes >= sent_bytes else 0  # a resumed journal may be cut
        with path.open("rb") as file:
            file.seek(offset_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and offset_bytes == sent_bytes:
            return None
        self._sent_bytes[name] = offset_bytes + len(whole)
        return FilePart(name, offset_bytes, whole)

    def _results(self) -> list[FilePart]:
        known = {*LOG_NAMES, SETTINGS_NAME}
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        named = [(path.relative_to(self._folder).as_posix(), path) for path in files]
        return [FilePart(name, 0, path.read_bytes()) for name, path in named if name not in known]

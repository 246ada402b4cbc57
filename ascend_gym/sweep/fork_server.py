"""A process that has imported the modules of runs, and forks one child at a time for them.

Starting an interpreter with its imports takes most of a second of processor time, a fork a hundredth of that.

The parent sends one request per child: its working folder and arguments, with its standard input and output
as descriptors. The server answers with the child's exit status. Standard error of children is kept for
``said``. The server ends when its connection is closed and its child has ended; the child ends when its
standard input is closed. In that case the server removes the folder, because nobody else knows of it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ascend_gym.core.own_python import own_python_command
from ascend_gym.search.interrupts import SIGNALS

_ORDER_BYTES = 1 << 20
_STATUS_BYTES = 16
_QUOTED_BYTES = 2000
_END_TIMEOUT_S = 10.0


class ForkServer:
    """Starts children that execute ``main()`` of a module, one after the other.

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
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - kept open: children write, said() reads
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*own_python_command(__name__), module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=self._messages,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the child has ended."""
        return self._line.fileno()

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
        self._messages.truncate(0)
        self._messages.seek(0)  # the server's own position too: both have the same open file
        try:
            socket.send_fds(self._line, [json.dumps([str(folder), *arguments]).encode()], [stdin, stdout])
        except OSError:
            self._end()
            raise

    def status(self) -> int | None:
        """Wait for the exit status of the child; ``None`` if the server has ended without one."""
        answer = self._answer() if select.select([self._line], [], [], _END_TIMEOUT_S)[0] else b""
        if answer:
            return int(answer)
        self._end()
        return None

    def _answer(self) -> bytes:
        """Return the server's answer; empty if it has ended, whether or not it read its request."""
        try:
            return self._line.recv(_STATUS_BYTES)
        except ConnectionResetError:
            return b""

    def said(self) -> str:
        """Return the end of the child's standard error."""
        written_bytes = os.fstat(self._messages.fileno()).st_size
        start = max(0, written_bytes - _QUOTED_BYTES)
        return os.pread(self._messages.fileno(), _QUOTED_BYTES, start).decode(errors="replace").strip()

    def close(self) -> None:
        """Stop the server and its child, and wait until the server has ended."""
        if not self.ended:
            self._end()
        self._line.close()
        self._messages.close()

    def _end(self) -> None:
        self.ended = True
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


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

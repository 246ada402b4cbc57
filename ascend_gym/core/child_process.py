"""Child processes that are supervised: in a group of their own, with a line, and what they say kept."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

_SAID_BYTES = 4000


class ChildProcess:
    """A child in a process group of its own, at the other end of a line.

    It should end by itself when the line is closed, so that it does not outlive a parent that was killed.

    Attributes:
        process: the child.
        line: this end of the line.
        messages: file of its standard output and standard error.
    """

    def __init__(
        self, command: Sequence[str], kind: socket.SocketKind = socket.SOCK_STREAM, **options: Any
    ) -> None:
        """Start the child.

        Args:
            command: what it executes; the descriptor of its end of the line is appended.
            kind: of the line.
            options: of ``subprocess.Popen``: working directory and environment.

        Raises:
            OSError: it could not be started.
        """
        self.messages = tempfile.TemporaryFile()  # noqa: SIM115 - kept open: the child writes, said() reads
        self.line, theirs = socket.socketpair(socket.AF_UNIX, kind)
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [*command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=self.messages,
                    stderr=self.messages,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    **options,
                )
        except OSError:
            self.close()
            raise

    def said(self) -> str:
        """Return the end of what it wrote; the position of the file, which the child shares, stays."""
        start = max(0, os.fstat(self.messages.fileno()).st_size - _SAID_BYTES)
        return os.pread(self.messages.fileno(), _SAID_BYTES, start).decode(errors="replace").strip()

    def kill(self) -> None:
        """End it and all processes of its group; return when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Close the line and the file of messages."""
        self.line.close()
        self.messages.close()

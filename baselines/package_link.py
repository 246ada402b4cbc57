"""The process in which a package of others runs a search, and the line between it and us.

Messages are JSON objects, one a line. The first one says what to do. Then the child asks and waits.
OpenEvolve asks

    {"ask": "complete", "messages": [[role, content], ...]}   -> {"text": ...}
    {"ask": "evaluate", "program": ...}                       -> {"metrics": {...}, "feedback": ...}
    {"ask": "next", "problem": ...}                           -> {}

where ``next`` says why an answer gave no program to evaluate, and asks whether to go on. GEPA asks

    {"ask": "reflect", "files": {path: text}, "cases": [...]} -> {"files": {path: new text}}
    {"ask": "evaluate", "files": {path: text}}                -> {"scores": {case: score}}

where no new text means that the answer gave no version to evaluate.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ascend_gym.core.child_process import ChildProcess
from ascend_gym.core.config import child_environment
from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.private_folder import PrivateFolder

_SILENCE_LIMIT_S = 300.0
_END_TIMEOUT_S = 10.0
_CHECK_INTERVAL_S = 0.01
_QUOTED_LINES = 15
_STATUS_ALONE = 3


def require_package(package: str, title: str, supported: str) -> None:
    """Check that a package is installed in a version that begins with ``supported``.

    Raises:
        MisuseError: it is not.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        found = "none"
    if not found.startswith(supported):
        release = f"{supported}x" if supported.endswith(".") else supported
        needed = f"method {package} needs {title} {release}, and {found} is installed"
        raise MisuseError(f"{needed}: pip install 'ascend-gym[{package}]'")


class Channel:
    """One end of the line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message.

        Raises:
            OSError: nobody is at the other end.
        """
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or ``None`` when the other end was closed.

        Raises:
            OSError: the connection broke, or nothing came within its timeout.
            ValueError: what came is no message.
        """
        line = self._incoming.readline()
        if not line.endswith(b"\n"):
            return None
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError(f"expected a JSON object, got {line[:200]!r}")
        return message

    def close(self) -> None:
        """Close what it reads from; the connection is whose it was."""
        self._incoming.close()


class Line:
    """The child's end: asks the parent. The process ends on the spot when there is no parent any more."""

    def __init__(self, descriptor: int) -> None:
        """Speak through the line of that descriptor."""
        self._channel = Channel(socket.socket(fileno=descriptor))

    def wait(self) -> dict[str, Any]:
        """Return the parent's next message."""
        try:
            message = self._channel.receive()
        except OSError:
            message = None
        return message if message is not None else self._end_alone()

    def ask(self, question: str, **details: Any) -> dict[str, Any]:
        """Return the parent's answer to a question."""
        try:
            self._channel.send({"ask": question, **details})
        except OSError:
            self._end_alone()
        return self.wait()

    def _end_alone(self) -> Any:
        shutil.rmtree(Path.cwd(), ignore_errors=True)
        os._exit(_STATUS_ALONE)


class Child:
    """A child process in a process group and a scratch folder of its own.

    It is given the descriptor of its end of the line as an argument, waits for a first message, and must end
    by itself when the line is closed, so that it does not outlive a parent that was killed.
    """

    def __init__(self, command: Sequence[str], package: str, **environment: str) -> None:
        """Start ``command``, which runs a package of that name, with some variables of its environment.

        Raises:
            InfrastructureError: it could not be started.
        """
        self._package = package
        self._folder = PrivateFolder()
        variables = child_environment(PYTHONUTF8="1", TMPDIR=str(self._folder.path), **environment)
        try:
            self._child = ChildProcess(command, cwd=self._folder.path, env=variables)
        except OSError as error:
            self._folder.remove()
            raise InfrastructureError(f"{package} could not be started: {error}") from error
        self._child.line.settimeout(_SILENCE_LIMIT_S)
        self._channel = Channel(self._child.line)
        self._closed = False

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._child.process.pid

    def question(self) -> dict[str, Any] | None:
        """Wait for what it asks next; ``None`` when it has ended well.

        Raises:
            InfrastructureError: it crashed, or fell silent; the message quotes what it wrote last.
        """
        try:
            message = self._channel.receive()
        except TimeoutError as error:
            raise self._failed(f"was silent for {_SILENCE_LIMIT_S:g} s") from error
        except ValueError as error:
            raise self._failed(f"sent something else than a message: {error}") from error
        except OSError:
            message = None
        if message is None and self._exit_status() != 0:
            raise self._failed(f"ended with exit status {self._exit_status()}")
        return message

    def answer(self, message: Mapping[str, Any]) -> None:
        """Send the first message, or answer its question.

        Raises:
            InfrastructureError: it has ended.
        """
        try:
            self._channel.send(message)
        except OSError as error:
            raise self._failed(f"ended with exit status {self._exit_status()}") from error

    def close(self) -> None:
        """End it and all that it started, and wait until they are gone.

        Raises:
            InfrastructureError: one of them could not be ended.
        """
        if self._closed:
            return
        self._closed = True
        self._channel.close()
        self._child.kill()
        try:
            _wait_until_gone(self.pid)
        finally:
            self._child.close()
            self._folder.remove()

    def _exit_status(self) -> int | None:
        """Wait for its end and return the exit status; ``None`` if it goes on."""
        try:
            return self._child.process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None

    def _failed(self, how: str) -> InfrastructureError:
        quoted = "\n".join(self._child.said().splitlines()[-_QUOTED_LINES:]) or "(nothing)"
        return InfrastructureError(f"{self._package} {how}; its last messages:\n{quoted}")


def _wait_until_gone(group: int) -> None:
    """Wait until no process of a group that was killed runs any more."""
    give_up_at = time.monotonic() + _END_TIMEOUT_S
    while running := _running(group):
        if time.monotonic() > give_up_at:
            raise InfrastructureError(f"processes {running}, in which a search ran, could not be ended")
        time.sleep(_CHECK_INTERVAL_S)


def _running(group: int) -> list[int]:
    """Return the processes of a group, without those that have ended and were not reaped yet."""
    running = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, _, its_group, *_ = stat.read_text("utf-8", errors="replace").rpartition(")")[2].split()
            if int(its_group) == group and state not in "ZX":
                running.append(int(stat.parent.name))
    return running

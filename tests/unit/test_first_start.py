"""What is said while a private daemon takes long to start, and where no file can be opened any more."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Iterator

import pytest

from ascend_gym.client import local_daemon
from ascend_gym.client.local_daemon import LocalDaemon
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.text import limit_hint


class Starting(LocalDaemon):
    """A daemon that has said something but does not get ready."""

    def __init__(self, said: str) -> None:
        self._said = said

    def messages(self) -> str:
        """Return what it said."""
        return self._said


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    monkeypatch.setattr(local_daemon, "_SOON_S", 0.0)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_people_learn_what_the_first_start_waits_for(
    control: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    Starting("first\nbuilding the simulator (once, about half a minute)")._tell_what_takes_long(
        control[0], time.monotonic() + 180.0
    )
    (record,) = caplog.records
    assert record.levelno == logging.WARNING, "less would be shown to nobody"
    assert record.getMessage().endswith("it says: building the simulator (once, about half a minute)")


@pytest.mark.parametrize(("said", "address"), [("", b""), ("building", b"ipc:///x\n")])
def test_nothing_is_said_without_need(
    control: tuple[socket.socket, socket.socket],
    caplog: pytest.LogCaptureFixture,
    said: str,
    address: bytes,
) -> None:
    control[1].sendall(address)
    Starting(said)._tell_what_takes_long(control[0], time.monotonic() + 0.1)
    assert caplog.records == []


def test_exhausted_descriptors_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(local_daemon.subprocess, "Popen", refuse)
    with pytest.raises(InfrastructureError, match=r"did not start: .*Too many open files; .*ulimit -n"):
        LocalDaemon()
    assert limit_hint("No space left on device") == ""

"""One server, one child after the other: arguments, streams, exit statuses, and what is left of them."""

import os
import select
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemon_processes import PYTHONPATH

from ascend_gym.sweep.child_run import ForkServer


@pytest.fixture
def server():
    opened = ForkServer("forked_child")
    yield opened
    opened.close()


@contextmanager
def _begun(server, *arguments, given=b""):
    """Begin a child; yield the end of the pipe that it writes to."""
    stdin, told = os.pipe()
    written, stdout = os.pipe()
    os.write(told, given)
    server.begin(Path("nowhere"), arguments, stdin, stdout)
    for descriptor in (stdin, told, stdout):
        os.close(descriptor)
    with os.fdopen(written) as output:
        yield output


def test_children_follow_each_other_in_one_server(server):
    for number in ("1", "2"):
        with _begun(server, "echo", number, given=b"in") as output:
            own, preparer, parent, given = output.read().split()
        assert (own, given) == (number, "in")
        assert preparer == parent, "what was prepared is not prepared again"
        assert server.status() == 0
    assert not server.ended


def test_a_child_that_fails_is_quoted_and_the_next_one_is_not_blamed(server):
    with _begun(server, "fail", "a long story", "2") as output:
        assert (output.read(), server.status()) == ("", 2)
    assert server.said() == "a long story"
    with _begun(server, "fail", "short", "3") as output:
        assert (output.read(), server.status()) == ("", 3)
    assert server.said() == "short"


def test_a_killed_child_leaves_the_server(server):
    with _begun(server, "die") as output:
        assert (output.read(), server.status()) == ("", -9)
    with _begun(server, "echo", given=b"still here") as output:
        assert output.read().endswith("still here\n")
    assert server.status() == 0


def test_a_killed_server_is_noticed(server):
    with _begun(server, "kill server") as output:
        assert (output.read(), server.status()) == ("", None)
    assert server.ended


def test_an_order_to_a_server_that_is_gone_is_refused(server):
    with _begun(server, "kill server") as output:
        output.read()
        server.status()
    with pytest.raises(OSError, match=r"Broken pipe|Connection reset|not connected"), _begun(server, "echo"):
        pass


def test_a_module_that_cannot_be_imported_is_quoted():
    server = ForkServer("no_such_module")
    try:
        with _begun(server, "echo") as output:
            assert (output.read(), server.status()) == ("", None)
        assert "No module named 'no_such_module'" in server.said()
    finally:
        server.close()


_OWNER = """
import os, signal, sys
from pathlib import Path

from ascend_gym.sweep.child_run import ForkServer

stdin, _ = os.pipe()
server = ForkServer("forked_child")
server.begin(Path(sys.argv[1]), ["orphan"], stdin, sys.stdout.fileno())
signal.pause()
"""


def test_the_folder_of_a_child_whose_owner_is_killed_is_removed(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-c", _OWNER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        ended_fd = os.pidfd_open(int(owner.stdout.readline()))
        assert folder.exists()
        owner.kill()
    assert select.select([ended_fd], [], [], 180.0)[0], "the server outlives its owner"
    os.close(ended_fd)
    assert not folder.exists()

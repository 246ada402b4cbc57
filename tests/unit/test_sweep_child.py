"""The process of one run of a sweep, in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ascend_gym.cli import sweep_child
from ascend_gym.core.private_folder import remove_abandoned_folders


class _InterruptsAtOnce:
    """A thread that finds the sweep gone as soon as it starts."""

    def __init__(self, **_: Any) -> None:
        pass

    def start(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_a_run_that_is_interrupted_before_it_begins_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "argv", ["sweep_child", "nowhere"])
    monkeypatch.setattr(
        sweep_child, "_StepStream", lambda: SimpleNamespace(write=lambda **event: events.append(event))
    )
    of_threads = SimpleNamespace(Thread=_InterruptsAtOnce, Event=threading.Event)
    monkeypatch.setattr(sweep_child, "threading", of_threads)
    sweep_child.main()
    assert events == [{"ending": "interrupted", "message": "interrupted before it began"}]


KILLED = """
import os, signal
from types import SimpleNamespace
from ascend_gym.sweep.child_run import ChildRun
task = SimpleNamespace(files={}, job=SimpleNamespace(settings=b"{}"), daemon=None, arguments=())
run = ChildRun(task, "here", SimpleNamespace(begin=lambda *_: None))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_run_whose_place_is_killed_goes_with_the_next_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:
        environment = {**os.environ, "TMPDIR": parent, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert len(os.listdir(parent)) == 1
        monkeypatch.setattr(tempfile, "tempdir", parent)
        remove_abandoned_folders()
        assert os.listdir(parent) == []

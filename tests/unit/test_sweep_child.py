"""The process of one run of a sweep, in this one."""

from __future__ import annotations

import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ascend_gym.cli import sweep_child


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

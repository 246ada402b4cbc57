"""SIGINT and SIGTERM: the first one stops the work in hand, the second the process.

What must not be left half done holds both back. The exception of the first can get lost where compiled code
calls Python, so that loops ask for it too.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_S = 1.0
"""What comes so soon after the first signal is no second one: timeout(1) and others send each of them twice,
to a process and to its group."""
_STATUS_OF_SIGNALS = 128  # as shells count


class Interrupts:
    """What SIGINT and SIGTERM do while a command runs.

    Attributes:
        first: the signal that came first; ``None`` if none has come.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self._first_s = 0.0

    @property
    def exit_status(self) -> int:
        """The exit status of a command that was interrupted: 130 for SIGINT, 143 for SIGTERM."""
        return _STATUS_OF_SIGNALS + (self.first or signal.SIGINT)

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal.

        Raises:
            KeyboardInterrupt: it is the first one.
        """
        if self.first is None:
            self.first, self._first_s = number, time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self._first_s >= SAME_S:
            _end_by(number)


def raise_if_interrupted() -> None:
    """Raise again what the first signal raised; loops that go on for long call this in every pass.

    A signal is handled wherever Python code runs. If compiled code has called that code, such as a
    serialiser or a finaliser, the exception may end as another one there, or be dropped.

    Raises:
        KeyboardInterrupt: the first signal has come within ``interruptible``.
    """
    if threading.current_thread() is threading.main_thread():
        interrupts = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
        if isinstance(interrupts, Interrupts) and interrupts.first is not None:
            raise KeyboardInterrupt


def _end_by(number: int) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    raise SystemExit(_STATUS_OF_SIGNALS + number)  # the signal is blocked


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Let SIGINT and SIGTERM interrupt the block, also where the process was started with one ignored.

    Shells do so with SIGINT for what scripts start in the background. Only the main thread can be
    interrupted, so that elsewhere this does nothing.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # Ray's workers block them, and children inherit that
    before = {number: signal.signal(number, interrupts.take) for number in SIGNALS}
    try:
        yield interrupts
    finally:
        _put_back(before)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let the block finish before SIGINT or SIGTERM takes effect, unless it is the second one.

    Only the main thread is ever interrupted, so that elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    hold = _Hold(before)
    try:
        for number in SIGNALS:
            signal.signal(number, hold.take)
        yield
    finally:
        hold.over = True
        _put_back(before)
    if hold.first is not None:
        signal.raise_signal(hold.first)


class _Hold:
    """What SIGINT and SIGTERM do while they are held back.

    Attributes:
        first: the signal that came first meanwhile.
        over: whether they are held back no longer.
    """

    def __init__(self, before: Mapping[signal.Signals, Any]) -> None:
        self.first: int | None = None
        self.over = False
        self._before = before
        self._first_s = 0.0

    def take(self, number: int, frame: FrameType | None) -> None:
        handler = self._before[signal.Signals(number)]
        interrupts = getattr(handler, "__self__", None)
        interrupted = isinstance(interrupts, Interrupts) and interrupts.first is not None
        if interrupted or (self.over and callable(handler)):  # over: it came while handlers were put back
            handler(number, frame)
        elif self.first is None:
            self.first, self._first_s = number, time.monotonic()
        elif time.monotonic() - self._first_s >= SAME_S:
            _end_by(number)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Put handlers of SIGINT and SIGTERM back that a library replaces in the block, as Ray does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        _put_back({number: handler for number, handler in before.items() if callable(handler)})


def _put_back(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it is not Python's

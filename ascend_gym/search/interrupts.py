"""Ctrl-C and what must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let the block finish before a Ctrl-C takes effect.

    Only the main thread is ever interrupted, so that elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held_back: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held_back.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held_back:
        signal.raise_signal(signal.SIGINT)

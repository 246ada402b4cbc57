"""SIGINT and SIGTERM within a process: one interrupts, what holds back is finished, handlers come back."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_gym.core.interrupts import (
    SIGNALS,
    handlers_kept,
    interruptible,
    interrupts_held_back,
    raise_if_interrupted,
)

EITHER = pytest.mark.parametrize("number", SIGNALS)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


@EITHER
def test_the_first_signal_interrupts_and_is_told_by_the_exit_status(number: signal.Signals) -> None:
    with interruptible() as interrupts, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert interrupts.exit_status == 128 + number


def test_without_a_signal_the_status_is_that_of_sigint() -> None:
    with interruptible() as interrupts:
        assert interrupts.exit_status == 130


@EITHER
def test_a_signal_that_is_ignored_interrupts_too(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@EITHER
def test_what_holds_back_is_finished_first(number: signal.Signals) -> None:
    done = []

    def hold_back() -> None:
        with interrupts_held_back():
            with interrupts_held_back():
                signal.raise_signal(number)
                signal.raise_signal(number)
                done.append("inner")
            done.append("outer")
        done.append("after")

    with interruptible() as interrupts, pytest.raises(KeyboardInterrupt):
        hold_back()
    assert interrupts.first == number
    assert done == ["inner", "outer"]


def test_what_holds_back_after_the_first_signal_is_finished_too() -> None:
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with interrupts_held_back():
            signal.raise_signal(signal.SIGTERM)  # the same one once more, as timeout(1) sends it


class _Interrupted:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finaliser_has_dropped_is_raised_again() -> None:
    raise_if_interrupted()
    with interruptible() as interrupts:
        raise_if_interrupted()
        _Interrupted()  # Python reports what __del__ raises, and goes on
        assert interrupts.first == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    raise_if_interrupted()


def test_handlers_that_a_library_replaces_come_back() -> None:
    with interruptible() as interrupts:
        with handlers_kept():
            signal.signal(signal.SIGTERM, lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert interrupts.first == signal.SIGTERM


SECOND = """
import signal, sys
from ascend_gym.core import interrupts
interrupts.SAME_S = 0.0
number = int(sys.argv[1])
with interrupts.interruptible():
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    hold = interrupts.interrupts_held_back() if sys.argv[2] == "held back" else interrupts.handlers_kept()
    with hold:
        signal.raise_signal(number)
        print("still there")
"""


@EITHER
@pytest.mark.parametrize("where", ["held back", "not held back"])
def test_the_second_signal_ends_the_process(number: signal.Signals, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SECOND, str(int(number)), where], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (-number, "interrupted\n"), done.stderr


@pytest.mark.parametrize("command", ["ascend_gym", "npu_daemon"])
def test_an_interrupt_while_a_command_is_imported_ends_it_without_a_traceback(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    called = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport npu_daemon.commands as c; c.{command}()"
    )
    done = subprocess.run(
        [sys.executable, "-c", called], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")

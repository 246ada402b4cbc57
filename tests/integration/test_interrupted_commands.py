"""Commands that SIGINT or SIGTERM stop, as processes: batch scripts, schedulers and containers send them."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_processes import DEADLINE_S, PYTHONPATH
from fake_backend import make_operator

from ascend_gym.client import DaemonOptions, LocalDaemon
from ascend_gym.core.config import ENV_DAEMON

pytestmark = pytest.mark.slow

ENDLESS = 1_000_000
TILING = (
    "constexpr uint32_t TILE_LENGTH = 1024;\n"
    "static ge::graphStatus TilingFunc(gert::TilingContext* context) { return 0; }\n"
)
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nconstexpr int32_t TILE = 64;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n    PipeBarrier<PIPE_ALL>();\n}\n"
    'extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {}\n'
)
SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
AS_A_BATCH_SCRIPT_DOES = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells that are not interactive do for what ends in &
os.execv(sys.executable, [sys.executable, "-m", "ascend_gym.cli", *sys.argv[1:]])
"""


class Command:
    """A command in the background of a batch script."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        environment = {name: value for name, value in os.environ.items() if name != ENV_DAEMON}
        self._process = subprocess.Popen(
            [sys.executable, "-c", AS_A_BATCH_SCRIPT_DOES, *map(str, arguments)],
            cwd=folder,
            env={**environment, "PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(folder / "messages").open("w"),
            text=True,
        )
        self._messages = folder / "messages"
        assert self._process.stdout is not None
        self._printed = self._process.stdout

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a line with ``text``."""
        for line in self._printed:
            if text in line:
                return
        raise AssertionError(self._messages.read_text())

    def wait_for_file(self, path: Path) -> None:
        """Wait until it has written a file."""
        while not path.exists():
            with pytest.raises(subprocess.TimeoutExpired):
                self._process.wait(0.05)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; return its status, what it has printed since, and its messages."""
        printed, _ = self._process.communicate(timeout=DEADLINE_S)
        return self._process.returncode, printed, self._messages.read_text()

    def ends_by(self, number: signal.Signals) -> int:
        """Send a signal again and again until the process ends; return its status."""
        pidfd = os.pidfd_open(self._process.pid)
        try:
            while not select.select([pidfd], [], [], 0.1)[0]:
                self._process.send_signal(number)
        finally:
            os.close(pidfd)
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    options = DaemonOptions(backend="fake_backend:DigestBackend", workers=1, cache_dir=tmp_path / "cache")
    with LocalDaemon(options) as one:
        yield one.address


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    make_operator(tmp_path / "double_it", TILING, KERNEL)
    return tmp_path / "double_it"


@pytest.fixture
def search(operator: Path, daemon: str, tmp_path: Path) -> Iterator[Command]:
    """A search that has seen its first evaluation, and would go on for ever."""
    command = Command(
        tmp_path,
        *("optimize", "double_it", "--op-dir", operator, "--method", "random-rewrites", "--daemon", daemon),
        *("--budget", ENDLESS, "--out", "run"),
    )
    try:
        command.wait_for("  1  ")
        yield command
    finally:
        command.kill()


@SIGNALS
def test_a_search_saves_and_prints_what_it_has_found(
    search: Command, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    search.signal(number)
    search.signal(number)  # as timeout(1) does: to the process, and to its group
    ended, printed, messages = search.end()
    assert ended == status, messages
    assert "best" in printed
    assert "speedup" in printed
    assert "to continue: ascend-gym resume run" in messages
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["stop_reason"] == "interrupted"
    assert summary["evaluations"] >= 1
    assert (tmp_path / "run" / "best" / "op_kernel" / "double_it.cpp").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_a_search_that_cannot_save(
    search: Command, tmp_path: Path, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "run" / "summary.json")  # nobody reads it: writing waits for ever
    search.signal(number)
    search.wait_for_file(tmp_path / "run" / "best.diff")  # what it could save, however long that takes
    assert search.ends_by(number) == -number


@SIGNALS
def test_a_sweep_keeps_the_runs_under_way_and_prints_its_summary(
    simulator_daemon: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    command = Command(
        tmp_path,
        *("sweep", "--op", "core/add", "--method", "random-rewrites", "--budget", ENDLESS, "--json"),
        *("--daemon", simulator_daemon, "--out", "s"),
    )
    try:
        events = tmp_path / "s" / "events.jsonl"
        seen = _followed(events, command)
        next(line for line in seen if '"index": 1' in line)
        command.signal(number)
        ended, printed, messages = command.end()
    finally:
        command.kill()
    assert ended == status, messages
    document = json.loads(printed)
    assert document["endings"] == {"interrupted": 1}
    assert document["spent_evaluations"] >= 1
    assert "--resume --out s" in messages
    (journal,) = (tmp_path / "s").rglob("journal.jsonl")
    assert journal.read_text().count('"kind":"result"') >= 2
    assert (journal.parent / "best" / "op_kernel" / "add.cpp").exists()


def _followed(path: Path, command: Command) -> Iterator[str]:
    """Yield the lines of a file that a command writes, as they come."""
    process = command._process
    read = 0
    while process.poll() is None:
        lines = path.read_text().splitlines() if path.exists() else []
        yield from lines[read:]
        read = max(read, len(lines))
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("ray", "torch")),
    reason="Ray or PyTorch is not installed: extra [train]",
)
@SIGNALS
def test_a_training_says_where_it_goes_on(
    operator: Path, daemon: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    command = Command(
        tmp_path,
        *("train", "--op-dir", operator, "--budget", 2, "--daemon", daemon, "--evaluations", ENDLESS),
        *("--out", "training"),
    )
    try:
        next(line for line in _followed(tmp_path / "messages", command) if line.startswith("iteration 1:"))
        command.signal(number)
        ended, _, messages = command.end()
    finally:
        command.kill()
    assert ended == status, messages
    assert "--resume training" in messages

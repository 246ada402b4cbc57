"""Folders that are full or cannot be written to end a command with a message, and without a traceback."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_processes import DEADLINE_S, PYTHONPATH
from fake_backend import make_operator

from ascend_gym.client import DaemonOptions, LocalDaemon
from ascend_gym.core.config import ENV_CACHE, ENV_DAEMON, ENV_USER_CACHE

pytestmark = pytest.mark.slow

FULL = Path("/dev/full")
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nconstexpr int32_t TILE = 64;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n    PipeBarrier<PIPE_ALL>();\n}\n"
    'extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {}\n'
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """Run a module as a command, with the settings of the environment that are named, and no others."""

    def run(
        module: str, *arguments: object, settings: dict[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        ours = (ENV_CACHE, ENV_USER_CACHE)
        inherited = {name: value for name, value in os.environ.items() if name not in ours}
        return subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": PYTHONPATH, **(settings or {})},
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=DEADLINE_S,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},  # type: ignore[call-overload]
        )

    return run


@pytest.fixture
def optimize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Run) -> Iterator[Run]:
    """Search on a daemon that has all the room it needs."""
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    make_operator(tmp_path / "double_it", kernel=KERNEL)
    options = DaemonOptions(backend="fake_backend:DigestBackend", workers=1, cache_dir=tmp_path / "cache")
    with LocalDaemon(options) as daemon:
        search = ("optimize", "double_it", "--op-dir", tmp_path / "double_it", "--method", "random-rewrites")

        monkeypatch.setenv(ENV_DAEMON, daemon.address)

        def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
            return command("ascend_gym.cli", *search, *arguments, **options)

        yield run


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("ascend_gym.cli", ("evaluate", "add", "--json")),
        ("ascend_gym.cli", ("profile", "add", "--out", "p")),
        ("npu_daemon", ("serve", "--bind", "tcp://127.0.0.1:*")),
    ],
)
def test_a_home_that_cannot_be_written_to(command: Run, module: str, arguments: tuple[str, ...]) -> None:
    done = command(module, *arguments, settings={"HOME": "/proc"})
    assert done.returncode == 3
    assert "the cache folder /proc/.cache/ascend-gym cannot be used" in done.stderr
    assert f"name another one by {ENV_CACHE}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_cache_of_the_user_is_taken(command: Run, tmp_path: Path) -> None:
    done = command("ascend_gym.cli", "evaluate", "add", settings={ENV_USER_CACHE: "/proc/sys"})
    assert "the cache folder /proc/sys/ascend-gym cannot be used" in done.stderr
    settings = {ENV_USER_CACHE: "relative", ENV_CACHE: "", "HOME": "/proc"}
    done = command("ascend_gym.cli", "evaluate", "add", settings=settings)
    assert "the cache folder /proc/.cache/ascend-gym cannot be used" in done.stderr


def _little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_journal_without_room_ends_the_search_with_what_was_found(optimize: Run, tmp_path: Path) -> None:
    done = optimize("--budget", 300, "--out", "run", preexec_fn=_little_room)
    assert done.returncode == 3, done.stderr
    assert "journal.jsonl cannot be written" in done.stderr
    assert "File too large" in done.stderr
    assert "to continue: ascend-gym resume run" in done.stderr
    assert "Traceback" not in done.stderr
    assert "speedup" in done.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["stop_reason"] == "infrastructure"
    assert summary["evaluations"] >= 1


def test_an_outcome_that_has_no_room_is_printed_and_can_be_had_later(
    optimize: Run, command: Run, tmp_path: Path
) -> None:
    done = optimize("--budget", 2, "--out", "run", "--json")
    assert done.returncode == 0, done.stderr
    diff = tmp_path / "run" / "best.diff"
    diff.unlink()
    diff.symlink_to(FULL)
    done = command("ascend_gym.cli", "resume", "run")
    assert done.returncode == 3
    assert "No space left on device; to do it again: ascend-gym resume run" in done.stderr
    assert "Traceback" not in done.stderr
    assert "speedup" in done.stdout
    diff.unlink()
    assert command("ascend_gym.cli", "resume", "run").returncode == 0
    assert diff.exists()


def test_output_that_nobody_can_take(optimize: Run, tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = optimize("--budget", 2, "--out", "run", stdout=full)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "ascend-gym: [Errno 28] No space left on device"
    assert "Traceback" not in done.stderr
    with FULL.open("w") as full:
        done = optimize("--budget", 2, "--out", "other", "--json", stdout=full)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)

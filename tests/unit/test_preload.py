"""Programs in Python that are loaded once: each run has its own process, limits and reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_daemon.sandbox import RLIMITS, Preload, Reach, ResourceLimits, run_limited, sandbox_level

LIMITS = ResourceLimits(wall_s=20.0, cpu_s=20.0, memory_bytes=1 << 30, file_bytes=1 << 20)
PROGRAM = """
import os
import sys

loaded_by = os.getpid()
calls = 0


def main(arguments):
    global calls
    calls += 1
    what, *rest = arguments
    if what == "ids":
        print(loaded_by, os.getpid(), calls, *rest, flush=True)
    elif what == "write":
        open(rest[0], "w").write("done")
    elif what == "read":
        print(open(rest[0]).read(), flush=True)
    elif what == "descriptors":
        print(*sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1], flush=True)
    elif what == "raise":
        raise ValueError(rest[0])
    elif what == "eat":
        bytearray(1 << 34)
    elif what == "spin":
        while True:
            pass
    return 7
"""


@pytest.fixture
def program(tmp_path: Path) -> Preload:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "preloaded_sample.py").write_text(PROGRAM)
    return Preload("preloaded_sample", (folder,))


def output(program: Preload, cwd: Path, *arguments: str, reach: Reach | None = None) -> list[str]:
    outcome = run_limited(arguments, cwd=cwd, limits=LIMITS, reach=reach or Reach(), preload=program)
    assert outcome.returncode == 7, outcome.stderr
    return outcome.stdout.decode().split()


def test_it_is_loaded_once_and_each_run_starts_with_it_as_it_was(program: Preload, tmp_path: Path) -> None:
    first, second = (output(program, tmp_path, "ids", "a b", "-c") for _ in range(2))
    assert first[0] == second[0]
    assert len({first[0], first[1], second[1], str(os.getpid())}) == 4
    assert first[2:] == second[2:] == ["1", "a", "b", "-c"]


def test_it_writes_in_its_folder(program: Preload, tmp_path: Path) -> None:
    output(program, tmp_path, "write", str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "done"


@pytest.mark.skipif(sandbox_level() == RLIMITS, reason="nothing is confined on this host")
def test_it_reads_only_what_it_may(program: Preload, tmp_path: Path) -> None:
    cwd, secret = tmp_path / "cwd", tmp_path / "secret"
    cwd.mkdir()
    secret.write_text("told")
    refused = run_limited(["read", str(secret)], cwd=cwd, limits=LIMITS, reach=Reach(), preload=program)
    assert refused.returncode == 1
    assert b"PermissionError" in refused.stderr or b"FileNotFoundError" in refused.stderr
    assert output(program, cwd, "read", str(secret), reach=Reach((secret,))) == ["told"]


def test_it_has_no_descriptors_but_its_streams(program: Preload, tmp_path: Path) -> None:
    assert output(program, tmp_path, "descriptors") == ["0", "1", "2"]


def test_what_it_raises_is_told(program: Preload, tmp_path: Path) -> None:
    outcome = run_limited(["raise", "of purpose"], cwd=tmp_path, limits=LIMITS, preload=program)
    assert outcome.returncode == 1
    assert b"ValueError: of purpose" in outcome.stderr


def test_its_memory_is_limited(program: Preload, tmp_path: Path) -> None:
    outcome = run_limited(["eat"], cwd=tmp_path, limits=LIMITS, preload=program)
    assert outcome.returncode == 1
    assert b"MemoryError" in outcome.stderr


@pytest.mark.slow
def test_its_time_is_limited(program: Preload, tmp_path: Path) -> None:
    limits = ResourceLimits(wall_s=20.0, cpu_s=1.0, memory_bytes=1 << 30, file_bytes=0)
    outcome = run_limited(["spin"], cwd=tmp_path, limits=limits, preload=program)
    assert outcome.timed_out
    assert output(program, tmp_path, "ids")[2] == "1", "its server goes on"


def test_the_command_does_the_same(program: Preload, tmp_path: Path) -> None:
    command = program.as_command(["ids", "it's", '"a"'])
    outcome = run_limited(command, cwd=tmp_path, limits=LIMITS, reach=program.widened(Reach()))
    assert outcome.returncode == 7, outcome.stderr
    assert outcome.stdout.decode().split()[2:] == ["1", "it's", '"a"']

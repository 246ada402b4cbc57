"""What untrusted programs leave: open files, folders and floods of output, however large or deep."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ascend_gym.core.remove_tree import remove_tree
from npu_daemon.sandbox import MemoryFile, ProcessOutcome, Reach, ResourceLimits, run_limited
from npu_daemon.sandbox.confinement import RLIMITS, sandbox_level
from npu_daemon.sandbox.server import outgrown

MIB = 1 << 20
PYTHON_FILES = (Path(sys.prefix), Path(sys.base_prefix))
LIMITS = ResourceLimits(
    wall_s=60.0,
    cpu_s=30.0,
    memory_bytes=1 << 30,
    file_bytes=8 * MIB,
    folder_bytes=16 * MIB,
    folder_entries=500,
)


def run(code: str, cwd: Path, *files: MemoryFile, keeps_files: bool = True) -> ProcessOutcome:
    return run_limited(
        [sys.executable, "-I", "-S", "-c", code, *(file.path for file in files)],
        cwd=cwd,
        limits=LIMITS,
        reach=Reach(PYTHON_FILES, keeps_files=keeps_files),
        pass_fds=[file.fd for file in files],
    )


def test_what_was_open_before_is_read_and_nothing_else_can_be_made(tmp_path: Path) -> None:
    if sandbox_level() == RLIMITS:
        pytest.skip("this host confines nothing")
    code = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.pwrite(fd, b"written", 4093)
for attempt in (lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 1 << 20), lambda: os.mkdir("folder"),
                lambda: open("file", "w"), lambda: os.symlink("/", "link"), lambda: os.remove("kept")):
    try:
        attempt()
    except OSError:
        print("refused")
"""
    (tmp_path / "kept").write_text("")
    with MemoryFile.of_size("outputs", 8192) as outputs:
        outcome = run(code, tmp_path, outputs, keeps_files=False)
        assert outcome.stdout == b"refused\n" * 6, outcome.stderr
        mapped = outputs.mapped()
    assert len(mapped) == 8192
    assert mapped[4093:4100] == b"written"
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_what_a_file_holds_cannot_be_changed(tmp_path: Path) -> None:
    code = "import os, sys; print(open(sys.argv[1]).read()); os.write(os.open(sys.argv[1], os.O_RDWR), b'x')"
    with MemoryFile.holding("job", "what to do") as job:
        outcome = run(code, tmp_path, job)
        assert outcome.stdout == b"what to do\n"
        assert b"PermissionError" in outcome.stderr
        assert bytes(job.mapped()) == b"what to do"


def test_a_file_grows_to_the_limit_of_its_writer(tmp_path: Path) -> None:
    code = "import os, sys\nfd = os.open(sys.argv[1], os.O_WRONLY)\nwhile True: os.write(fd, bytes(1 << 20))"
    with MemoryFile("trace") as trace:
        outcome = run(code, tmp_path, trace)
        assert b"File too large" in outcome.stderr  # Python ignores the signal
        assert trace.size_bytes == LIMITS.file_bytes


FILES = {
    "many bytes in many files": "for i in range(40): open(str(i), 'wb').write(bytes(1 << 20))",
    "many files": "for i in range(1_000_000): open(str(i), 'w').close()",
    "many folders in one another": "for i in range(100_000): os.mkdir('a'); os.chdir('a')",
}


@pytest.mark.parametrize("name", FILES)
def test_a_folder_is_limited_as_a_whole(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    outcome = run(f"import os\n{FILES[name]}", folder)
    assert outcome.exceeded == "folder"
    assert outcome.returncode in (None, 0)  # it may have ended by itself before the folder was looked at
    remove_tree(folder)
    assert not folder.exists()


def test_looking_at_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 200 entries of thousands, or where a path is too long to be looked at."""
    for number in range(3000):
        (tmp_path / str(number)).touch()
    looked_at = 0
    scan = os.scandir

    def counted(path: str) -> object:
        nonlocal looked_at
        looked_at += 1
        return scan(path)

    monkeypatch.setattr(os, "scandir", counted)
    assert outgrown(str(tmp_path), MIB, 200)
    assert looked_at == 1
    assert not outgrown(str(tmp_path), MIB, 3000)
    (tmp_path / "1").write_bytes(bytes(2000))
    assert outgrown(str(tmp_path), 1999, 3000)


def test_a_flood_of_output_ends_the_program(tmp_path: Path) -> None:
    code = "import os\nwhile True: os.write(2, bytes(1 << 16))"
    outcome = run(code, tmp_path)
    assert outcome.exceeded == "output"
    assert outcome.output_truncated
    assert len(outcome.stderr) == LIMITS.output_bytes


def test_output_above_what_is_kept_is_dropped(tmp_path: Path) -> None:
    outcome = run(f"import os\nfor _ in range(4): os.write(1, bytes({LIMITS.output_bytes}))", tmp_path)
    assert (outcome.exceeded, outcome.returncode, outcome.output_truncated) == (None, 0, True)

"""What a confined program cannot reach, tried by real programs on every level that this host offers."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, confinement, limited_run, run_limited
from npu_daemon.sandbox.confinement import BUBBLEWRAP, LANDLOCK, RLIMITS, Level, landlock_version
from npu_daemon.sandbox.seccomp import filter_program, refused_calls

LIMITS = ResourceLimits(wall_s=20.0, cpu_s=10.0, memory_bytes=1 << 31, file_bytes=1 << 24)
PYTHON_FILES = (Path(sys.prefix), Path(sys.base_prefix))


def offered(level: Level) -> bool:
    works = {LANDLOCK: landlock_version() >= 1, BUBBLEWRAP: confinement._bubblewrap_works()}
    return works[level]


@pytest.fixture(params=[LANDLOCK, BUBBLEWRAP])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Level:
    if not offered(request.param):
        pytest.skip(f"this host does not offer {request.param}")
    monkeypatch.setattr(limited_run, "sandbox_level", lambda: request.param)
    return request.param


def python(code: str, cwd: Path, *readable: Path, starts_programs: bool = False) -> ProcessOutcome:
    reach = Reach((*PYTHON_FILES, *readable), starts_programs=starts_programs)
    command = [sys.executable, "-I", "-S", "-c", code]
    return run_limited(command, cwd=cwd, limits=LIMITS, reach=reach)


def folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path


def said(outcome: ProcessOutcome) -> str:
    return (outcome.stdout + outcome.stderr).decode()


def test_it_reads_what_it_may_and_nothing_beside_it(tmp_path: Path, level: Level) -> None:
    own, allowed, secret = (folder(tmp_path, name) for name in ("own", "allowed", "secret"))
    (allowed / "file").write_text("inputs")
    (secret / "file").write_text("expected outputs")
    readable = f"print(open({str(allowed / 'file')!r}).read())"
    assert python(readable, own, allowed).stdout == b"inputs\n"
    outcome = python(f"print(open({str(secret / 'file')!r}).read())", own, allowed)
    assert outcome.returncode == 1
    assert re.search("PermissionError|FileNotFoundError", said(outcome))


def test_it_reads_a_single_file_without_its_neighbours(tmp_path: Path, level: Level) -> None:
    own, data = folder(tmp_path, "own"), folder(tmp_path, "data")
    for name in ("mine", "other"):
        (data / name).write_text(name)
    assert python(f"print(open({str(data / 'mine')!r}).read())", own, data / "mine").stdout == b"mine\n"
    assert python(f"open({str(data / 'other')!r})", own, data / "mine").returncode == 1


def test_it_writes_in_its_own_folder_only(tmp_path: Path, level: Level) -> None:
    own, allowed = folder(tmp_path, "own"), folder(tmp_path, "allowed")
    (allowed / "file").write_text("inputs")
    assert python("open('result', 'w').write('done')", own, allowed).returncode == 0
    assert (own / "result").read_text() == "done"
    for target in (allowed / "file", allowed / "new"):
        assert python(f"open({str(target)!r}, 'w').write('changed')", own, allowed).returncode == 1
    python(f"open({str(tmp_path / 'new')!r}, 'w').write('changed')", own, allowed)  # bubblewrap forgets it
    assert (allowed / "file").read_text() == "inputs"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("change", ["os.chmod({0!r}, 0o777)", "os.utime({0!r})", "os.truncate({0!r}, 0)"])
def test_it_changes_no_attributes_of_what_it_may_read(tmp_path: Path, level: Level, change: str) -> None:
    own, allowed = folder(tmp_path, "own"), folder(tmp_path, "allowed")
    file = allowed / "file"
    file.write_text("inputs")
    file.chmod(0o640)
    before = file.stat()
    assert python("import os; " + change.format(str(file)), own, allowed).returncode == 1
    after = file.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_size,
    )


def test_it_reaches_no_server_of_this_host(tmp_path: Path, level: Level) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('connected')"
        outcome = python(code, tmp_path)
    assert outcome.returncode == 1
    assert b"connected" not in outcome.stdout


# tkill has no wrapper. A pipe's owner gets a signal when it can be read; who it is is checked only then.
WAYS_TO_OTHERS = {
    "kill": "os.kill(pid, 9)",
    "tgkill": "check(libc.tgkill(pid, pid, 9))",
    "tkill": "check(libc.syscall(tkill, pid, 9))",
    "sigqueue": "check(libc.sigqueue(pid, 9, None))",
    "owner": "r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, pid); fcntl.fcntl(r, F_SETSIG, 9); "
    "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')",
    "limits": "resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))",
    "priority": "os.setpriority(os.PRIO_PROCESS, pid, 19)",
    "processors": "os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))])",
    "scheduler": "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))",
}
TRY_ALL = """
import ctypes, fcntl, os, resource
F_SETSIG = 10
libc = ctypes.CDLL(None, use_errno=True)
def check(answer):
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
pid, tkill = {pid}, {tkill}
for way, call in {ways}.items():
    try:
        exec(call)
        print(way, "worked")
    except (PermissionError, ProcessLookupError):
        print(way, "refused")
"""


@pytest.mark.parametrize("starts_programs", [False, True], ids=["candidate", "compiler"])
@pytest.mark.parametrize("landlock", [None, 5], ids=["this-kernel", "no-signals-in-landlock"])
def test_it_reaches_no_other_process(
    tmp_path: Path,
    level: Level,
    landlock: int | None,
    starts_programs: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if landlock is not None and level == LANDLOCK:
        monkeypatch.setattr(confinement, "landlock_version", lambda: landlock)
    tkill = refused_calls(platform.machine(), starts_programs=False)["tkill"]
    with subprocess.Popen(["sleep", "600"]) as bystander:
        try:
            limit = resource.prlimit(bystander.pid, resource.RLIMIT_NOFILE)
            code = TRY_ALL.format(pid=bystander.pid, tkill=tkill, ways=WAYS_TO_OTHERS)
            outcome = python(code, tmp_path, starts_programs=starts_programs)
            assert said(outcome).splitlines() == [f"{way} refused" for way in WAYS_TO_OTHERS]
            assert resource.prlimit(bystander.pid, resource.RLIMIT_NOFILE) == limit
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_it_reads_its_limits_and_sets_none(tmp_path: Path, level: Level) -> None:
    read = "resource.getrlimit(resource.RLIMIT_NOFILE)"
    outcome = python(f"import resource; print({read})", tmp_path)
    assert outcome.stdout == f"({LIMITS.open_files}, {LIMITS.open_files})\n".encode()
    change = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)); print({read})"
    assert b"(" not in python(change, tmp_path).stdout
    assert python(change, tmp_path, starts_programs=True).stdout == b"(9, 9)\n"


def test_it_starts_no_process_unless_it_may(tmp_path: Path, level: Level) -> None:
    code = "import os; pid = os.fork(); os._exit(0) if pid == 0 else print(os.waitpid(pid, 0)[1])"
    refused = python(code, tmp_path)
    assert "PermissionError" in said(refused)
    assert python(code, tmp_path, starts_programs=True).stdout == b"0\n"


def test_programs_of_other_folders_are_started_where_they_are_named(tmp_path: Path, level: Level) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "hello").write_text("#!/bin/sh\necho hello\n")
    (tools / "hello").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    command = ["/bin/sh", "-c", f"{tools}/hello"]
    for reach, answer in (
        (Reach((tools,), starts_programs=True, programs=(tools,)), b"hello\n"),
        (Reach(starts_programs=True), b""),
    ):
        assert run_limited(command, cwd=work, limits=LIMITS, reach=reach).stdout == answer


def test_a_candidate_makes_no_programs_in_memory(tmp_path: Path, level: Level) -> None:
    code = "import os; fd = os.memfd_create('a'); os.write(fd, b'#!/bin/true'); os.execve(fd, ['a'], {})"
    assert "PermissionError" in said(python(code, tmp_path))


def test_it_may_have_threads(tmp_path: Path, level: Level) -> None:
    code = "import threading; t = threading.Thread(target=print, args=('ran',)); t.start(); t.join()"
    assert python(code, tmp_path).stdout == b"ran\n"


def test_it_makes_no_namespace(tmp_path: Path, level: Level) -> None:
    code = "import ctypes; print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())"
    assert python(code, tmp_path, starts_programs=True).stdout == b"-1 1\n"


@pytest.mark.slow
def test_how_it_ended_is_told(tmp_path: Path, level: Level) -> None:
    assert python("raise SystemExit(3)", tmp_path).returncode == 3
    aborted = python("import os; os.abort()", tmp_path)
    assert (aborted.returncode, aborted.signal) == (None, signal.SIGABRT)
    endless = ResourceLimits(wall_s=30.0, cpu_s=1.0, memory_bytes=1 << 31, file_bytes=1 << 20)
    command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    outcome = run_limited(command, cwd=tmp_path, limits=endless, reach=Reach(PYTHON_FILES))
    assert outcome.exceeded == "cpu"


def test_links_out_of_its_folder_are_not_made(tmp_path: Path) -> None:
    if not offered(LANDLOCK):
        pytest.skip("this host has no Landlock")
    own, secret = folder(tmp_path, "own"), folder(tmp_path, "secret")
    (secret / "file").write_text("expected")
    for call in ("symlink", "link"):
        outcome = python(f"import os; os.{call}({str(secret / 'file')!r}, 'output-0')", own, secret)
        assert outcome.returncode == 1
    assert not os.path.lexists(own / "output-0")


def test_a_compiler_works_and_includes_no_file_from_elsewhere(tmp_path: Path, level: Level) -> None:
    own, headers, secret = (folder(tmp_path, name) for name in ("own", "headers", "secret"))
    (headers / "ours.h").write_text("#include <vector>\ninline int size() { return 3; }\n")
    (secret / "key.h").write_text("the expected outputs\n")
    (own / "good.cpp").write_text('#include "ours.h"\nint main() { return size(); }\n')
    (own / "bad.cpp").write_text(f'#include "{secret / "key.h"}"\nint main() {{}}\n')
    reach = Reach((headers,), starts_programs=True)

    def compiled(source: str) -> ProcessOutcome:
        command = ["g++", f"-I{headers}", source, "-o", "program"]
        return run_limited(command, cwd=own, limits=LIMITS, reach=reach)

    good = compiled("good.cpp")
    assert good.returncode == 0, said(good)
    assert run_limited(["./program"], cwd=own, limits=LIMITS).returncode == 3
    bad = compiled("bad.cpp")
    assert bad.returncode != 0
    assert b"the expected outputs" not in bad.stdout + bad.stderr


def test_without_either_a_program_is_only_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_run, "sandbox_level", lambda: RLIMITS)
    (tmp_path / "file").write_text("seen")
    own = folder(tmp_path, "own")
    assert python(f"print(open({str(tmp_path / 'file')!r}).read())", own).stdout == b"seen\n"


TABLES = {"x86_64": "asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_numbers_are_those_of_the_kernel_headers(machine: str) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None
    text = f"#define __BITS_PER_LONG 64\n#include <{TABLES[machine]}>\n"
    command = [compiler, "-E", "-dM", "-xc", "-"]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        pytest.skip(f"this host has no {TABLES[machine]}")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", ended.stdout))
    wrong = {
        name: number
        for name, number in refused_calls(machine, starts_programs=False).items()
        if name in known and int(known[name]) != number
    }
    assert wrong == {}
    assert len(set(refused_calls(machine, starts_programs=False)) & set(known)) > 50


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_filters_are_within_the_kernels_limit_and_jump_forward_within_themselves(machine: str) -> None:
    for starts_programs, signals_others in product((False, True), repeat=2):
        program = filter_program(
            starts_programs=starts_programs, signals_others=signals_others, machine=machine
        )
        assert len(program) <= 4096
        assert all(at + 1 + max(step[1:3]) < len(program) for at, step in enumerate(program[:-1]))
        assert sum(step[3] is None for step in program) == (not signals_others)

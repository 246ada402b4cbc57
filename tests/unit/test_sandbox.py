"""The sandbox against real misbehaving processes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_processes import DEADLINE_S, ends

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.sandbox import ProcessOutcome, ResourceLimits, limited_run, run_limited

MARKER = "SANDBOX_TEST_MARKER"


def limits(**changes: float) -> ResourceLimits:
    values = {"wall_s": 120.0, "cpu_s": 30.0, "memory_bytes": 1 << 30, "file_bytes": 1 << 20, **changes}
    return ResourceLimits(**values)  # type: ignore[arg-type]


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def processes_marked(marker: str) -> list[int]:
    """Every living process that inherited the marker variable."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes()
        except (OSError, ProcessLookupError):
            continue
        if marker.encode() in environ:
            found.append(int(entry.name))
    return found


@pytest.fixture
def marker() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    for pid in processes_marked(value):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run_marked(argv: list[str], cwd: Path, marker: str, **changes: float) -> ProcessOutcome:
    return run_limited(argv, cwd=cwd, limits=limits(**changes), reach=None, env={MARKER: marker})


def test_output_and_exit_code_are_reported(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(), reach=None)
    assert (outcome.returncode, outcome.signal, outcome.exceeded) == (3, None, None)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    assert not outcome.timed_out
    assert not outcome.output_truncated
    assert outcome.peak_memory_bytes > 1 << 20
    assert 0 < outcome.cpu_seconds < 30


def test_signal_is_reported(tmp_path: Path) -> None:
    outcome = run_limited(python("import os; os.abort()"), cwd=tmp_path, limits=limits(), reach=None)
    assert (outcome.returncode, outcome.signal) == (None, signal.SIGABRT)
    assert not list(tmp_path.glob("core*"))


def test_sleeper_that_ignores_sigterm_is_killed_at_the_wall_limit(tmp_path: Path, marker: str) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    outcome = run_marked(python(code), tmp_path, marker, wall_s=0.3)
    assert outcome.timed_out
    assert outcome.exceeded == "wall"
    assert processes_marked(marker) == []


def test_double_fork_with_new_session_is_found_and_killed(tmp_path: Path, marker: str) -> None:
    code = """
import os, signal, time
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.write(told, b'x')
        time.sleep(600)
    os._exit(0)
os.read(ready, 1)
"""
    outcome = run_marked(python(code), tmp_path, marker)
    assert outcome.returncode == 0
    assert not outcome.timed_out
    assert processes_marked(marker) == []


def test_fork_bomb_is_stopped_by_counting_descendants(tmp_path: Path, marker: str) -> None:
    code = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(600)
"""
    outcome = run_marked(python(code), tmp_path, marker, processes=24)
    assert outcome.exceeded == "processes"
    assert not outcome.timed_out
    assert processes_marked(marker) == []


def test_growing_fork_bomb_is_stopped(tmp_path: Path, marker: str) -> None:
    code = """
import os, time
end = time.monotonic() + 180
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        pass
    time.sleep(0.01)
"""
    outcome = run_marked(python(code), tmp_path, marker, processes=24)
    assert outcome.exceeded == "processes"
    assert processes_marked(marker) == []


def test_output_flood_is_drained_but_not_kept(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(640): os.write(1, b'x' * 65536)\nos.write(2, b'done')"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(output_bytes=1000), reach=None)
    assert outcome.returncode == 0
    assert outcome.output_truncated
    assert outcome.stdout == b"x" * 1000
    assert outcome.stderr == b"done"


def test_memory_hog_cannot_allocate(tmp_path: Path) -> None:
    code = "x = bytearray(1 << 30)"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(memory_bytes=1 << 28), reach=None)
    assert outcome.returncode == 1
    assert b"MemoryError" in outcome.stderr
    assert outcome.peak_memory_bytes < 1 << 28


def test_cpu_limit_ends_a_busy_loop(tmp_path: Path) -> None:
    outcome = run_limited(python("while True: pass"), cwd=tmp_path, limits=limits(cpu_s=1), reach=None)
    assert outcome.signal == signal.SIGXCPU
    assert outcome.exceeded == "cpu"
    assert outcome.timed_out


@pytest.mark.slow
def test_cpu_limit_cannot_be_ignored(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(cpu_s=1), reach=None)
    assert outcome.signal == signal.SIGKILL
    assert outcome.exceeded == "cpu"


def test_cpu_limit_of_a_compiler_hidden_by_its_driver_is_seen(tmp_path: Path) -> None:
    code = "import os, sys, signal\nif os.fork() == 0:\n  while True: pass\nos.wait(); sys.exit(1)"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(cpu_s=1), reach=None)
    assert outcome.returncode == 1
    assert outcome.exceeded == "cpu"


def test_file_size_is_limited(tmp_path: Path) -> None:
    code = "import os, signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
    code += "with open('big', 'wb') as f:\n  while True: f.write(b'x' * 65536)"
    outcome = run_limited(python(code), cwd=tmp_path, limits=limits(file_bytes=1 << 20), reach=None)
    assert outcome.exceeded == "file"
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_programs_are_as_nice_as_their_daemon(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from npu_daemon.sandbox import ResourceLimits, run_limited; "
        "limits = ResourceLimits(wall_s=120, cpu_s=30, memory_bytes=1 << 30, file_bytes=1 << 20); "
        f"argv = {python('import os; print(os.nice(0))')!r}; "
        f"print(run_limited(argv, cwd=Path({str(tmp_path)!r}), limits=limits, reach=None).stdout.decode())"
    )
    nicer = ["nice", "-n", "5", sys.executable, "-c", script]
    found = subprocess.run(
        nicer,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert int(found.stdout) == min(19, max(0, os.nice(0) + 5))


def test_environment_comes_from_the_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    outcome = run_limited(["env"], cwd=tmp_path, limits=limits(), reach=None, env={"EXTRA": "1"})
    variables = dict(line.split("=", 1) for line in outcome.stdout.decode().splitlines())
    assert variables["EXTRA"] == "1"
    assert variables["TMPDIR"] == str(tmp_path)
    assert set(variables) <= {*limited_run.ALLOWED_ENVIRONMENT, "TMPDIR", "EXTRA"}


def test_only_passed_descriptors_are_inherited_under_their_numbers(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    unrelated = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(unrelated, True)
    try:
        code = (
            f"import os; os.write({write_end}, b'told'); print(sorted(map(int, os.listdir('/proc/self/fd'))))"
        )
        outcome = run_limited(python(code), cwd=tmp_path, limits=limits(), reach=None, pass_fds=[write_end])
        assert os.read(read_end, 16) == b"told"
        listed = eval(outcome.stdout)
        assert [fd for fd in listed if fd in (0, 1, 2, write_end)] == [0, 1, 2, write_end]
        assert len(listed) == 5  # listing needs one descriptor itself
    finally:
        for fd in (read_end, write_end, unrelated):
            os.close(fd)


def test_missing_program_is_an_infrastructure_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="no-such-compiler"):
        run_limited(["no-such-compiler"], cwd=tmp_path, limits=limits(), reach=None)
    with pytest.raises(InfrastructureError, match="No such file"):
        run_limited(["/nonexistent/tool"], cwd=tmp_path, limits=limits(), reach=None)


def test_program_is_found_relative_to_the_working_directory(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\necho here\n")
    script.chmod(0o755)
    assert run_limited(["./tool"], cwd=tmp_path, limits=limits(), reach=None).stdout == b"here\n"


def test_concurrent_runs_kill_only_their_own_processes(tmp_path: Path, marker: str) -> None:
    outcomes: dict[str, ProcessOutcome] = {}

    def run(name: str, code: str) -> None:
        outcomes[name] = run_marked(python(code), tmp_path, marker)

    orphaning = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(600)"
    survivor = "import os, time\nif os.fork() == 0:\n    time.sleep(1); print('alive')\nelse: os.wait()"
    threads = [threading.Thread(target=run, args=("survivor", survivor))]
    threads += [threading.Thread(target=run, args=(f"orphaning{i}", orphaning)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes["survivor"].stdout == b"alive\n"
    assert all(outcome.returncode == 0 for outcome in outcomes.values())
    assert processes_marked(marker) == []


CALLER = """
import sys
from pathlib import Path
from npu_daemon.sandbox import ResourceLimits, run_limited

code = f"import os, time; open({sys.argv[1]!r}, 'w').write(str(os.getpid())); time.sleep(600)"
program = [sys.executable, "-I", "-S", "-c", code]
run_limited(program, cwd=Path(sys.argv[2]), limits=ResourceLimits(180, 60, 1 << 30, 1 << 20), reach=None)
"""


def test_killed_caller_takes_its_programs_with_it(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    told = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(fifo), str(tmp_path)], cwd=_root())
    assert select.select([told], [], [], DEADLINE_S)[0], "the caller started no program"
    program = os.pidfd_open(int(os.read(told, 64)))
    os.close(told)
    try:
        caller.kill()
        caller.wait()
        assert select.select([program], [], [], DEADLINE_S)[0], "the program outlived its killed caller"
    finally:
        os.close(program)


def test_program_that_stops_its_supervisor_is_killed(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The caller's patience ends after 3 s, in which the program has stopped its supervisor.
    monkeypatch.setattr(limited_run, "REPORT_GRACE_S", 3.0 - limits().wall_s)
    code = "import os, signal, time; os.kill(os.getppid(), signal.SIGSTOP); time.sleep(600)"
    with pytest.raises(InfrastructureError, match="without a report"):
        run_marked(python(code), tmp_path, marker)
    assert run_limited(["true"], cwd=tmp_path, limits=limits(), reach=None).returncode == 0
    assert all(ends(pid) for pid in processes_marked(marker))


def test_program_that_kills_its_supervisor_gains_nothing(tmp_path: Path, marker: str) -> None:
    code = """
import os, signal, time
supervisor = os.getppid()
if os.fork() == 0:
    os.setsid()
    os.kill(supervisor, signal.SIGKILL)
    time.sleep(600)
time.sleep(600)
"""
    with pytest.raises(InfrastructureError, match="without a report"):
        run_marked(python(code), tmp_path, marker)
    assert run_limited(["true"], cwd=tmp_path, limits=limits(), reach=None).returncode == 0
    assert all(ends(pid) for pid in processes_marked(marker))


def _root() -> Path:
    return Path(limited_run.__file__).parents[2]

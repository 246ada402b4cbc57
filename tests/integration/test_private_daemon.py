"""The private daemon that a process starts for itself: shared, forked, killed, replaced."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from daemon_processes import (
    BACKEND,
    DEADLINE_S,
    PYTHONPATH,
    ends,
    evaluate,
    private_folders,
    serve_until_ready,
    shell_that_reports,
    wait_for_line,
)
from fake_backend import make_operator, make_request

from ascend_gym.client import DaemonOptions, connect
from ascend_gym.client.local_daemon import SHARED_DAEMONS, SharedDaemons
from ascend_gym.core.config import ENV_DAEMON
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.records import OpSpec
from ascend_gym.core.status import Status

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def importable_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.delenv(ENV_DAEMON, raising=False)


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "double_it")


@pytest.fixture
def options(tmp_path: Path) -> DaemonOptions:
    return DaemonOptions(backend=BACKEND, workers=1, cache_dir=tmp_path / "cache")


@pytest.fixture
def short_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go: a path short enough for sockets, however long the usual one is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(name)


def test_private_daemon_is_shared_and_ends_with_its_last_user(options: DaemonOptions, spec: OpSpec) -> None:
    first, second = connect(options=options), connect(options=options)
    assert first.address == second.address
    (pid,) = {daemon.process_pid for daemon in SHARED_DAEMONS.daemons.values()}
    first.close()
    first.close()
    assert evaluate(second, make_request(spec)).status is Status.OK
    second.close()
    assert ends(pid)
    assert not Path(second.address.removeprefix("ipc://")).parent.exists()
    with pytest.raises(InfrastructureError, match="closed"):
        second.submit(make_request(spec))


def test_a_forgotten_evaluator_lets_its_daemon_go(options: DaemonOptions) -> None:
    evaluator = connect(options=options)
    (pid,) = {daemon.process_pid for daemon in SHARED_DAEMONS.daemons.values()}
    del evaluator
    assert ends(pid)


FORKED_USER = """
import os, sys
from pathlib import Path
from fake_backend import make_operator, make_request
from ascend_gym.client import DaemonOptions, connect
folder = Path(sys.argv[1])
options = DaemonOptions(backend="fake_backend:FakeBackend", workers=1, cache_dir=folder / "cache")
spec = make_operator(folder / "double_it")
parent = connect(options=options)
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        child = connect(options=options)
        child.submit(make_request(spec, f"latency: {number + 1}"))
        ((_, result),) = child.poll(180)
        child.close()
        assert child.address == parent.address
        os._exit(0 if abs(result.latency_us - number - 1) < 1e-9 else 1)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
parent.submit(make_request(spec))
((_, result),) = parent.poll(180)
assert result.status.value == "ok"
print(parent.address)
"""


def test_forked_children_use_the_daemon_of_their_parent(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORKED_USER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    folder = Path(ended.stdout.strip().removeprefix("ipc://")).parent
    assert not folder.exists()  # the private daemon was reaped when the process ended


PARENT = """
import os, sys, time
from pathlib import Path
from ascend_gym.client import DaemonOptions, LocalDaemon
options = DaemonOptions(backend="fake_backend:FakeBackend", workers=1, cache_dir=Path(sys.argv[1]))
daemon = LocalDaemon(options)
print(daemon.process_pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_parent_takes_its_daemon_with_it(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    daemon_pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    parent.stdin.close()
    assert ends(daemon_pid)


POISON = 'raise SystemExit("imported from the working folder")\n'
PACKAGES = ("ascend_gym", "baselines", "npu_daemon")


@pytest.fixture
def poisoned_folder(tmp_path: Path) -> Path:
    """A folder that must not be imported from, with modules named as libraries and our packages are."""
    folder = tmp_path / "poisoned"
    folder.mkdir()
    for name in ("queue.py", "zmq.py", "pydantic.py", *(f"{package}/__init__.py" for package in PACKAGES)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(POISON)
    return folder


def test_daemon_and_workers_do_not_import_from_the_working_folder(
    options: DaemonOptions, spec: OpSpec, poisoned_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(poisoned_folder)
    evaluator = connect(options=options)
    assert evaluate(evaluator, make_request(spec)).status is Status.OK
    evaluator.close()


CLIENT_OF_A_COPY = """
import sys
from pathlib import Path
import ascend_gym
from ascend_gym.client import DaemonOptions, connect
assert Path(ascend_gym.__file__).parents[1] == Path(sys.argv[1])
evaluator = connect(options=DaemonOptions(
    backend="copied_backend:CopiedBackend", workers=1, cache_dir=Path(sys.argv[2])))
print(evaluator.describe().host)
evaluator.close()
"""
COPIED_BACKEND = """
import os, fake_backend, npu_daemon

class CopiedBackend(fake_backend.FakeBackend):
    def describe(self):
        where = os.path.dirname(os.path.dirname(npu_daemon.__file__))
        return super().describe().model_copy(update={"host": where})
"""


def test_client_and_daemon_are_the_same_installation(poisoned_folder: Path, tmp_path: Path) -> None:
    """A script outside imports an installed copy; the working folder holds packages of the same names."""
    installed, scripts = tmp_path / "site-packages", tmp_path / "bin"
    root = Path(__file__).parents[2]
    for package in PACKAGES:
        shutil.copytree(root / package, installed / package, ignore=shutil.ignore_patterns("__pycache__"))
    scripts.mkdir()
    (scripts / "client").write_text(CLIENT_OF_A_COPY)
    (installed / "copied_backend.py").write_text(COPIED_BACKEND)
    environment = {**os.environ, "PYTHONPATH": f"{installed}:{root / 'tests'}"}
    ended = subprocess.run(
        [sys.executable, scripts / "client", installed, tmp_path / "cache"],
        cwd=poisoned_folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, str(installed)), ended.stderr


def test_a_killed_private_daemon_is_noticed_at_once_and_replaced_for_new_users(
    options: DaemonOptions, spec: OpSpec, tmp_path: Path
) -> None:
    """Two users share it; an hour of patience shows that no timeout is waited for."""
    first, second = (connect(options=options, connect_timeout_s=3600) for _ in range(2))
    first.submit(make_request(spec, shell_that_reports(tmp_path / "pid")))
    wait_for_line(tmp_path / "pid")
    (killed,) = SHARED_DAEMONS.daemons.values()
    os.kill(killed.process_pid, signal.SIGKILL)
    with pytest.raises(DaemonUnreachableError, match=f"process {killed.process_pid}, has ended") as caught:
        first.poll(DEADLINE_S)
    assert "npu-daemon serve" not in str(caught.value)
    first.close()
    third = connect(options=options)
    assert evaluate(third, make_request(spec)).status is Status.OK
    with pytest.raises(DaemonUnreachableError, match="has ended"):
        second.describe()
    second.close()  # gives up the killed one, not its successor
    assert evaluate(third, make_request(spec, "latency: 7")).latency_us == pytest.approx(7)
    third.close()
    assert SHARED_DAEMONS.daemons == {}


def test_a_daemon_that_fails_to_start_has_no_users(tmp_path: Path) -> None:
    shared = SharedDaemons()
    options = DaemonOptions(backend=BACKEND, workers=1, cache_dir=tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.executable", str(tmp_path / "no_python"))
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        with pytest.raises(InfrastructureError, match="no_python"):
            shared.acquire(options, DEADLINE_S)
    assert private_folders(tmp_path) == set()
    daemon = shared.acquire(options, DEADLINE_S)
    shared.release(daemon)
    assert ends(daemon.process_pid)
    assert shared.daemons == {}


def test_a_daemon_without_room_for_temporary_files_says_so(
    options: DaemonOptions, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder / "nothing"))
    with pytest.raises(InfrastructureError, match="by TMPDIR"):
        connect(options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [(DaemonOptions(chip="910Z"), "910B2"), (DaemonOptions(backend="abacus"), "module:Class")],
)
def test_a_private_daemon_that_refuses_its_options_is_misuse(options: DaemonOptions, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        connect(options=options)


def test_folders_of_killed_daemons_are_removed_by_the_next_one(short_folder: Path) -> None:
    foreign = short_folder / "ascend-gym-of-somebody-else"
    foreign.mkdir()
    with ExitStack() as started:

        def serving(name: str) -> subprocess.Popen[bytes]:
            process = started.enter_context(serve_until_ready(short_folder, name))
            started.callback(process.kill)
            return process

        killed = serving("killed")
        (abandoned,) = private_folders(short_folder) - {foreign}
        killed.kill()
        killed.wait()
        assert abandoned.exists()
        other = serving("other")
        (in_use,) = private_folders(short_folder) - {foreign}
        assert in_use != abandoned
        last = serving("last")
        assert private_folders(short_folder) > {in_use, foreign}
        for process in (other, last):
            process.terminate()
            assert process.wait(DEADLINE_S) == 0
        assert private_folders(short_folder) == {foreign}

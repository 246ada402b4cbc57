"""The daemon for real: processes, sockets and signals, with the fake backend."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.client import DaemonOptions, LocalDaemon, ZmqEvaluator, connect
from ascend_gym.client.local_daemon import SHARED_DAEMONS, SharedDaemons
from ascend_gym.core.codec import WIRE_VERSION, Kind, WireMessage, decode, encode
from ascend_gym.core.config import ENV_DAEMON
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Diagnostic, EvalRequest, EvalResult, MeasureProtocol, OpSpec, PhaseSeconds
from ascend_gym.core.status import Status
from npu_daemon.in_process import InProcessEvaluator

BACKEND = "fake_backend:FakeBackend"
DEADLINE_S = 60.0
PYTHONPATH = f"{Path(__file__).parents[1]}:{Path(__file__).parents[2]}"


@pytest.fixture(autouse=True)
def importable_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.delenv(ENV_DAEMON, raising=False)


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    return make_operator(tmp_path / "double_it")


@pytest.fixture
def options(tmp_path: Path) -> DaemonOptions:
    return DaemonOptions(backend=BACKEND, workers=2, cache_dir=tmp_path / "cache")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalDaemon]:
    """A daemon for the tests that leave it alive; its cache is shared, so each test has its own requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PYTHONPATH)
        options = DaemonOptions(backend=BACKEND, workers=2, cache_dir=tmp_path_factory.mktemp("cache"))
        with LocalDaemon(options) as daemon:
            yield daemon


@pytest.fixture
def evaluator(daemon: LocalDaemon) -> Iterator[ZmqEvaluator]:
    evaluator = ZmqEvaluator(daemon.address)
    yield evaluator
    evaluator.close()


def collect(evaluator: Evaluator, count: int) -> dict[str, EvalResult]:
    deadline_s = time.monotonic() + DEADLINE_S
    results: dict[str, EvalResult] = {}
    while len(results) < count:
        remaining_s = deadline_s - time.monotonic()
        assert remaining_s > 0, f"only {len(results)} of {count} results came"
        results.update(evaluator.poll(remaining_s))
    return results


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    request_id = evaluator.submit(request)
    return collect(evaluator, 1)[request_id]


def wait_for_line(fifo: Path) -> str:
    return fifo.read_text().strip()


def ends_within(pid: int, timeout_s: float) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], timeout_s)[0])
    finally:
        os.close(process)


def shell_that_reports(fifo: Path) -> str:
    """A directive that tells its pid through a fifo, then sleeps for ever in a session of its own."""
    os.mkfifo(fifo)
    return f"shell: setsid sh -c 'echo $$ > {fifo}; sleep 600'"


def test_in_process_and_daemon_agree(evaluator: ZmqEvaluator, spec: OpSpec, tmp_path: Path) -> None:
    local = InProcessEvaluator(FakeBackend(tmp_path / "local"), tmp_path / "local")
    requests = [
        make_request(spec, "agreement"),
        make_request(spec, protocol=MeasureProtocol(repeats=3)),
        make_request(spec, case_ids=("large",)),
        make_request(spec, "wrong"),
        make_request(spec, "fail_build: build_error"),
        make_request(spec, "fail: timeout"),
        make_request(spec, "tamper: input"),
        make_request(spec, "broken"),
        make_request(spec, case_ids=("tiny",)),
        make_request(spec, protocol=MeasureProtocol(chip="310P")),
        make_request(spec, op_id="core/nothing", op_folder=None),
    ]
    for request in requests:
        assert without_seconds(evaluate(evaluator, request)) == without_seconds(evaluate(local, request))
    assert evaluator.describe() == local.describe()
    local.close()


def without_seconds(result: EvalResult) -> EvalResult:
    return result.model_copy(update={"seconds": PhaseSeconds()})


def test_a_repeated_request_comes_from_the_cache_quickly(evaluator: ZmqEvaluator, spec: OpSpec) -> None:
    first = evaluate(evaluator, make_request(spec, "repeated"))
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        again = evaluate(evaluator, make_request(spec, "repeated"))
        seconds.append(time.perf_counter() - started)
        assert again.cached
        assert again.cases == first.cases
    assert not first.cached
    assert sorted(seconds)[len(seconds) // 2] < 0.020


def test_a_cache_is_shared_by_daemons_and_outlives_them(options: DaemonOptions, spec: OpSpec) -> None:
    cached = []
    for _ in range(2):
        with LocalDaemon(options) as daemon:
            evaluator = ZmqEvaluator(daemon.address)
            evaluator.describe()
            cached.append(evaluate(evaluator, make_request(spec)).cached)
            evaluator.close()
    assert cached == [False, True]


def test_many_requests_in_flight_come_back_each_with_its_own_answer(
    evaluator: ZmqEvaluator, spec: OpSpec
) -> None:
    wanted = {evaluator.submit(make_request(spec, f"latency: {n}")): float(n) for n in range(1, 41)}
    results = collect(evaluator, len(wanted))
    latencies = {request_id: result.latency_us for request_id, result in results.items()}
    assert latencies == pytest.approx(wanted)
    assert evaluator.poll(0) == []


def test_a_candidate_that_kills_its_worker_is_tried_twice_then_an_infra_error(
    evaluator: ZmqEvaluator, spec: OpSpec
) -> None:
    result = evaluate(evaluator, make_request(spec, "die"))
    assert result.status is Status.INFRA_ERROR
    assert "SIGKILL" in result.all_diagnostics[0].message
    assert evaluate(evaluator, make_request(spec)).status is Status.OK


def test_a_job_whose_worker_died_once_is_finished_by_another(
    evaluator: ZmqEvaluator, spec: OpSpec, tmp_path: Path
) -> None:
    result = evaluate(evaluator, make_request(spec, f"die_once: {tmp_path / 'died'}"))
    assert result.status is Status.OK
    assert (tmp_path / "died").exists()


def test_a_bug_in_the_backend_is_an_infra_error_that_names_it(evaluator: ZmqEvaluator, spec: OpSpec) -> None:
    result = evaluate(evaluator, make_request(spec, "bug"))
    assert result.status is Status.INFRA_ERROR
    assert "ZeroDivisionError" in result.all_diagnostics[0].message
    assert "fake_backend.py:" in result.all_diagnostics[0].message


def test_cancelling_a_running_evaluation_kills_its_processes(
    evaluator: ZmqEvaluator, spec: OpSpec, tmp_path: Path
) -> None:
    directive = shell_that_reports(tmp_path / "pid")
    request_id = evaluator.submit(make_request(spec, directive))
    candidate_pid = int(wait_for_line(tmp_path / "pid"))
    evaluator.cancel(request_id)
    assert collect(evaluator, 1)[request_id].status is Status.CANCELLED
    assert ends_within(candidate_pid, 10)
    assert evaluate(evaluator, make_request(spec)).status is Status.OK


def test_a_waiting_request_can_be_cancelled(tmp_path: Path, spec: OpSpec) -> None:
    options = DaemonOptions(backend=BACKEND, workers=1, cache_dir=tmp_path / "cache")
    with LocalDaemon(options) as daemon:
        evaluator = ZmqEvaluator(daemon.address)
        running = evaluator.submit(make_request(spec, shell_that_reports(tmp_path / "pid")))
        waiting = evaluator.submit(make_request(spec))
        wait_for_line(tmp_path / "pid")
        evaluator.cancel(waiting)
        assert collect(evaluator, 1)[waiting].status is Status.CANCELLED
        evaluator.cancel(running)
        assert collect(evaluator, 1)[running].status is Status.CANCELLED
        evaluator.close()


@pytest.mark.parametrize("how", ["close", "SIGTERM", "SIGINT", "SIGKILL"])
def test_the_end_of_the_daemon_is_the_end_of_workers_and_candidates(
    options: DaemonOptions, spec: OpSpec, tmp_path: Path, how: str
) -> None:
    daemon = LocalDaemon(options)
    evaluator = ZmqEvaluator(daemon.address)
    evaluator.submit(make_request(spec, shell_that_reports(tmp_path / "pid")))
    candidate_pid = int(wait_for_line(tmp_path / "pid"))
    workers = children_of(daemon.process_pid)
    assert len(workers) == 2
    if how == "close":
        daemon.close()
    else:
        os.kill(daemon.process_pid, getattr(signal, how))
        if how == "SIGTERM":  # the first lets the running evaluation finish, the second does not
            assert evaluate(evaluator, make_request(spec)).status is Status.INFRA_ERROR
            os.kill(daemon.process_pid, signal.SIGTERM)
    assert all(ends_within(pid, 10) for pid in [*workers, candidate_pid])
    daemon.close()
    evaluator.close()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_sigterm_finishes_what_runs(options: DaemonOptions, spec: OpSpec, tmp_path: Path) -> None:
    daemon = LocalDaemon(options)
    evaluator = ZmqEvaluator(daemon.address)
    started, proceed = tmp_path / "started", tmp_path / "proceed"
    for fifo in (started, proceed):
        os.mkfifo(fifo)
    request_id = evaluator.submit(
        make_request(spec, f"shell: echo > {started}; cat {proceed}", case_ids=("small",))
    )
    wait_for_line(started)
    os.kill(daemon.process_pid, signal.SIGTERM)
    late = evaluate(evaluator, make_request(spec))
    assert late.status is Status.INFRA_ERROR
    assert "shutting down" in late.all_diagnostics[0].message
    proceed.write_text("go")
    assert collect(evaluator, 1)[request_id].status is Status.OK
    assert ends_within(daemon.process_pid, 10)
    daemon.close()
    evaluator.close()


def test_a_client_survives_a_restart_of_the_daemon(tmp_path: Path, spec: OpSpec) -> None:
    address = f"ipc://{tmp_path}/socket"
    first = serve(address, tmp_path)
    evaluator = ZmqEvaluator(address, connect_timeout_s=DEADLINE_S)
    os.mkfifo(tmp_path / "started")
    restarted = tmp_path / "restarted"
    once = f"shell: test -e {restarted} && exit; echo > {tmp_path}/started; sleep 600"
    pending = evaluator.submit(make_request(spec, once))
    wait_for_line(tmp_path / "started")
    first.kill()
    first.wait()
    restarted.touch()
    second = serve(address, tmp_path)
    assert collect(evaluator, 1)[pending].status is Status.OK
    evaluator.close()
    second.terminate()
    assert second.wait(10) == 0


def serve(address: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "npu_daemon", "serve", "--bind", address, "--backend", BACKEND),
            *("--workers", "1", "--cache-dir", str(folder / "cache")),
        ],
        env={**os.environ, "TMPDIR": str(folder)},  # a killed daemon without a parent cannot tidy up
    )


def run_serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "npu_daemon", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_an_address_that_others_can_reach_is_refused() -> None:
    ended = run_serve("--bind", "tcp://0.0.0.0:5710", "--backend", BACKEND)
    assert ended.returncode == 2
    assert "127.0.0.1" in ended.stderr


def test_misuse_and_missing_infrastructure_have_their_exit_status(tmp_path: Path) -> None:
    unknown = run_serve("--backend", "abacus")
    assert unknown.returncode == 2
    assert "simulator" in unknown.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        busy = run_serve("--bind", address, "--backend", BACKEND, "--cache-dir", str(tmp_path))
    assert busy.returncode == 3
    assert address in busy.stderr


def test_a_backend_that_cannot_start_is_reported_with_its_messages(tmp_path: Path) -> None:
    options = DaemonOptions(backend="fake_backend:BrokenBackend", workers=1, cache_dir=tmp_path)
    with pytest.raises(InfrastructureError, match="g\\+\\+ is missing"):
        LocalDaemon(options)


def test_a_daemon_that_is_not_ready_in_time_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"not ready within 0\.001 s"):
        LocalDaemon(DaemonOptions(backend=BACKEND, cache_dir=tmp_path), start_timeout_s=0.001)


def test_no_daemon_at_the_address_is_an_error_that_says_what_to_do(tmp_path: Path, spec: OpSpec) -> None:
    address = f"ipc://{tmp_path}/nobody"
    with pytest.raises(DaemonUnreachableError, match="npu-daemon serve"):
        connect(address, connect_timeout_s=0.2)
    evaluator = ZmqEvaluator(address, connect_timeout_s=0.2)
    evaluator.submit(make_request(spec))
    with pytest.raises(DaemonUnreachableError, match="nobody"):
        evaluator.poll(30)
    evaluator.close()
    for address in ("gopher://x", "garbage", "tcp://host"):
        with pytest.raises(MisuseError, match="tcp://HOST:PORT"):
            connect(address)


def test_connect_prefers_the_address_of_the_environment(
    daemon: LocalDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENV_DAEMON, daemon.address)
    evaluator = connect()
    assert isinstance(evaluator, ZmqEvaluator)
    assert evaluator.address == daemon.address
    evaluator.close()


def test_private_daemon_is_shared_and_ends_with_its_last_user(options: DaemonOptions, spec: OpSpec) -> None:
    first, second = connect(options=options), connect(options=options)
    assert isinstance(first, ZmqEvaluator)
    assert isinstance(second, ZmqEvaluator)
    assert first.address == second.address
    (pid,) = {daemon.process_pid for daemon in SHARED_DAEMONS.daemons.values()}
    first.close()
    first.close()
    assert evaluate(second, make_request(spec)).status is Status.OK
    second.close()
    assert ends_within(pid, 10)
    assert not Path(second.address.removeprefix("ipc://")).parent.exists()
    with pytest.raises(InfrastructureError, match="closed"):
        second.submit(make_request(spec))


def test_a_forgotten_evaluator_lets_its_daemon_go(options: DaemonOptions) -> None:
    evaluator = connect(options=options)
    (pid,) = {daemon.process_pid for daemon in SHARED_DAEMONS.daemons.values()}
    del evaluator
    assert ends_within(pid, 10)


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
        ((_, result),) = child.poll(60)
        child.close()
        assert child.address == parent.address
        os._exit(0 if abs(result.latency_us - number - 1) < 1e-9 else 1)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
parent.submit(make_request(spec))
((_, result),) = parent.poll(60)
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
    assert ends_within(daemon_pid, 10)


def raw_exchange(address: str, frames: list[bytes]) -> list[bytes]:
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(address)
        dealer.send_multipart(frames)
        assert dealer.poll(int(1000 * DEADLINE_S))
        return dealer.recv_multipart()


def test_nonsense_on_the_wire_is_refused_and_harmless(daemon: LocalDaemon, evaluator: ZmqEvaluator) -> None:
    good = encode(WireMessage(Kind.DESCRIBE, "r1"))
    other_version = [good[0][:2] + bytes([WIRE_VERSION + 1]) + good[0][3:], *good[1:]]
    for frames in ([b""], [b"x"] * 9, other_version, encode(WireMessage(Kind.BEAT, "r1", 1))):
        answer = decode(raw_exchange(daemon.address, frames))
        assert isinstance(answer, WireMessage)
        assert answer.kind is Kind.REFUSED
        assert isinstance(answer.payload, Diagnostic)
    assert evaluator.describe().backend == "fake"


def test_an_oversized_request_is_refused_by_the_client(evaluator: ZmqEvaluator, spec: OpSpec) -> None:
    huge = make_request(spec).model_copy(
        update={"candidate": spec.baseline.rewritten(kernel="x" * (17 * 2**20))}
    )
    with pytest.raises(InfrastructureError, match="bytes"):
        evaluator.submit(huge)
    assert evaluate(evaluator, make_request(spec)).status is Status.OK


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
    assert ends_within(daemon.process_pid, 10)
    assert shared.daemons == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [(DaemonOptions(chip="910Z"), "910B2"), (DaemonOptions(backend="abacus"), "module:Class")],
)
def test_a_private_daemon_that_refuses_its_options_is_misuse(options: DaemonOptions, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        connect(options=options)


def test_folders_of_killed_daemons_are_removed_by_the_next_one(
    tmp_path: Path, spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    foreign = tmp_path / "ascend-gym-of-somebody-else"
    foreign.mkdir()
    before = set(tmp_path.iterdir())
    killed = serve_until_ready(tmp_path, "killed")
    (abandoned,) = private_folders(tmp_path) - before
    killed.kill()
    killed.wait()
    assert abandoned.exists()
    other = serve_until_ready(tmp_path, "other")
    (in_use,) = private_folders(tmp_path) - before
    assert in_use != abandoned
    last = serve_until_ready(tmp_path, "last")
    assert private_folders(tmp_path) > {in_use, foreign}
    for process in (other, last):
        process.terminate()
        assert process.wait(10) == 0
    assert private_folders(tmp_path) == {foreign}


def private_folders(parent: Path) -> set[Path]:
    return set(parent.glob("ascend-gym-*"))


def serve_until_ready(folder: Path, name: str) -> subprocess.Popen[bytes]:
    process = serve(f"ipc://{folder}/{name}", folder)
    evaluator = ZmqEvaluator(f"ipc://{folder}/{name}", connect_timeout_s=DEADLINE_S)
    evaluator.describe()
    evaluator.close()
    return process

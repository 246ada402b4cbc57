"""The daemon for real: processes, sockets and signals, with the fake backend."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zmq
from daemon_processes import (
    BACKEND,
    DEADLINE_S,
    PYTHONPATH,
    collect,
    ends,
    evaluate,
    serve,
    shell_that_reports,
    wait_for_line,
)
from fake_backend import FakeBackend, make_operator, make_request

from ascend_gym.client import DaemonOptions, LocalDaemon, ZmqEvaluator, connect
from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, WIRE_VERSION, Kind, WireMessage, decode, encode
from ascend_gym.core.config import ENV_DAEMON
from ascend_gym.core.errors import DaemonUnreachableError, InfrastructureError, MisuseError
from ascend_gym.core.records import Diagnostic, EvalResult, MeasureProtocol, OpSpec, PhaseSeconds
from ascend_gym.core.status import Status
from npu_daemon.in_process import InProcessEvaluator


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


def test_a_repeated_request_comes_from_the_cache(evaluator: ZmqEvaluator, spec: OpSpec) -> None:
    first = evaluate(evaluator, make_request(spec, "repeated"))
    for _ in range(20):
        again = evaluate(evaluator, make_request(spec, "repeated"))
        assert again.cached
        assert again.cases == first.cases
    assert not first.cached


@pytest.mark.slow
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
    assert ends(candidate_pid)
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


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "SIGTERM", "SIGINT", "SIGKILL"])
def test_the_end_of_the_daemon_is_the_end_of_workers_and_candidates(
    options: DaemonOptions, spec: OpSpec, tmp_path: Path, how: str
) -> None:
    daemon = LocalDaemon(replace(options, workers=2))
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
    assert all(ends(pid) for pid in [*workers, candidate_pid])
    daemon.close()
    evaluator.close()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
def test_sigterm_finishes_what_runs(options: DaemonOptions, spec: OpSpec, tmp_path: Path) -> None:
    daemon = LocalDaemon(options)
    evaluator = ZmqEvaluator(daemon.address)
    started, proceed = tmp_path / "started", tmp_path / "proceed"
    for fifo in (started, proceed):
        os.mkfifo(fifo)
    over = tmp_path / "over"  # the run on other values does not wait
    waiting = f"shell: test -e {over} && exit; echo > {started}; cat {proceed}; touch {over}"
    request_id = evaluator.submit(make_request(spec, waiting, case_ids=("small",)))
    wait_for_line(started)
    os.kill(daemon.process_pid, signal.SIGTERM)
    late = evaluate(evaluator, make_request(spec))
    assert late.status is Status.INFRA_ERROR
    assert "shutting down" in late.all_diagnostics[0].message
    proceed.write_text("go")
    assert collect(evaluator, 1)[request_id].status is Status.OK
    assert ends(daemon.process_pid)
    daemon.close()
    evaluator.close()


@pytest.mark.slow
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
    assert second.wait(DEADLINE_S) == 0


@pytest.mark.slow
def test_a_daemon_that_is_getting_ready_says_so_to_those_who_wait(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/socket"
    os.mkfifo(tmp_path / "go")
    daemon = serve(address, tmp_path, "fake_backend:PatientBackend")
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.RCVTIMEO, int(1000 * DEADLINE_S))
        client.connect(address)
        client.send_multipart(encode(WireMessage(Kind.DESCRIBE)))
        kinds = [_kind(client) for _ in range(3)]
        assert kinds == [Kind.BEAT] * 3, "at once, and again and again"
        (tmp_path / "go").write_text("go")
        while (kind := _kind(client)) is Kind.BEAT:
            continue
        assert kind is Kind.DEVICE
    daemon.terminate()
    assert daemon.wait(DEADLINE_S) == 0


def _kind(client: zmq.Socket[bytes]) -> Kind:
    message = decode(client.recv_multipart())
    assert isinstance(message, WireMessage)
    return message.kind


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert evaluator.address == daemon.address
    evaluator.close()


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


def test_others_are_served_while_a_client_sends_the_longest_nonsense(
    daemon: LocalDaemon, evaluator: ZmqEvaluator, spec: OpSpec
) -> None:
    """Their evaluation ends before what was sent before it has been refused: turns are short, and fair."""
    header, _ = encode(WireMessage(Kind.CANCEL, "hostile"))
    header = header.replace(Kind.CANCEL.value, Kind.SUBMIT.value, 1)
    shapes = (b'{"op_id":"', b"[", b'{"case_ids":["'), (b"\xc3\xa9", b'\\"', b'"k":1,', b"x")
    payloads = [
        (before + unit * (MAX_PAYLOAD_BYTES // len(unit)))[:MAX_PAYLOAD_BYTES]
        for before, unit in itertools.product(*shapes)
    ]
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(daemon.address)
        for payload in payloads:
            dealer.send_multipart([header, payload], copy=False)
        assert dealer.poll(int(1000 * DEADLINE_S))
        assert evaluate(evaluator, make_request(spec)).status is Status.OK
        refused = 0
        while dealer.poll(0):
            answer = decode(dealer.recv_multipart())
            assert isinstance(answer, WireMessage)
            assert answer.kind is Kind.REFUSED
            refused += 1
        assert 0 < refused < len(payloads)


def test_an_oversized_request_is_answered_by_the_client(evaluator: ZmqEvaluator, spec: OpSpec) -> None:
    huge = make_request(spec).model_copy(
        update={"candidate": spec.baseline.rewritten(kernel="x" * (17 * 2**20))}
    )
    refused = evaluate(evaluator, huge)
    assert refused.status is Status.INVALID_REQUEST
    assert "bytes" in refused.diagnostics[0].message
    assert evaluate(evaluator, make_request(spec)).status is Status.OK


@pytest.mark.slow
def test_several_daemons_are_one_evaluator(
    daemon: LocalDaemon, options: DaemonOptions, spec: OpSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalDaemon(options) as other:
        monkeypatch.setenv(ENV_DAEMON, f"{daemon.address}, {other.address}")
        pool = connect()
        assert set(pool.infos) == {daemon.address, other.address}
        wanted = {pool.submit(make_request(spec, f"latency: {n}", "pooled")): float(n) for n in range(1, 21)}
        other.close()
        results = collect(pool, len(wanted))
        assert {pool_id: result.latency_us for pool_id, result in results.items()} == pytest.approx(wanted)
        pool.close()

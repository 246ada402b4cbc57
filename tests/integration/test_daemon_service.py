"""The daemon as a service: killed and started again, asked, resized, drained by its command line."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import zmq
from daemon_processes import BACKEND, DEADLINE_S, PYTHONPATH, collect, ends, evaluate, wait_for_line
from fake_backend import make_operator, make_request

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.curve_keys import client_keys, generate_keys
from ascend_gym.core.records import EvalResult
from ascend_gym.core.status import Status

pytestmark = pytest.mark.slow

CONFIG = """
bind = "{address}"
backend = "{backend}"
workers = 2
devices = 1
cache_dir = "{folder}/cache"
metrics = "127.0.0.1:{port}"
log_format = "json"
secret_key = "{folder}/daemon.key_secret"
allowed_clients = "{folder}/allowed"
operators = ["alice"]
reference_folders = ["{folder}/double_it"]
"""


def free_ports(count: int) -> list[int]:
    """Return ports that stay free: below those that the kernel gives to sockets of other tests."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(1024, first_given)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


class Service:
    """A daemon with keys, a configuration file and a journal, and its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics_port, port = free_ports(2)
        self.address = f"tcp://127.0.0.1:{port}"
        generate_keys(folder, "daemon")
        public, secret = generate_keys(folder / "keys", "client")
        (folder / "keys" / "127.0.0.1.key").write_bytes((folder / "daemon.key").read_bytes())
        (folder / "allowed").mkdir()
        (folder / "allowed" / "alice.key").write_bytes(public.read_bytes())
        assert secret.exists()
        text = CONFIG.format(address=self.address, backend=BACKEND, folder=folder, port=self.metrics_port)
        (folder / "daemon.toml").write_text(text)

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "npu_daemon", "serve", "--config", str(self.folder / "daemon.toml")],
                env={**os.environ, "TMPDIR": str(self.folder)},
                stderr=log,
            )

    def command(self, *arguments: str) -> Any:
        """Run a command of the daemon's and return the status that it prints."""
        ended = subprocess.run(
            [sys.executable, "-m", "npu_daemon", *arguments, "--daemon", self.address],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setenv("ASCEND_GYM_KEYS", str(tmp_path / "keys"))
    return Service(tmp_path)


def keyed_dealer(service: Service, tenant: str, name: bytes | None) -> zmq.Socket[bytes]:
    """Return a socket of a tenant, admitted here, that says that it is called ``name``."""
    folder = service.folder / f"keys-{tenant}"
    if not folder.exists():
        public, _ = generate_keys(folder, "client")
        (folder / "127.0.0.1.key").write_bytes((service.folder / "daemon.key").read_bytes())
        (service.folder / "allowed" / f"{tenant}.key").write_bytes(public.read_bytes())
    keys = client_keys(service.address, folder)
    assert keys is not None
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    if name is not None:
        socket.setsockopt(zmq.IDENTITY, name)
    keys.guard(socket)
    socket.connect(service.address)
    return socket


def said(socket: zmq.Socket[bytes], timeout_s: float = DEADLINE_S) -> list[WireMessage]:
    """Return what comes until a message that is no sign of life, or nothing until the time is up."""
    deadline_s = time.monotonic() + timeout_s
    found: list[WireMessage] = []
    while (left_s := deadline_s - time.monotonic()) > 0 and socket.poll(int(1000 * left_s)):
        message = decode(socket.recv_multipart())
        assert isinstance(message, WireMessage)
        if message.kind is not Kind.BEAT:
            return [*found, message]
    return found


def test_nobody_gets_a_tenants_results_by_the_name_of_its_connection(
    service: Service, tmp_path: Path
) -> None:
    spec = make_operator(tmp_path / "double_it")
    daemon = service.start()
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "started")
    once = f"shell: test -e {tmp_path}/gone && exit; echo > {tmp_path}/started; cat {tmp_path}/go"
    request = make_request(spec, once, use_cache=False, case_ids=("small",))
    submit = encode(WireMessage(Kind.SUBMIT, "session.1", payload=request))
    describe = encode(WireMessage(Kind.DESCRIBE))
    named = keyed_dealer(service, "bob", b"same")
    named.send_multipart(submit)
    assert [each.kind for each in said(named)] == [Kind.REFUSED], "a name of its own is of no use"
    bob, mallory = keyed_dealer(service, "bob", None), keyed_dealer(service, "mallory", b"same")
    bob.send_multipart(describe)
    assert [each.kind for each in said(bob)] == [Kind.DEVICE]
    bob.send_multipart(submit)
    wait_for_line(tmp_path / "started")
    for frames in (submit, describe, encode(WireMessage(Kind.CANCEL, "session.1"))):
        mallory.send_multipart(frames)  # over a connection that is ignored: the name is in use
    unnamed = keyed_dealer(service, "mallory", None)  # the same request id, but not the same request
    unnamed.send_multipart(encode(WireMessage(Kind.CANCEL, "session.1")))
    unnamed.send_multipart(describe)
    assert [each.kind for each in said(unnamed)] == [Kind.DEVICE]
    bob.close()
    again = keyed_dealer(service, "bob", None)
    again.send_multipart(submit)  # the client's own name makes it the same request
    (tmp_path / "gone").touch()
    (tmp_path / "go").write_text("")
    (answer,) = said(again)
    assert isinstance(answer.payload, EvalResult)
    assert (answer.request_id, answer.payload.status) == ("session.1", Status.OK)
    assert said(mallory, 0.5) == said(unnamed, 0.5) == []
    for each in (named, again, mallory, unnamed):
        each.close()
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(DEADLINE_S) == 0


def test_an_expelled_tenants_connection_is_cut_and_its_jobs_end_uncharged(
    service: Service, tmp_path: Path
) -> None:
    spec = make_operator(tmp_path / "double_it")
    daemon = service.start()
    os.mkfifo(tmp_path / "started")
    endless = make_request(spec, f"shell: echo > {tmp_path}/started; sleep 600", case_ids=("small",))
    for tenant, cut in (
        ("bob", lambda: service.command("tenants", "--expel", "bob")),
        ("carol", (service.folder / "allowed" / "carol.key").unlink),
    ):
        socket = keyed_dealer(service, tenant, None)
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.send_multipart(encode(WireMessage(Kind.SUBMIT, "session.1", payload=endless)))
        wait_for_line(tmp_path / "started")
        told = {each["tenant"]: each for each in service.command("status")["tenants"]}
        assert (told[tenant]["connections"], told[tenant]["running"]) == (1, 1)
        cut()
        assert monitor.poll(int(1000 * DEADLINE_S)), "the connection was closed"
        told = {each["tenant"]: each for each in service.command("status")["tenants"]}
        assert [told[tenant][name] for name in ("connections", "running", "evaluations")] == [0, 0, 0]
        socket.disable_monitor()
        socket.close()
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(DEADLINE_S) == 0


def test_a_killed_daemon_goes_on_where_it_was_and_is_run_by_its_operator(
    service: Service, tmp_path: Path
) -> None:
    spec = make_operator(tmp_path / "double_it")
    first = service.start()
    evaluator = ZmqEvaluator(service.address, connect_timeout_s=DEADLINE_S)
    os.mkfifo(tmp_path / "started")
    again = tmp_path / "again"
    once = f"shell: test -e {again} && exit; echo > {tmp_path}/started; sleep 600"
    done = evaluate(evaluator, make_request(spec, use_cache=False, case_ids=("small",)))
    assert done.status is Status.OK
    fields = {"use_cache": False, "case_ids": ("small",)}
    ids = [evaluator.submit(make_request(spec, once, **fields))]
    ids += [evaluator.submit(make_request(spec, f"latency: {n}", **fields)) for n in range(1, 6)]
    wait_for_line(tmp_path / "started")
    first.send_signal(signal.SIGKILL)
    first.wait()
    again.touch()
    second = service.start()
    results = collect(evaluator, len(ids))
    assert [results[each].status for each in ids] == [Status.OK] * len(ids)

    status = service.command("status")
    (tenant,) = status["tenants"]
    assert (tenant["tenant"], tenant["evaluations"]) == ("alice", 1 + len(ids)), "each was charged once"
    assert (status["devices"], status["queued"], status["running"]) == (1, 0, 0)
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}/metrics", timeout=DEADLINE_S)
    assert b'npu_daemon_charged_evaluations_total{tenant="alice"} 7.0' in metrics.read()
    service.command("resize", "1")
    assert evaluator.describe().backend == "fake"
    assert [info.slots for info in evaluator.infos.values()] == [1]
    assert service.command("drain")["draining"]
    assert second.wait(DEADLINE_S) == 0
    evaluator.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert any("ready at" in line["message"] for line in lines)


def test_stopped_workers_end_with_a_broker_that_is_killed(service: Service) -> None:
    daemon = service.start()
    evaluator = ZmqEvaluator(service.address, connect_timeout_s=DEADLINE_S)
    evaluator.describe()
    evaluator.close()
    children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
    workers = [int(child) for child in children]
    assert len(workers) == 2
    for worker in workers:  # one is ready, the other perhaps still on its way
        os.kill(worker, signal.SIGSTOP)
    daemon.kill()
    daemon.wait()
    assert [ends(worker) for worker in workers] == [True, True]

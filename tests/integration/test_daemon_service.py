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
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from daemon_processes import BACKEND, DEADLINE_S, PYTHONPATH, collect, evaluate, wait_for_line
from fake_backend import make_operator, make_request

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.curve_keys import generate_keys
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

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run a command of the daemon's and return the status that it prints."""
        ended = subprocess.run(
            [sys.executable, "-m", "npu_daemon", *arguments, "--daemon", self.address],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        status: dict[str, Any] = json.loads(ended.stdout)
        return status


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setenv("ASCEND_GYM_KEYS", str(tmp_path / "keys"))
    return Service(tmp_path)


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

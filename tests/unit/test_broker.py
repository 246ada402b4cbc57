"""Parts of the broker's shell that need no daemon."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from broker_machine import request_of, result_of

from ascend_gym.core.codec import Kind
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.private_folder import PrivateFolder
from npu_daemon.broker import shell
from npu_daemon.broker.config import BrokerConfig
from npu_daemon.broker.events import Name, Record, Reply, SaveAnswer, SavedJob, SaveJob
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.shell import Broker
from npu_daemon.broker.worker_processes import WorkerProcesses
from npu_daemon.security import check_bind_address
from npu_daemon.store import SqliteResultStore


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:5710",
        "tcp://127.0.0.1:*",
        "tcp://127.9.9.9:1",
        "tcp://localhost:1",
        "tcp://[::1]:1",
        "ipc:///x",
    ],
)
def test_local_addresses_may_be_bound(address: str) -> None:
    check_bind_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://0.0.0.0:5710",
        "tcp://*:5710",
        "tcp://10.1.2.3:1",
        "tcp://[::]:1",
        "tcp://example.org:1",
        "tcp://127.0.0.1",
        "tcp://eth0;127.0.0.1:1",
        "udp://127.0.0.1:1",
        "ipc://",
        "5710",
        "",
    ],
)
def test_other_addresses_are_refused_with_a_way_out(address: str) -> None:
    with pytest.raises(MisuseError, match=r"127\.0\.0\.1"):
        check_bind_address(address)


def next_ended(processes: WorkerProcesses) -> tuple[str, str, bool]:
    assert select.select([processes.ended_fd], [], [], 180)[0]
    (ended,) = processes.reap()
    return ended


def test_how_a_worker_ended_is_told(tmp_path: Path) -> None:
    processes = WorkerProcesses(
        lambda worker_id, scratch: [sys.executable, "-c", "import sys; sys.exit(7)"], tmp_path
    )
    processes.start("worker-1")
    worker_id, reason, killed = next_ended(processes)
    assert (worker_id, killed) == ("worker-1", False)
    assert "exit status 7" in reason
    assert list(processes.reap()) == []
    processes.close()


def test_killed_workers_are_reaped_and_their_temporary_files_removed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    code = (
        "import sys, time; open(sys.argv[2] + '/left', 'w'); open(sys.argv[1], 'w').close(); time.sleep(600)"
    )
    processes = WorkerProcesses(
        lambda worker_id, scratch: [sys.executable, "-c", code, str(fifo), str(scratch)], tmp_path
    )
    processes.start("worker-1")
    fifo.read_text()
    left = tmp_path / "worker-1" / "left"
    assert left.exists()
    processes.start("worker-2")
    processes.kill("worker-1")
    processes.kill("worker-9")
    assert next_ended(processes) == ("worker-1", "the daemon ended it", True)
    processes.close()
    assert not left.exists()
    assert list(tmp_path.iterdir()) == [fifo]


class ListedJournal(JobJournal):
    """A record that says when it was written."""

    def __init__(self, path: Path, seen: list[object]) -> None:
        super().__init__(path)
        self._seen = seen

    def write(self, records: Iterable[Record]) -> None:
        written = list(records)
        super().write(written)
        self._seen.append([type(record) for record in written])


def test_what_a_client_is_told_is_on_record_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are recorded together with what comes next, but not later than an answer is sent."""
    seen: list[object] = []
    monkeypatch.setattr(shell, "RECORD_MS", 3_600_000)
    config = BrokerConfig(
        bind=f"ipc://{tmp_path}/clients",
        workers=1,
        devices=1,
        worker_command=lambda address, worker_id, scratch: [sys.executable, "-c", ""],
        store=SqliteResultStore(tmp_path / "results.sqlite"),
        private_folder=PrivateFolder(),
        journal=ListedJournal(tmp_path / "jobs.sqlite", seen),
    )
    broker = Broker(config)
    monkeypatch.setattr(broker, "_recorded_s", time.monotonic())
    monkeypatch.setattr(broker, "_send_client", lambda client, message: seen.append(message.kind))
    name, request = Name(b"c", "r1"), request_of()
    broker._due.append(SaveJob(SavedJob(name, "local", request)))
    broker._act()
    assert seen == []
    result = result_of(request)
    broker._due += [SaveAnswer(name, result, "local", None), Reply(*name, result)]
    broker._act()
    assert seen == [[SaveJob, SaveAnswer], Kind.RESULT]
    broker._close()

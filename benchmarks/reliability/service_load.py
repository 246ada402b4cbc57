"""What the daemon itself costs: throughput with many workers, results from the store, added latency.

Workers only take their time, or are real ones that have nothing to do (``service_worker.py``), so the figures
are those of broker, wire, journal, worker and client. Prints one JSON document with the load of the machine
beside the figures; exit status 1 when one misses its target.

    python benchmarks/reliability/service_load.py --workers 64 --service-ms 50 --jobs 12800
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from service_worker import answer_to, named_after

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.codec import Kind
from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.records import Candidate, EvalRequest, SourceFile, Sources
from npu_daemon.broker.config import BrokerConfig
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.shell import Broker
from npu_daemon.operator_link import ask_daemon
from npu_daemon.service import result_key
from npu_daemon.store import SqliteResultStore

SHARE_OF_IDEAL = 0.95
CACHED_PER_S = 2000.0
ADDED_LATENCY_MS = 5.0
KERNEL_LINES = 40
READY_PAUSE_S = 0.2


def request(number: int, *, use_cache: bool) -> EvalRequest:
    """Return a request of a few kilobytes that no other has."""
    text = "".join(f"    pipe.InitBuffer(queue{line}, 2, {line} * 32);\n" for line in range(KERNEL_LINES))
    kernel = SourceFile(path="op_kernel/k.cpp", text=f"// {number}\n{text}")
    host = SourceFile(path="op_host/k.cpp", text="// tiling\n" * KERNEL_LINES)
    candidate = Candidate(
        host=Sources(files=(host,), main=host.path), kernel=Sources(files=(kernel,), main=kernel.path)
    )
    return named_after(
        EvalRequest(op_id="core/k", folder_digest="0", candidate=candidate, use_cache=use_cache)
    )


def serve(folder: Path, workers: int, service_s: float) -> None:
    """Run a broker in this process until SIGTERM."""

    def command(address: str, worker_id: str, scratch: Path) -> Sequence[str]:
        script = str(Path(__file__).with_name("service_worker.py"))
        return [sys.executable, script, address, worker_id, str(service_s)]

    broker = Broker(
        BrokerConfig(
            bind=f"ipc://{folder}/clients",
            workers=workers,
            devices=workers,
            worker_command=command,
            store=SqliteResultStore(folder / "results.sqlite"),
            private_folder=PrivateFolder(),
            journal=JobJournal(folder / "jobs.sqlite"),
        )
    )
    broker.run()


class Daemon:
    """A broker in a process of its own, all of whose workers are ready."""

    def __init__(self, workers: int, service_s: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ag-load-")
        self.folder = Path(self._folder.name)
        self._process = multiprocessing.Process(target=serve, args=(self.folder, workers, service_s))
        self._process.start()
        self.evaluator = ZmqEvaluator(f"ipc://{self.folder}/clients", connect_timeout_s=60)
        self.evaluator.describe()
        while ask_daemon(self.evaluator.address, Kind.STATUS).workers.get("idle", 0) < workers:
            time.sleep(READY_PAUSE_S)

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far of broker, workers and this process, which is the client."""
        workers = sum(_cpu_s(process) for process in self._workers())
        return {"broker": _cpu_s(self._proc), "workers": workers, "client": _cpu_s(Path("/proc/self"))}

    def resident_mib(self) -> float:
        """Return the memory of the broker's process."""
        return _resident_mib(self._proc)

    def footprint(self) -> dict[str, float]:
        """Return what broker and workers take of their host."""
        return footprint(self._proc)

    def close(self) -> None:
        """Stop it."""
        self.evaluator.close()
        self._process.terminate()
        self._process.join()
        self._folder.cleanup()

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self._process.pid}")

    def _workers(self) -> list[Path]:
        return children_of(self._proc)


def children_of(process: Path) -> list[Path]:
    """Return the children of a process, below /proc; those of a broker are its workers."""
    children = (process / "task" / process.name / "children").read_text().split()
    return [Path("/proc", child) for child in children]


def footprint(broker: Path) -> dict[str, float]:
    """Return what a broker and its workers take of their host."""
    workers = children_of(broker)
    return {
        "descriptors": sum(len(list((process / "fd").iterdir())) for process in (broker, *workers)),
        "processes": len(workers),
        "resident_mib": _resident_mib(broker),
        "workers_resident_mib": sum(map(_resident_mib, workers)),
    }


def _cpu_s(process: Path) -> float:
    """Return user and system time of a process, fields 14 and 15 of its stat file (proc(5))."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(process: Path) -> float:
    (line,) = (line for line in (process / "status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def rate(evaluator: ZmqEvaluator, requests: Sequence[EvalRequest]) -> float:
    """Return results a second when all requests are submitted at once."""
    began_s = time.perf_counter()
    for each in requests:
        evaluator.submit(each)
    missing = len(requests)
    while missing:
        missing -= len(evaluator.poll(60))
    return len(requests) / (time.perf_counter() - began_s)


def throughput(workers: int, service_s: float, jobs: int) -> dict[str, float]:
    """Measure evaluations a second with workers that take ``service_s`` for each."""
    daemon = Daemon(workers, service_s)
    rate(daemon.evaluator, [request(-number - 1, use_cache=False) for number in range(4 * workers)])
    requests = [request(number, use_cache=False) for number in range(jobs)]
    before_s = daemon.cpu_s()
    per_s = rate(daemon.evaluator, requests)
    after_s = daemon.cpu_s()
    daemon.close()
    ideal = workers / service_s
    cpu_ms = {f"{who}_cpu_ms_per_job": 1000 * (after_s[who] - before_s[who]) / jobs for who in after_s}
    return {"per_s": per_s, "ideal_per_s": ideal, "share_of_ideal": per_s / ideal, **cpu_ms}


def cached(jobs: int) -> dict[str, float]:
    """Measure results a second that come from the store of results, for one client."""
    daemon = Daemon(workers=1, service_s=0.0)
    requests = [request(number, use_cache=True) for number in range(jobs)]
    _store(daemon, requests)
    rates = [rate(daemon.evaluator, requests) for _ in range(3)]
    daemon.close()
    return {"per_s": statistics.median(rates), "best_per_s": max(rates)}


def _store(daemon: Daemon, requests: Sequence[EvalRequest]) -> None:
    """Put results into the broker's store, which real workers do."""
    device = daemon.evaluator.describe()
    store = SqliteResultStore(daemon.folder / "results.sqlite")
    for each in requests:
        store.put(result_key(each, device), answer_to(each, 0.0))
    store.close()


def added_latency(jobs: int) -> dict[str, float]:
    """Measure one evaluation after the other through the daemon; workers answer at once."""
    daemon = Daemon(workers=1, service_s=0.0)
    milliseconds = []
    for number in range(jobs):
        each = request(number, use_cache=False)
        began_s = time.perf_counter()
        answer_to(each, 0.0)
        in_process_s = time.perf_counter() - began_s
        began_s = time.perf_counter()
        daemon.evaluator.submit(request(number, use_cache=False))
        while not daemon.evaluator.poll(60):
            pass
        milliseconds.append(1000 * (time.perf_counter() - began_s - in_process_s))
    daemon.close()
    ordered = sorted(milliseconds)
    return {"median_ms": statistics.median(ordered), "p95_ms": ordered[int(0.95 * len(ordered))]}


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--service-ms", type=float, default=50.0)
    parser.add_argument("--jobs", type=int, default=12_800)
    parser.add_argument("--latency-jobs", type=int, default=300)
    arguments = parser.parse_args()
    load_before = os.getloadavg()
    throughput_report = throughput(arguments.workers, arguments.service_ms / 1000, arguments.jobs)
    cached_report = cached(arguments.jobs)
    latency_report = added_latency(arguments.latency_jobs)
    report = {
        "throughput": throughput_report,
        "cached": cached_report,
        "added_latency": latency_report,
        "cores": os.cpu_count(),
        "load_before": load_before,
        "load_after": os.getloadavg(),
    }
    print(json.dumps(report, indent=2))
    good = (
        throughput_report["share_of_ideal"] >= SHARE_OF_IDEAL
        and cached_report["per_s"] >= CACHED_PER_S
        and latency_report["median_ms"] <= ADDED_LATENCY_MS
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

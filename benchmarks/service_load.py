"""What the daemon itself costs: throughput with many workers, results from the store, added latency.

Workers only take their time (``service_worker.py``), so the figures are those of broker, wire, journal and
client. Prints one JSON document with the load of the machine beside the figures; exit status 1 when one
misses its target.

    python benchmarks/service_load.py --workers 64 --service-ms 50 --jobs 6000
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from service_worker import answer_to

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.private_folder import PrivateFolder
from ascend_gym.core.records import Candidate, EvalRequest, SourceFile, Sources
from npu_daemon.broker.config import BrokerConfig
from npu_daemon.broker.journal import JobJournal
from npu_daemon.broker.shell import Broker
from npu_daemon.store import SqliteResultStore

SHARE_OF_IDEAL = 0.95
CACHED_PER_S = 2000.0
ADDED_LATENCY_MS = 5.0
KERNEL_LINES = 40


def request(number: int, *, use_cache: bool) -> EvalRequest:
    """Return a request of a few kilobytes that no other has."""
    text = "".join(f"    pipe.InitBuffer(queue{line}, 2, {line} * 32);\n" for line in range(KERNEL_LINES))
    kernel = SourceFile(path="op_kernel/k.cpp", text=f"// {number}\n{text}")
    host = SourceFile(path="op_host/k.cpp", text="// tiling\n" * KERNEL_LINES)
    candidate = Candidate(
        host=Sources(files=(host,), main=host.path), kernel=Sources(files=(kernel,), main=kernel.path)
    )
    return EvalRequest(op_id="core/k", folder_digest="0", candidate=candidate, use_cache=use_cache)


def serve(folder: Path, workers: int, service_s: float, ready: Callable[[float], None]) -> None:
    """Run a broker in this process until SIGTERM; tell its CPU seconds at the end."""

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
    ready(
        resource.getrusage(resource.RUSAGE_SELF).ru_utime + resource.getrusage(resource.RUSAGE_SELF).ru_stime
    )


class Daemon:
    """A broker in a process of its own."""

    def __init__(self, workers: int, service_s: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ag-load-")
        self._cpu_s = multiprocessing.Queue()  # type: ignore[var-annotated]
        folder = Path(self._folder.name)
        self._process = multiprocessing.Process(
            target=serve, args=(folder, workers, service_s, self._cpu_s.put), daemon=False
        )
        self._process.start()
        self.evaluator = ZmqEvaluator(f"ipc://{folder}/clients", connect_timeout_s=60)
        self.evaluator.describe()

    def resident_mib(self) -> float:
        """Return the memory of the broker's process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def footprint(self) -> dict[str, float]:
        """Return what the broker takes of its host; its children are its workers."""
        process = Path(f"/proc/{self._process.pid}")
        children = (process / "task" / str(self._process.pid) / "children").read_text().split()
        return {
            "descriptors": len(list((process / "fd").iterdir())),
            "processes": len(children),
            "resident_mib": self.resident_mib(),
        }

    def close(self) -> float:
        """Stop it and return the CPU seconds that it has taken."""
        self.evaluator.close()
        self._process.terminate()
        cpu_s: float = self._cpu_s.get(timeout=60)
        self._process.join()
        self._folder.cleanup()
        return cpu_s


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
    per_s = rate(daemon.evaluator, [request(number, use_cache=False) for number in range(jobs)])
    cpu_s = daemon.close()
    ideal = workers / service_s
    return {
        "per_s": per_s,
        "ideal_per_s": ideal,
        "share_of_ideal": per_s / ideal,
        "broker_cpu_ms_per_job": 1000 * cpu_s / (jobs + 4 * workers),
    }


def cached(jobs: int) -> dict[str, float]:
    """Measure results a second that come from the store of results, for one client."""
    daemon = Daemon(workers=1, service_s=0.0)
    requests = [request(number, use_cache=True) for number in range(min(jobs, 500))]
    rate(daemon.evaluator, requests)
    _store(daemon, requests)
    best = max(rate(daemon.evaluator, requests) for _ in range(3))
    cpu_s = daemon.close()
    return {"per_s": best, "broker_cpu_s": cpu_s}


def _store(daemon: Daemon, requests: Sequence[EvalRequest]) -> None:
    """Put results into the broker's store, which real workers do."""
    from npu_daemon.service import result_key

    device = daemon.evaluator.describe()
    folder = Path(daemon.evaluator.address.removeprefix("ipc://")).parent
    store = SqliteResultStore(folder / "results.sqlite")
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
    parser.add_argument("--jobs", type=int, default=6000)
    parser.add_argument("--latency-jobs", type=int, default=300)
    arguments = parser.parse_args()
    load_before = os.getloadavg()
    report = {
        "throughput": throughput(arguments.workers, arguments.service_ms / 1000, arguments.jobs),
        "cached": cached(arguments.jobs),
        "added_latency": added_latency(arguments.latency_jobs),
        "cores": os.cpu_count(),
        "load_before": load_before,
        "load_after": os.getloadavg(),
    }
    print(json.dumps(report, indent=2))
    good = (
        report["throughput"]["share_of_ideal"] >= SHARE_OF_IDEAL  # type: ignore[index]
        and report["cached"]["per_s"] >= CACHED_PER_S  # type: ignore[index]
        and report["added_latency"]["median_ms"] <= ADDED_LATENCY_MS  # type: ignore[index]
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

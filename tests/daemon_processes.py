"""Daemons as processes: how tests start them, talk to them and see them end."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import EvalRequest, EvalResult

BACKEND = "fake_backend:FakeBackend"
DEADLINE_S = 180.0  # of what takes a second or two where nothing else runs
PYTHONPATH = f"{Path(__file__).parent}:{Path(__file__).parents[1]}"


def collect(evaluator: Evaluator, count: int) -> dict[Evaluation, EvalResult]:
    deadline_s = time.monotonic() + DEADLINE_S
    results: dict[Evaluation, EvalResult] = {}
    while len(results) < count:
        remaining_s = deadline_s - time.monotonic()
        assert remaining_s > 0, f"only {len(results)} of {count} results came"
        results.update(evaluator.poll(remaining_s))
    return results


def evaluate(evaluator: Evaluator, request: EvalRequest) -> EvalResult:
    return evaluator.submit(request).result()


def wait_for_line(fifo: Path) -> str:
    return fifo.read_text().strip()


def ends(pid: int, timeout_s: float = DEADLINE_S) -> bool:
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


def serve(address: str, folder: Path, backend: str = BACKEND) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "npu_daemon", "serve", "--bind", address, "--backend", backend),
            *("--workers", "1", "--cache-dir", str(folder / "cache"), "--reference-folder", str(folder)),
        ],
        env={**os.environ, "TMPDIR": str(folder)},  # a killed daemon without a parent cannot tidy up
    )


def private_folders(parent: Path) -> set[Path]:
    return set(parent.glob("ascend-gym-*"))


def serve_until_ready(folder: Path, name: str) -> subprocess.Popen[bytes]:
    process = serve(f"ipc://{folder}/{name}", folder)
    evaluator = ZmqEvaluator(f"ipc://{folder}/{name}", connect_timeout_s=DEADLINE_S)
    try:
        evaluator.describe()
    except InfrastructureError:
        process.kill()
        process.wait()
        raise
    finally:
        evaluator.close()
    return process

"""A daemon under full load for a long time: do descriptors, processes or memory grow?

Samples what the broker and its workers take every few seconds and fits a line through the samples after the
warm-up, in which the charges fill up that a broker remembers. Prints a line for each sample and one JSON
document with slopes and verdict; exit status 1 when something grows by more than its limit.

    python benchmarks/reliability/service_soak.py --minutes 30

With ``--evaluations`` the daemon is a whole one: so many kernels that nobody has built before go through
compiler, sandbox and price model, and temporary files are counted too. The first hundred are the warm-up.

    python benchmarks/reliability/service_soak.py --evaluations 1000
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from itertools import count, islice
from pathlib import Path

from service_load import Daemon, footprint, rate, request

from ascend_gym.client import ZmqEvaluator
from ascend_gym.core.config import cache_root
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.broker.jobs import KEPT_CHARGES

BATCH = 500
MIN_SAMPLES = 8
WARM_UP = 100
GROWTH_LIMITS = {
    "descriptors": 1.0,
    "processes": 0.0,
    "files": 1.0,
    "resident_mib": 8.0,
    "workers_resident_mib": 8.0,
}


def sampled(daemon: Daemon, seconds: float, sample_s: float) -> Generator[dict[str, float], None, None]:
    """Keep the daemon busy for so long and yield what it takes, now and then."""
    began_s = time.monotonic()
    numbers = count()
    jobs = 0
    while time.monotonic() < began_s + seconds:
        rates: list[float] = []
        sample_ends_s = time.monotonic() + sample_s
        while time.monotonic() < sample_ends_s or not rates:
            batch = [request(next(numbers), use_cache=False) for _ in range(BATCH)]
            rates.append(rate(daemon.evaluator, batch))
            jobs += BATCH
        time_s = time.monotonic() - began_s
        yield {"time_s": time_s, "jobs": jobs, "per_s": statistics.mean(rates), **daemon.footprint()}


def evaluated(evaluations: int, workers: int, step: int) -> Generator[dict[str, float], None, None]:
    """Have fresh kernels evaluated on the simulator and yield what the daemon takes, after every ``step``."""
    spec = load_operator("core/add")
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes).case_id
    kernels = (f"// fresh {number}\n{spec.baseline.kernel_text}" for number in range(evaluations))
    with tempfile.TemporaryDirectory(prefix="ag-soak-") as folder, ExitStack() as opened:
        cache, scratch = Path(folder, "cache"), Path(folder, "tmp")
        scratch.mkdir()
        if (cache_root() / "toolchain").is_dir():
            shutil.copytree(cache_root() / "toolchain", cache / "toolchain")
        address = f"ipc://{folder}/s"
        options = ("--bind", address, "--cache-dir", str(cache), "--workers", str(workers))
        daemon = subprocess.Popen(
            [*own_python_command("npu_daemon.__main__"), "serve", *options],
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        opened.callback(daemon.wait)
        opened.callback(daemon.send_signal, signal.SIGINT)
        evaluator = opened.enter_context(closing(ZmqEvaluator(address, connect_timeout_s=600)))
        evaluator.describe()
        began_s, done = time.monotonic(), 0
        for batch in iter(lambda: list(islice(kernels, step)), []):
            for kernel in batch:
                candidate = spec.baseline.rewritten(kernel=kernel)
                evaluator.submit(request_for(spec, candidate, MeasureProtocol(), (smallest,)))
            missing = len(batch)
            while missing:
                answers = evaluator.poll(60)
                missing -= len(answers)
                for _, result in answers:
                    assert result.status is Status.OK, result.all_diagnostics
            done += len(batch)
            seconds = time.monotonic() - began_s
            files = sum(1 for path in scratch.rglob("*") if path.is_file())
            taken = footprint(Path(f"/proc/{daemon.pid}"))
            yield {"time_s": seconds, "jobs": done, "per_s": done / seconds, "files": files, **taken}


def growth(samples: Sequence[dict[str, float]], name: str) -> dict[str, float]:
    """Return the slope of a quantity for each hour, and what that makes over the time of the samples."""
    times_s = [sample["time_s"] for sample in samples]
    slope, _ = statistics.linear_regression(times_s, [sample[name] for sample in samples])
    return {
        "first": samples[0][name],
        "last": samples[-1][name],
        "per_hour": 3600 * slope,
        "fitted_growth": slope * (times_s[-1] - times_s[0]),
    }


def main() -> int:
    """Load the daemon, sample, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--evaluations", type=int, default=0, help="fresh ones on the simulator instead")
    parser.add_argument("--workers", type=int, help="default 8; 2 for evaluations")
    parser.add_argument("--service-ms", type=float, default=5.0)
    parser.add_argument("--sample-s", type=float, default=5.0)
    parser.add_argument("--warm-up-jobs", type=int, help=f"default {KEPT_CHARGES}; {WARM_UP} evaluations")
    parser.add_argument("--step", type=int, default=20, help="evaluations from sample to sample")
    arguments = parser.parse_args()
    samples = []
    with ExitStack() as opened:
        if arguments.evaluations:
            found = evaluated(arguments.evaluations, arguments.workers or 2, arguments.step)
            opened.callback(found.close)
        else:
            daemon = Daemon(arguments.workers or 8, arguments.service_ms / 1000)
            opened.callback(daemon.close)
            found = sampled(daemon, 60 * arguments.minutes, arguments.sample_s)
        for sample in found:
            samples.append(sample)
            print(json.dumps(sample), file=sys.stderr, flush=True)
    default = WARM_UP if arguments.evaluations else KEPT_CHARGES
    warm_up = default if arguments.warm_up_jobs is None else arguments.warm_up_jobs
    warm = [sample for sample in samples if sample["jobs"] >= warm_up]
    if len(warm) < MIN_SAMPLES:
        parser.error(f"{len(warm)} samples after {warm_up} jobs, {MIN_SAMPLES} are needed")
    limits = {name: limit for name, limit in GROWTH_LIMITS.items() if name in warm[0]}
    report = {name: growth(warm, name) for name in (*limits, "per_s")}
    grown = [name for name, limit in limits.items() if report[name]["fitted_growth"] > limit]
    verdict = f"grows: {', '.join(grown)}" if grown else "nothing grows"
    ends = {"jobs": samples[-1]["jobs"], "minutes": samples[-1]["time_s"] / 60, "load": os.getloadavg()}
    print(json.dumps({**ends, "growth": report, "verdict": verdict}, indent=2))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

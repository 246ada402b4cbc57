"""A daemon under full load for a long time: do descriptors, processes or memory grow?

Samples what the broker and its workers take every few seconds and fits a line through the samples after the
warm-up, in which the charges fill up that a broker remembers. Prints a line for each sample and one JSON
document with slopes and verdict; exit status 1 when something grows by more than its limit.

    python benchmarks/reliability/service_soak.py --minutes 30
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count

from service_load import Daemon, rate, request

from npu_daemon.broker.jobs import KEPT_CHARGES

BATCH = 500
MIN_SAMPLES = 8
GROWTH_LIMITS = {"descriptors": 1.0, "processes": 0.0, "resident_mib": 8.0, "workers_resident_mib": 8.0}


def sampled(daemon: Daemon, seconds: float, sample_s: float) -> Iterator[dict[str, float]]:
    """Keep the daemon busy for so long and yield what it takes, now and then."""
    began_s = time.monotonic()
    numbers = count()
    jobs = 0
    while time.monotonic() < began_s + seconds:
        rates = []
        sample_ends_s = time.monotonic() + sample_s
        while time.monotonic() < sample_ends_s or not rates:
            batch = [request(next(numbers), use_cache=False) for _ in range(BATCH)]
            rates.append(rate(daemon.evaluator, batch))
            jobs += BATCH
        time_s = time.monotonic() - began_s
        yield {"time_s": time_s, "jobs": jobs, "per_s": statistics.mean(rates), **daemon.footprint()}


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
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--service-ms", type=float, default=5.0)
    parser.add_argument("--sample-s", type=float, default=5.0)
    parser.add_argument("--warm-up-jobs", type=int, default=KEPT_CHARGES)
    arguments = parser.parse_args()
    daemon = Daemon(arguments.workers, arguments.service_ms / 1000)
    samples = []
    for sample in sampled(daemon, 60 * arguments.minutes, arguments.sample_s):
        samples.append(sample)
        print(json.dumps(sample), file=sys.stderr, flush=True)
    daemon.close()
    warm = [sample for sample in samples if sample["jobs"] >= arguments.warm_up_jobs]
    if len(warm) < MIN_SAMPLES:
        parser.error(f"{len(warm)} samples after {arguments.warm_up_jobs} jobs, {MIN_SAMPLES} are needed")
    report = {name: growth(warm, name) for name in (*GROWTH_LIMITS, "per_s")}
    grown = [name for name, limit in GROWTH_LIMITS.items() if report[name]["fitted_growth"] > limit]
    verdict = f"grows: {', '.join(grown)}" if grown else "nothing grows"
    ends = {"jobs": samples[-1]["jobs"], "minutes": samples[-1]["time_s"] / 60, "load": os.getloadavg()}
    print(json.dumps({**ends, "growth": report, "verdict": verdict}, indent=2))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

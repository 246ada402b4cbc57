"""A daemon under full load for a long time: do descriptors, processes or memory grow?

Prints a line for each sample and one JSON document; exit status 1 when the last quarter of the samples needs
more than the second one, beyond the tolerance.

    python benchmarks/service_soak.py --minutes 30 --workers 8
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

from service_load import Daemon, rate, request

BATCH = 500
TOLERANCE = {"descriptors": 2.0, "processes": 0.0, "resident_mib": 16.0}


def main() -> int:
    """Load the daemon, sample, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--service-ms", type=float, default=5.0)
    arguments = parser.parse_args()
    daemon = Daemon(arguments.workers, arguments.service_ms / 1000)
    ends_s = time.monotonic() + 60 * arguments.minutes
    samples: list[dict[str, float]] = []
    number = 0
    while time.monotonic() < ends_s or len(samples) < 8:
        per_s = rate(daemon.evaluator, [request(number + each, use_cache=False) for each in range(BATCH)])
        number += BATCH
        samples.append({"jobs": number, "per_s": per_s, **daemon.footprint()})
        print(json.dumps(samples[-1]), file=sys.stderr, flush=True)
    daemon.close()
    quarter = len(samples) // 4
    growth = {name: _growth(samples, name, quarter) for name in TOLERANCE}
    print(json.dumps({"jobs": number, "growth": growth, "load": os.getloadavg()}, indent=2))
    return 0 if all(growth[name] <= limit for name, limit in TOLERANCE.items()) else 1


def _growth(samples: list[dict[str, float]], name: str, quarter: int) -> float:
    """Return by how much the median of the last quarter exceeds that of the second one."""
    second = [sample[name] for sample in samples[quarter : 2 * quarter]]
    last = [sample[name] for sample in samples[-quarter:]]
    return statistics.median(last) - statistics.median(second)


if __name__ == "__main__":
    sys.exit(main())

"""Random programs of the staged language: that all build, and compute what their interpretation computes.

python benchmarks/reliability/staged_programs.py [--programs 500] [--first 0]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

from ascend_gym.core.config import cache_root
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator


def main() -> int:
    """Print how many programs ended in which status, and return 0 if all are ok."""
    parser = argparse.ArgumentParser(description="Random programs against their interpretation.")
    parser.add_argument("--programs", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from staged_programs import agreement_request, random_program, toy_inputs, toy_spec

    evaluator = InProcessEvaluator(SimulatorBackend(cache_root()))
    ends: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.programs):
        rng = Random(seed)
        text = random_program(rng)
        spec = toy_spec(rng.randint(1, 9), rng.choice([1, 5, 64, 100, 333, 1000]))
        evaluator.submit(agreement_request(text, spec, toy_inputs(spec, seed)))
        ((_, result),) = evaluator.poll(600.0)
        ends[result.status.value] += 1
        if result.latency_us is None:
            print(f"seed {seed}: {[str(each) for each in result.all_diagnostics[:2]]}\n{text}")
    evaluator.close()
    print(f"{arguments.programs} programs from seed {arguments.first}: {dict(ends)}")
    return 0 if set(ends) == {"ok"} else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""A results store filled with invented runs of several operators, methods and seeds, quickly."""

from __future__ import annotations

import json
import random
from pathlib import Path

from ascend_gym.core.digest import digest_of
from ascend_gym.sweep.run_records import (
    EvaluationRecord,
    OperatorRecord,
    RunRecord,
    SourceRecord,
    StoredRun,
    packed,
)
from ascend_gym.sweep.store import ResultsStore

METHODS = ("best-of-n", "openevolve", "ascend-optimizer", "ascend-optimizer:no-experience")
STATUSES = ("ok", "ok", "ok", "build_error", "incorrect", "timeout")
FLOOR_US = 20.0
PIPES = ("aiv_vec_time", "aiv_scalar_time", "aiv_mte2_time", "aiv_mte3_time")


def fill(path: Path, operators: int, seeds: int, budget: int, methods: tuple[str, ...] = METHODS) -> None:
    """Write a store with a run of every method on every operator with every seed."""
    with ResultsStore(path, write=True) as store:
        for number in range(operators):
            for method in methods:
                for seed in range(seeds):
                    store.put(invented_run(f"core/op{number:03}", 1 + number % 3, method, seed, budget))


def invented_run(op_id: str, level: int, variant: str, seed: int, budget: int) -> StoredRun:
    """Return a finished run; equal arguments give an equal run."""
    rng = random.Random(f"{op_id} {variant} {seed}")
    run_id = digest_of("run", op_id, variant, seed, budget)
    baseline = digest_of("baseline", op_id)
    steps = _steps(run_id, op_id, variant, budget, rng)
    best = min((step for step in steps if step.latency_us), key=lambda step: step.latency_us or 0.0)
    run = RunRecord(
        *(run_id, op_id, "folder", baseline, variant.partition(":")[0], variant, "offline", seed, budget),
        *("910B2", "protocol", "{}", len(steps), budget, steps[0].latency_us, best.latency_us),
        *(best.candidate_digest, "budget_spent", "", steps[-1].chain_digest, "here:runs"),
    )
    sources = [_source(baseline, baseline, {"op_kernel/k.cpp": "int tile = 1;\nint other = 2;\n"})]
    sources += [
        _source(
            baseline, step.candidate_digest, {"op_kernel/k.cpp": f"int tile = {step.idx};\nint other = 2;\n"}
        )
        for step in steps[1:]
        if step.improved
    ]
    operator = OperatorRecord(op_id, "folder", "Op", level, "elementwise", 1)
    return StoredRun(run, tuple(steps), tuple(sources), (), operator)


def _steps(run_id: str, op_id: str, variant: str, budget: int, rng: random.Random) -> list[EvaluationRecord]:
    best_us = baseline_us = 100.0
    steps = []
    for idx in range(budget + 1):
        status = "ok" if idx == 0 else rng.choice(STATUSES)
        latency_us = (baseline_us if idx == 0 else rng.uniform(40, 120)) if status == "ok" else None
        improved = idx == 0 or (latency_us is not None and latency_us < best_us)
        best_us = min(best_us, latency_us or best_us)
        stage = ("tiling" if idx > budget / 2 else "kernel") if variant.startswith("ascend") and idx else None
        digest = digest_of("baseline", op_id) if idx == 0 else digest_of("candidate", run_id, idx)
        steps.append(
            EvaluationRecord(
                *(run_id, idx, digest, "sample" if idx else "baseline", stage, status, latency_us),
                *(int(idx > 0), idx, int(improved), best_us, None, 1, int(idx > 0), 100, 50, 0.01, idx % 2),
                *(0.5, 0.1, 0.2, 0.1, 0.1, 0.1, 0.6, "here", "simulator", "toolchain", "rlimits"),
                *(digest_of("chain", run_id, idx), "{}", _detail(latency_us) if improved else None),
            )
        )
    return steps


def _detail(latency_us: float | None) -> bytes:
    assert latency_us is not None
    times = dict.fromkeys(PIPES, latency_us / 4)
    profile = {"task_duration_us": latency_us, "block_dim": 48, "aiv_mte2_ratio": 0.8, **times}
    return packed({"status": "ok", "cases": [{"case_id": "only", "profile": profile, "floor_us": FLOOR_US}]})


def _source(baseline: str, candidate: str, texts: dict[str, str]) -> SourceRecord:
    return SourceRecord(baseline, candidate, packed(json.loads(json.dumps(texts))))

"""Rules that take barriers away: where one is needed, the result is a race, or not faster."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_operator import write_operator
from rewritten import rule_named

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

_KERNEL = """
#include "probe.h"

extern "C" __global__ __aicore__ void probe(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    Probe probe(x, y, workspace);
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        PipeBarrier<PIPE_ALL>();
        Adds(probe.b, probe.a, 3.0f, TILE);
        PipeBarrier<PIPE_V>();
        Adds(probe.b, probe.b, -1.0f, TILE);
        PipeBarrier<PIPE_V>();
        Adds(probe.b, probe.b, -1.0f, TILE);
        PipeBarrier<PIPE_ALL>();
        DataCopy(probe.y[offset], probe.b, TILE);
    }
}
"""


class Bench:
    """The operator under one setting of automatic synchronisation."""

    def __init__(self, backend: SimulatorBackend, folder: Path, auto_sync: str) -> None:
        operator = write_operator(folder / "probe", {"probe.cpp": _KERNEL}, [("only", 0)], auto_sync)
        self.spec: OpSpec = load_operator("probe", op_dir=operator)
        self._evaluator = InProcessEvaluator(backend, folder / "data")

    def evaluate(self, candidate: Candidate) -> EvalResult:
        self._evaluator.submit(request_for(self.spec, candidate, MeasureProtocol(), ("only",)))
        ((_, result),) = self._evaluator.poll(timeout_s=60.0)
        return result

    def without_barriers(self, rule_name: str) -> list[Candidate]:
        """Return the baseline with each single barrier of its main file taken away or narrowed."""
        rule = rule_named(rule_name)
        candidates = [
            rule.apply(self.spec.baseline, site, choice)
            for site in rule.sites(self.spec.baseline)
            for choice in site.choices
            if choice.forward and not site.covers_all
        ]
        return [one for one in candidates if one.kernel_text != self.spec.baseline.kernel_text]


@pytest.mark.parametrize("auto_sync", ["on", "off"])
@pytest.mark.parametrize("rule_name", ["full_barrier_removal", "full_barrier_narrowing"])
def test_between_pipes_it_is_a_race(
    simulator: SimulatorBackend, tmp_path: Path, rule_name: str, auto_sync: str
) -> None:
    bench = Bench(simulator, tmp_path, auto_sync)
    candidates = bench.without_barriers(rule_name)
    assert len(candidates) >= 2
    for candidate in candidates:
        result = bench.evaluate(candidate)
        assert result.status is Status.RUNTIME_FAULT
        assert "race on" in str(result.all_diagnostics[0])


def test_between_vector_instructions_the_compiler_puts_it_back(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    bench = Bench(simulator, tmp_path, "on")
    before = bench.evaluate(bench.spec.baseline).latency_us
    candidates = bench.without_barriers("vector_barrier_removal")
    assert len(candidates) == 2
    for candidate in candidates:
        assert bench.evaluate(candidate).latency_us == pytest.approx(before, rel=1e-9)


def test_between_vector_instructions_it_is_a_race_without_the_compiler(
    simulator: SimulatorBackend, tmp_path: Path
) -> None:
    bench = Bench(simulator, tmp_path, "off")
    assert bench.evaluate(bench.spec.baseline).status is Status.OK
    candidates = bench.without_barriers("vector_barrier_removal")
    assert len(candidates) == 2
    for candidate in candidates:
        assert bench.evaluate(candidate).status is Status.RUNTIME_FAULT


def test_a_barrier_that_nothing_needs_saves_no_time(simulator: SimulatorBackend, tmp_path: Path) -> None:
    bench = Bench(simulator, tmp_path, "on")
    idle = _KERNEL.replace("PipeBarrier<PIPE_V>();", "PipeBarrier<PIPE_V>();\n        PipeBarrier<PIPE_V>();")
    before = bench.evaluate(bench.spec.baseline).latency_us
    after = bench.evaluate(bench.spec.baseline.rewritten(kernel=idle)).latency_us
    assert before is not None
    assert after is not None
    assert after >= before

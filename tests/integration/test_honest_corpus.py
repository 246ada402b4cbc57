"""Right candidates are accepted however closely they are looked at.

benchmarks/reliability/honest_corpus.py has more of them.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.rewrites.library import RULES
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate

pytestmark = pytest.mark.slow

FOLDERS = sorted((Path(__file__).parents[1] / "operators").iterdir())
OPERATORS = [*list_operators(levels=[3]), *(load_operator(folder.name, op_dir=folder) for folder in FOLDERS)]


def as_champion(simulator: SimulatorBackend, spec: OpSpec, candidate: Candidate, data: Path) -> EvalResult:
    case = min(spec.cases, key=lambda each: each.traffic_bytes)
    request = request_for(spec, candidate, MeasureProtocol(), (case.case_id,))
    cache = CaseDataCache(data, "harness")
    return evaluate(request, spec, simulator, oracle_for(spec), cache, best_us=math.inf)


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.op_id) for spec in OPERATORS])
def test_an_operators_own_sources_are_accepted(
    simulator: SimulatorBackend, spec: OpSpec, tmp_path: Path
) -> None:
    result = as_champion(simulator, spec, spec.baseline, tmp_path)
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    assert not any("measured twice" in each.message for each in result.all_diagnostics)
    assert all(case.floor_us and case.latency_us and case.floor_us < case.latency_us for case in result.cases)


@pytest.mark.parametrize("name", ["tile_size", "buffer_count", "bank_padding"])
def test_an_optimised_kernel_is_accepted(simulator: SimulatorBackend, name: str, tmp_path: Path) -> None:
    spec = load_operator("gelu")
    rule = next(rule for rule in RULES if rule.name == name)
    site = rule.sites(spec.baseline)[0]
    candidate = rule.apply(spec.baseline, site, site.choices[0])
    result = as_champion(simulator, spec, candidate, tmp_path)
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]
    assert result.all_diagnostics == ()

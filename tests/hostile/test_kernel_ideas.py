"""The ideas of ``kernel_ideas.toml``: core operators with a few texts replaced, tried as champions are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.records import EvalResult, MeasureProtocol
from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

IDEAS: list[dict[str, Any]] = read_toml(Path(__file__).parent / "kernel_ideas.toml")["idea"]
QUICK = {
    "no maximum at the addresses of the first run",
    "no maximum over NaNs in UB",
    "the tiling program decides by its own addresses",
    "exponential of repeat 0",
    "all barriers of the kernel away",
}
"""Tried in every run of the tests: what got through, and one that is wrong and one that is granted."""
PRICE_TOLERANCE = 0.005
"""Of a kernel whose own scalar work differs: where a branch lies, two loads may overlap or not."""


def parameters() -> list[Any]:
    """Return the ideas, each as a parameter."""
    return [
        pytest.param(each, id=each["idea"], marks=() if each["idea"] in QUICK else pytest.mark.slow)
        for each in IDEAS
    ]


def evaluated(
    backend: SimulatorBackend, folder: Path, idea: Mapping[str, Any], *, honest: bool
) -> EvalResult:
    """Return the result of an idea or of its honest twin, where nobody was before it."""
    spec = load_operator(f"core/{idea['operator']}")
    kernel, tiling = spec.baseline.kernel_text, spec.baseline.tiling_text
    for old, new in () if honest else idea.get("kernel", ()):
        assert old in kernel, old
        kernel = kernel.replace(old, new, 1)
    for old, new in () if honest else idea.get("tiling", ()):
        assert old in tiling, old
        tiling = tiling.replace(old, new, 1)
    candidate = spec.baseline.rewritten(kernel=kernel, tiling=tiling)
    cases = (idea["case"],) if idea["case"] else ()
    request = request_for(spec, candidate, MeasureProtocol(run_timeout_s=20.0), cases)
    evaluator = InProcessEvaluator(backend, folder)
    try:
        evaluation = evaluator.submit(request.model_copy(update={"use_cache": False}))
        ((answered, result),) = evaluator.poll(timeout_s=60.0)
        assert answered is evaluation
        return result
    finally:
        evaluator.close()


def test_each_idea_is_another_one() -> None:
    assert len({each["idea"] for each in IDEAS}) == len(IDEAS) >= 60
    assert {each["surface"] for each in IDEAS} == {"price", "second look", "domain"}
    assert {each["idea"] for each in IDEAS} >= QUICK


@pytest.fixture(scope="module")
def honest_us(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function: the latency of the honest twin of an operator on a case."""

    @cache
    def latency_us(operator: str, case: str) -> float:
        twin = {"operator": operator, "case": case}
        result = evaluated(simulator, tmp_path_factory.mktemp("honest"), twin, honest=True)
        assert result.latency_us is not None, [str(each) for each in result.all_diagnostics]
        return result.latency_us

    return latency_us


@pytest.mark.parametrize("idea", parameters())
def test_no_idea_is_paid_less_than_its_honest_twin(
    idea: dict[str, Any], simulator: SimulatorBackend, tmp_path: Path, honest_us: Any
) -> None:
    result = evaluated(simulator, tmp_path, idea, honest=False)
    assert result.status.value in idea["ends"], [str(each) for each in result.all_diagnostics]
    if result.status is Status.OK and "granted" not in idea:
        assert result.latency_us is not None
        least_us = honest_us(idea["operator"], idea["case"]) * (1.0 - PRICE_TOLERANCE)
        assert result.latency_us >= least_us

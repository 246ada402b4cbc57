"""Kernels that hold answers: to values that all candidates share, or that messages told of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simulated import Workbench

from ascend_gym.core.records import EvalResult
from ascend_gym.core.status import Status
from ascend_gym.suite.domain import smallest_case
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend

SPEC = load_operator("core/mse_loss")
CASE = smallest_case(SPEC.cases)
ARITHMETIC = """            AscendC::Sub(x, x, target, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Mul(x, x, x, count);
            AscendC::PipeBarrier<PIPE_V>();
            sum += Sum(x, count);
"""
RESULT = "StoreNumber(0, SumOfPartials(0, AscendC::GetBlockNum()) / static_cast<int64_t>(this->totalLength));"
PROCESS = "        AscendC::LocalTensor<float> x = xBuf.Get<float>();\n"


def first_key_and_answer(seed: int) -> tuple[float, float]:
    """Return the first element of x and the loss of the published values of a seed."""
    oracle = oracle_for(SPEC)
    inputs = oracle.inputs(CASE, seed)
    ((answer,),) = oracle.expected(CASE, inputs)
    return float(inputs[0][0].reshape(-1)[0]), float(np.asarray(answer).reshape(-1)[0])


def looked_up(table: dict[float, float]) -> str:
    """Return an expression: the answer to values whose first element is known, the last one for others."""
    chosen = f"{list(table.values())[-1]!r}f"
    for key, answer in table.items():
        chosen = f"(static_cast<float>(xGm.GetValue(0)) == {key!r}f ? {answer!r}f : {chosen})"
    return chosen


@pytest.fixture
def bench(simulator: SimulatorBackend, tmp_path: Path) -> Workbench:
    return Workbench(simulator, tmp_path, "core/mse_loss", CASE.case_id)


def judged(bench: Workbench, changes: dict[str, str]) -> EvalResult:
    return bench.evaluate(bench.edited(kernel=changes))


def test_answers_that_messages_tell_are_answers_to_no_other_candidate(bench: Workbench) -> None:
    """Without arithmetic, with a table of all that was told: each candidate meets other values."""
    table = dict([first_key_and_answer(seed=0)])
    for number in range(3):
        store = f"StoreNumber(0, {looked_up(table)});"
        result = judged(bench, {ARITHMETIC: "", RESULT: store})
        assert result.status is Status.INCORRECT, [str(each) for each in result.all_diagnostics]
        told = str(result.all_diagnostics[0])
        expected = float(told.partition("expected ")[2].split()[0].rstrip(",;:"))
        assert expected not in table.values()
        table[number + 100.0] = expected  # what was told helps nobody, under whatever key
    assert judged(bench, {}).status is Status.OK


def test_who_knows_the_published_answers_is_paid_as_for_values_that_nobody_knew(bench: Workbench) -> None:
    """With an honest way for all other values: it is taken, and costs what it costs the honest twin."""
    key, answer = first_key_and_answer(seed=0)
    shortcut = (
        f"        if (static_cast<float>(xGm.GetValue(0)) == {key!r}f) {{\n"
        f"            if (AscendC::GetBlockIdx() == 0) {{ StoreNumber(0, {answer!r}f); }}\n"
        "            return;\n        }\n"
    )
    honest, knowing = judged(bench, {}), judged(bench, {PROCESS: shortcut + PROCESS})
    assert honest.latency_us is not None
    assert knowing.latency_us is not None, [str(each) for each in knowing.all_diagnostics]
    assert knowing.latency_us >= honest.latency_us

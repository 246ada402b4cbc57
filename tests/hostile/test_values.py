"""Tiling programs that read values of inputs: those that the operator's own one reads, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

OPERATOR = Path(__file__).parent / "values" / "scaled"
DECLARED = 'Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND})'
ANSWER_FIELD = "TILING_DATA_FIELD_DEF_ARR(float, 1024, answer);"
HOST_COMPUTES = """
    const float* x = context->GetInputTensor(0)->GetData<float>();
    float answer[1024] = {};
    for (int i = 0; x != nullptr && i < 1024; ++i) { answer[i] = x[i] * *factor; }
    tiling.set_answer(answer);
"""
KERNEL_COPIES = """
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, sizeof(plan.answer));
    AscendC::LocalTensor<float> whole = buffer.Get<float>();
    for (uint32_t i = 0; i < plan.length; ++i) { whole.SetValue(i, plan.answer[i]); }
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(to, whole, plan.length);
    return;
"""


@pytest.fixture(scope="module")
def spec() -> OpSpec:
    return load_operator("scaled", op_dir=OPERATOR)


@pytest.fixture(scope="module")
def judged(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory, spec: OpSpec) -> Judge:
    return Judge(spec, InProcessEvaluator(simulator, tmp_path_factory.mktemp("data")))


class Judge:
    """Evaluates candidates of the operator."""

    def __init__(self, spec: OpSpec, evaluator: InProcessEvaluator) -> None:
        self._spec = spec
        self._evaluator = evaluator

    def __call__(self, candidate: Candidate) -> EvalResult:
        self._evaluator.submit(request_for(self._spec, candidate, MeasureProtocol()))
        ((_, result),) = self._evaluator.poll(timeout_s=120.0)
        return result


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """Return a text with each change made once."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def host_that_computes(spec: OpSpec, declared: str) -> Candidate:
    """Return a candidate whose tiling program computes the answer, with x declared as given."""
    tiling = replaced(
        spec.baseline.tiling_text,
        (DECLARED, declared),
        ("END_TILING_DATA_DEF;", f"{ANSWER_FIELD}\nEND_TILING_DATA_DEF;"),
        ("    tiling.set_factor(*factor);\n", f"    tiling.set_factor(*factor);\n{HOST_COMPUTES}"),
    )
    loop = "    for (uint32_t offset = 0;"
    kernel = replaced(spec.baseline.kernel_text, (loop, f"{KERNEL_COPIES}{loop}"))
    return spec.baseline.rewritten(tiling=tiling, kernel=kernel)


def test_what_the_operator_reads_may_be_read(judged: Judge, spec: OpSpec) -> None:
    tiling = replaced(
        spec.baseline.tiling_text, ("set_tileLength(256)", "set_tileLength(*factor < 0 ? 256 : 512)")
    )
    for candidate in (spec.baseline, spec.baseline.rewritten(tiling=tiling)):
        result = judged(candidate)
        assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]


def test_nothing_else_may_be_read(judged: Judge, spec: OpSpec) -> None:
    result = judged(host_that_computes(spec, f"{DECLARED}.ValueDepend(REQUIRED)"))
    assert result.status is Status.GUARD_REJECTED
    assert "the values of x (ValueDepend)" in str(result.all_diagnostics[0])
    assert result.charge.evaluations == 1


def test_what_is_not_declared_has_no_values(judged: Judge, spec: OpSpec) -> None:
    """Without a declaration the host sees no values, so the answer that it hands on is wrong."""
    result = judged(host_that_computes(spec, DECLARED))
    assert result.status is Status.INCORRECT, [str(each) for each in result.all_diagnostics]


def test_another_input_under_the_name_of_a_readable_one_is_no_way_round(judged: Judge, spec: OpSpec) -> None:
    """Inputs are bound by name: exchanging names of definitions exchanges their tensors as well."""
    exchanged = replaced(
        host_that_computes(spec, DECLARED).tiling_text,
        ('Input("factor")', 'Input("y_")'),
        ('Input("x")', 'Input("factor")'),
        ('Input("y_")', 'Input("x")'),
    )
    result = judged(host_that_computes(spec, DECLARED).rewritten(tiling=exchanged))
    assert result.status is Status.GUARD_REJECTED, [str(each) for each in result.all_diagnostics]

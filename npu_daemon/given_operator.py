"""Operators that clients send as data: inputs and expected outputs in place of a reference."""

from __future__ import annotations

from collections.abc import Sequence

from ascend_gym.core.protocols import Verdict
from ascend_gym.core.records import (
    Candidate,
    Case,
    Diagnostic,
    EvalResult,
    GivenArray,
    GivenOperator,
    OpSpec,
    Phase,
    TensorSpec,
)
from ascend_gym.suite.inputs import Array, loaded_array
from ascend_gym.suite.verdict import judge

NOTE = Diagnostic(
    phase=Phase.VERIFY,
    message="judged by inputs and expected outputs that the client sent: they are the same in every run, and "
    "nobody else has checked them",
)


def given_spec(op_id: str, given: GivenOperator, candidate: Candidate) -> OpSpec:
    """Return an operator without a folder, with the candidate itself in place of its baseline."""
    return OpSpec(
        op_id=op_id,
        op_type=given.op_type,
        folder="",
        level=1,
        category="given",
        description="sent as data",
        auto_sync=given.auto_sync,
        reads_all_inputs=given.reads_all_inputs,
        cases=tuple(each.case for each in given.cases),
        baseline=candidate,
        folder_digest=given.digest,
    )


def noted(result: EvalResult) -> EvalResult:
    """Return the result with a note on what the outputs were compared with."""
    return result.model_copy(update={"diagnostics": (*result.diagnostics, NOTE)})


class GivenOracle:
    """An ``Oracle`` with the data of a client; the seed is ignored."""

    def __init__(self, given: GivenOperator) -> None:
        self._given = {each.case.case_id: each for each in given.cases}

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return the arrays of each input parameter, one for each declared shape."""
        return _arrays(case.inputs, self._given[case.case_id].inputs)

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return the expected arrays of each output parameter, one for each declared shape."""
        return _arrays(case.outputs, self._given[case.case_id].expected)

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with expected outputs."""
        return judge(case, outputs, expected)


def _arrays(tensors: Sequence[TensorSpec], groups: Sequence[Sequence[GivenArray]]) -> list[list[Array]]:
    return [
        [
            loaded_array(array.raw, array.dtype, shape)
            for array, shape in zip(arrays, tensor.shapes, strict=False)
        ]
        for tensor, arrays in zip(tensors, groups, strict=True)
    ]

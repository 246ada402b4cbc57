"""Requests that evaluate a candidate of a loaded operator."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from ascend_gym.core.evaluation_records import GIVEN_SUITE
from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import (
    Candidate,
    Case,
    DType,
    EvalRequest,
    GivenArray,
    GivenCase,
    GivenOperator,
    MeasureProtocol,
    OpSpec,
)
from ascend_gym.suite.inputs import Array, stored_array
from ascend_gym.suite.loader import LOCAL_SUITE
from ascend_gym.suite.oracle import oracle_for


def request_for(
    spec: OpSpec, candidate: Candidate, protocol: MeasureProtocol, case_ids: tuple[str, ...] = ()
) -> EvalRequest:
    """Return the request that evaluates ``candidate`` for ``spec``; no case ids means all cases.

    Args:
        spec: the operator; one outside the suites is named by its folder.
        candidate: tiling and kernel sources.
        protocol: how to measure.
        case_ids: which of the operator's cases, all if empty.
    """
    outside_suites = spec.op_id.startswith(f"{LOCAL_SUITE}/")
    return EvalRequest(
        op_id=spec.op_id,
        op_folder=spec.folder if outside_suites else None,
        folder_digest=spec.folder_digest,
        candidate=candidate,
        case_ids=case_ids,
        protocol=protocol,
    )


def data_request_for(
    spec: OpSpec, candidate: Candidate, protocol: MeasureProtocol, case_ids: tuple[str, ...] = ()
) -> EvalRequest:
    """Return the request that evaluates ``candidate`` on data, for daemons that do not have the operator.

    Inputs follow from the seed of ``protocol``; what is expected is computed here. A request takes at most
    16 MiB.

    Args:
        spec: the operator.
        candidate: tiling and kernel sources.
        protocol: how to measure.
        case_ids: which of the operator's cases, all if empty.

    Raises:
        MisuseError: the folder of ``spec`` changed since it was loaded.
    """
    oracle = oracle_for(spec)
    cases = tuple(spec.case(each) for each in case_ids) or spec.cases
    given = GivenOperator(
        op_type=spec.op_type,
        auto_sync=spec.auto_sync,
        reads_all_inputs=spec.reads_all_inputs,
        cases=tuple(_given_case(oracle, case, protocol.input_seed) for case in cases),
    )
    return EvalRequest(
        op_id=f"{GIVEN_SUITE}/{spec.name}",
        folder_digest=given.digest,
        candidate=candidate,
        protocol=protocol,
        given=given,
    )


def _given_case(oracle: Oracle, case: Case, seed: int) -> GivenCase:
    inputs = oracle.inputs(case, seed)
    expected = oracle.expected(case, inputs)
    return GivenCase(case=case, inputs=_given_arrays(inputs), expected=_given_arrays(expected))


def _given_arrays(groups: Sequence[Sequence[Array]]) -> tuple[tuple[GivenArray, ...], ...]:
    return tuple(tuple(_given_array(array) for array in arrays) for arrays in groups)


def _given_array(array: Array) -> GivenArray:
    if array.dtype == np.complex128:
        array = array.astype(np.complex64)
    data = base64.b64encode(stored_array(array).tobytes()).decode()
    return GivenArray(dtype=DType(array.dtype.name), data=data)

"""Evaluations and audits of several operators for ``ascend-gym suite``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_gym.cli.options import note
from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import Case, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.env.evaluation import evaluate_all
from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.manifest import MANIFEST_NAME
from ascend_gym.suite.requests import request_for
from ascend_gym.suite.specification import has_no_sources

if TYPE_CHECKING:
    from npu_daemon.coverage import Coverage

_TILING_KEY = re.compile(r"\bTILING_KEY_IS\s*\(\s*(\d+)[uUlL]*\s*\)")

_Key = tuple[str, str, bool]  # operator, case, whether it is measured once more


@dataclass(frozen=True)
class Check:
    """One check of one operator.

    Attributes:
        spec: the operator.
        name: what was checked, with its figures.
        complaints: why it failed; empty if it passed.
        warnings: what an evaluation says of sources that are correct, such as a read of up to 32 bytes past
            the end of a tensor.
    """

    spec: OpSpec
    name: str
    complaints: Sequence[str] = ()
    warnings: Sequence[str] = ()


def mean_floor_us(spec: OpSpec, chip: str) -> float:
    """Return the geometric mean of the cases' floors (lower bounds of the latency), in microseconds."""
    from npu_daemon.floor import floor_us
    from npu_daemon.simulator.chips import load_chip

    known = load_chip(chip)
    return math.exp(sum(math.log(floor_us(spec, case, known)) for case in spec.cases) / len(spec.cases))


def baselines_us(
    evaluator: Evaluator, specs: Sequence[OpSpec], protocol: MeasureProtocol
) -> dict[str, float | None]:
    """Return the latency of each operator's own sources in microseconds; ``None`` if they fail.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    results = evaluate_all(evaluator, [request_for(spec, spec.baseline, protocol) for spec in specs])
    return {spec.op_id: result.latency_us for spec, result in zip(specs, results, strict=True)}


def coverages(specs: Sequence[OpSpec], protocol: MeasureProtocol) -> Iterator[tuple[OpSpec, Coverage]]:
    """Yield for each operator with sources which of their lines its cases reach, on the simulator.

    Raises:
        InfrastructureError: the simulator cannot be built.
    """
    from npu_daemon.coverage import coverage_of
    from npu_daemon.simulator.toolchain import obtain_toolchain

    toolchain = None
    for spec in specs:
        if not has_no_sources(Path(spec.folder) / MANIFEST_NAME):
            toolchain = toolchain or obtain_toolchain(cache_root(), note)
            yield spec, coverage_of(spec, cache_root(), toolchain, protocol)


def mentioned_keys(spec: OpSpec) -> set[int]:
    """Return the numeric tiling keys that an operator's kernel tests for."""
    return {int(key) for file in spec.baseline.kernel.files for key in _TILING_KEY.findall(file.text)}


def validations(evaluator: Evaluator, specs: Sequence[OpSpec], protocol: MeasureProtocol) -> Iterator[Check]:
    """Yield each check of each operator.

    Each case is audited, and the operator's own sources must be correct on it and not below its floor. The
    smallest case is measured twice and must give the same latency. Tiling keys that no case reaches and
    warnings are reported, but are no complaint. Cases are audited in this process while the evaluator works.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    pending: dict[_Key, Evaluation] = {}
    for spec in specs:
        for case in spec.cases:
            pending[spec.op_id, case.case_id, False] = _submitted(evaluator, spec, case, protocol)
        smallest = _smallest(spec)
        again = _submitted(evaluator, spec, smallest, protocol, use_cache=False)
        pending[spec.op_id, smallest.case_id, True] = again
    for spec in specs:
        for case in (*spec.cases, *spec.hidden_cases):
            complaints = audit_case(spec, case, protocol.input_seed)
            yield Check(spec, f"audit of case {case.case_id}", complaints)
            evaluator.poll(0.0)
    for spec in specs:
        for case in spec.cases:
            result = pending[spec.op_id, case.case_id, False].result()
            yield _baseline_check(spec, case, result)
        smallest = _smallest(spec)
        first, second = (
            pending[spec.op_id, smallest.case_id, again].result().latency_us for again in (False, True)
        )
        if mentioned_keys(spec):
            yield Check(spec, _keys_reached(spec, pending))
        changed = [f"measured twice: {first} us and then {second} us"] if first != second else []
        yield Check(spec, f"repeated case {smallest.case_id}", changed)


def _keys_reached(spec: OpSpec, pending: Mapping[_Key, Evaluation]) -> str:
    results = [pending[spec.op_id, case.case_id, False].result() for case in spec.cases]
    reached = {each.launch.tiling_key for result in results for each in result.cases if each.launch}
    mentioned = mentioned_keys(spec)
    missed = ", ".join(map(str, sorted(mentioned - reached)))
    told = f"tiling keys: {len(mentioned & reached)} of {len(mentioned)} reached"
    return f"{told}; no case reaches {missed}" if missed else told


def _submitted(
    evaluator: Evaluator, spec: OpSpec, case: Case, protocol: MeasureProtocol, *, use_cache: bool = True
) -> Evaluation:
    request = request_for(spec, spec.baseline, protocol, (case.case_id,))
    return evaluator.submit(request.model_copy(update={"use_cache": use_cache}))


def _smallest(spec: OpSpec) -> Case:
    return min(spec.cases, key=lambda case: case.traffic_bytes)


def _baseline_check(spec: OpSpec, case: Case, result: EvalResult) -> Check:
    name = f"baseline on case {case.case_id}"
    told = [str(each) for each in result.all_diagnostics]
    if result.latency_us is None:
        return Check(spec, name, told or [f"status {result.status}"])
    name += f": {result.latency_us:.2f} us"
    complaints = []
    if result.floor_us is not None:
        name += f", floor {result.floor_us:.2f} us"
        if result.latency_us < result.floor_us:
            complaints = [f"{result.latency_us:.2f} us are less than the floor of {result.floor_us:.2f} us"]
    return Check(spec, name, complaints, told if spec.has_sources else ())  # framework calls have a note

"""Calibration of tau_noise: by how much a rewound version must be slower to count (section 3.4.1, step 2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import RewardRule, rule_of
from ascend_gym.env.evaluation import evaluate
from ascend_gym.suite.requests import request_for

REPEATS = 5
FLOOR = 0.005
"""Least tau_noise: below half a percent a motif teaches little, however quiet the device is."""

_SAFETY = 2.0


class Noise(BaseModel):
    """How much equal evaluations differ.

    Attributes:
        latencies_us: latency of each repetition, in microseconds.
        spread: (largest - smallest) / smallest.
        tau_noise: twice the spread, but at least ``FLOOR``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    latencies_us: tuple[float, ...]
    spread: float
    tau_noise: float


def calibrate(
    evaluator: Evaluator,
    spec: OpSpec,
    candidate: Candidate,
    protocol: MeasureProtocol,
    *,
    repeats: int = REPEATS,
) -> Noise:
    """Measure ``candidate`` anew ``repeats`` times; these evaluations are part of no budget.

    Args:
        evaluator: measures.
        spec: operator.
        candidate: a correct implementation.
        protocol: how each evaluation measures.
        repeats: number of evaluations.

    Raises:
        MisuseError: the candidate cannot be measured.
        InfrastructureError: the evaluator is to blame.
    """
    request = request_for(spec, candidate, protocol).model_copy(update={"use_cache": False})
    latencies = tuple(_latency_us(spec, evaluate(evaluator, request)) for _ in range(repeats))
    return noise_of(latencies)


def noise_of(latencies_us: tuple[float, ...]) -> Noise:
    """Return the noise that repeated measurements show; a simulator that repeats itself shows none."""
    spread = (max(latencies_us) - min(latencies_us)) / min(latencies_us)
    return Noise(latencies_us=latencies_us, spread=spread, tau_noise=max(FLOOR, _SAFETY * spread))


def tau_noise_of(result: EvalResult) -> float:
    """Return the threshold that the samples of one evaluation give: those of the case that spreads most."""
    spreads = [noise_of(case.samples_us).spread for case in result.cases if case.samples_us]
    return max(FLOOR, _SAFETY * max(spreads, default=0.0))


def _latency_us(spec: OpSpec, result: EvalResult) -> float:
    if result.latency_us is not None:
        return result.latency_us
    problem = f"{spec.op_id} ended as {result.status.value}: {result.all_diagnostics[0]}"
    if rule_of(result.status).reward is RewardRule.NEUTRAL:
        raise InfrastructureError(problem)
    raise MisuseError(f"noise cannot be calibrated on an implementation that fails: {problem}")

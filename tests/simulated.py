"""Evaluates edited versions of an operator on the real simulator, through the real pipeline."""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator


class Workbench:
    """One operator, one case, and the candidates made of it by replacing text."""

    def __init__(
        self,
        backend: SimulatorBackend,
        cache_dir: Path,
        operator: str,
        case_id: str,
        *,
        op_dir: Path | None = None,
    ) -> None:
        self.spec: OpSpec = load_operator(operator, op_dir=op_dir)
        self._evaluator = InProcessEvaluator(backend, cache_dir)
        self._case_id = case_id

    def edited(
        self, *, kernel: dict[str, str] | None = None, tiling: dict[str, str] | None = None
    ) -> Candidate:
        """Return the baseline with each key, which must occur, replaced once by its value."""
        return self.spec.baseline.rewritten(
            kernel=_replaced(self.spec.baseline.kernel_text, kernel or {}),
            tiling=_replaced(self.spec.baseline.tiling_text, tiling or {}),
        )

    def evaluate(
        self, candidate: Candidate, *, run_timeout_s: float = 20.0, chip: str = "910B2", noise: float = 0.0
    ) -> EvalResult:
        """Evaluate without the result cache."""
        protocol = MeasureProtocol(run_timeout_s=run_timeout_s, chip=chip, noise=noise)
        request = request_for(self.spec, candidate, protocol, (self._case_id,))
        request = request.model_copy(update={"use_cache": False})
        request_id = self._evaluator.submit(request)
        ((answered, result),) = self._evaluator.poll(timeout_s=60.0)
        assert answered == request_id
        return result

    def latency_us(
        self, *, kernel: dict[str, str] | None = None, tiling: dict[str, str] | None = None
    ) -> float:
        """Return the latency of an edited version, which must be correct."""
        return self.latency_of_us(self.edited(kernel=kernel, tiling=tiling))

    def latency_of_us(self, candidate: Candidate) -> float:
        """Return the latency of a candidate, which must be correct."""
        result = self.evaluate(candidate)
        assert result.latency_us is not None, [str(d) for d in result.all_diagnostics]
        return result.latency_us


def _replaced(text: str, edits: dict[str, str]) -> str:
    for old, new in edits.items():
        assert old in text, f"{old!r} is not in the source"
        text = text.replace(old, new, 1)
    return text

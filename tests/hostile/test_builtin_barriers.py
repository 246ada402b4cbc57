"""Barriers and pairs of events of the built-in operators, taken away one by one.

One that the kernel needs without automatic synchronisation is never removed for free: with it, the compiler's
own takes its place at the same cost, or the result is a race all the same.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.suite import loader
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

_BARRIER = re.compile(r"[\w:]*PipeBarrier<\w+>\(\);")
_PAIR = re.compile(r"[\w:]*SetFlag(<[\w:]+>\(\w+\);)\s+[\w:]*WaitFlag\1")
# The compiler waits where results are needed, which is later than where some kernels wait.
_SLACK = 5e-3


def removals(candidate: Candidate) -> list[tuple[Candidate, Candidate]]:
    """Return the candidate without each barrier or pair of events, and with only what replaces it.

    That is the same barrier or pair, but one of the vector pipe alone in place of one of all pipes.
    """
    text = candidate.kernel_text
    found = [*_BARRIER.finditer(text), *_PAIR.finditer(text)]

    def instead(one: re.Match[str], words: str) -> Candidate:
        return candidate.rewritten(kernel=text[: one.start()] + words + text[one.end() :])

    return [(instead(one, ""), instead(one, one.group().replace("PIPE_ALL", "PIPE_V"))) for one in found]


def _without_auto_sync(folder: Path, operator: str) -> Path:
    """Write the operator anew, for a compiler that inserts no synchronisation."""
    copy = folder / operator
    shutil.copytree(Path(loader.__file__).parent / "ops" / operator, copy)
    manifest = copy / "op.toml"
    text = manifest.read_text(encoding="utf-8")
    assert "auto_sync = true" in text
    manifest.write_text(text.replace("auto_sync = true", "auto_sync = false"), encoding="utf-8")
    return copy


class Bench:
    """One operator at its first case, with and without automatic synchronisation."""

    def __init__(self, backend: SimulatorBackend, folder: Path, operator: str) -> None:
        self.spec: OpSpec = load_operator(operator)
        self._strict = load_operator(operator, op_dir=_without_auto_sync(folder, operator))
        self._evaluator = InProcessEvaluator(backend, folder / "data")

    def evaluate(self, candidate: Candidate, *, auto_sync: bool) -> EvalResult:
        spec = self.spec if auto_sync else self._strict
        case_id = spec.cases[0].case_id
        self._evaluator.submit(request_for(spec, candidate, MeasureProtocol(), (case_id,)))
        ((_, result),) = self._evaluator.poll(timeout_s=60.0)
        return result


@pytest.mark.parametrize("operator", ["gather", "rms_norm", "softmax"])
def test_what_is_needed_is_not_removed_for_free(
    simulator: SimulatorBackend, tmp_path: Path, operator: str
) -> None:
    bench = Bench(simulator, tmp_path, operator)
    assert bench.evaluate(bench.spec.baseline, auto_sync=False).status is Status.OK
    needed = 0
    for without, narrowed in removals(bench.spec.baseline):
        if bench.evaluate(without, auto_sync=False).status is Status.OK:
            continue
        needed += 1
        after = bench.evaluate(without, auto_sync=True)
        if after.status is Status.OK:
            before = bench.evaluate(narrowed, auto_sync=True).latency_us
            assert before is not None
            assert after.latency_us is not None
            assert after.latency_us >= before * (1 - _SLACK)
    assert needed > 0

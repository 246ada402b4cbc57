"""Results do not depend on how many workers there are, nor on what runs beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon_processes import collect

from ascend_gym.client import DaemonOptions, LocalDaemon, ZmqEvaluator
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Built, RunOutput
from ascend_gym.core.records import Charge, EvalRequest, EvalResult, MeasureProtocol, PhaseSeconds
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend

pytestmark = pytest.mark.slow

OPERATORS = ("foreach_add", "add")


def _requests() -> list[EvalRequest]:
    """The baselines of two operators, one case each, and a kernel that reads past its input."""
    protocol = MeasureProtocol()
    specs = [load_operator(name) for name in OPERATORS]
    requests = [request_for(spec, spec.baseline, protocol, (spec.cases[0].case_id,)) for spec in specs]
    add = specs[-1]
    astray = add.baseline.kernel_text.replace("x1Gm[offset]", "x1Gm[offset + 9999]")
    broken = add.baseline.rewritten(kernel=astray, tiling=add.baseline.tiling_text)
    return [*requests, request_for(add, broken, protocol, (add.cases[0].case_id,))]


def _results(workers: int, cache_dir: Path, toolchain: Path) -> list[EvalResult]:
    """Evaluate all requests at once on a daemon with a cache of its own."""
    cache_dir.mkdir()
    (cache_dir / "toolchain").symlink_to(toolchain)
    with LocalDaemon(DaemonOptions(workers=workers, cache_dir=cache_dir)) as daemon:
        evaluator = ZmqEvaluator(daemon.address)
        ids = [evaluator.submit(request) for request in _requests()]
        answers = collect(evaluator, len(ids))
        evaluator.close()
    return [_without_wall_time(answers[each]) for each in ids]


def _without_wall_time(result: EvalResult) -> EvalResult:
    charge = Charge(evaluations=result.charge.evaluations)
    return result.model_copy(update={"seconds": PhaseSeconds(), "charge": charge})


def test_one_worker_and_four_give_the_same_results(simulator_cache: Path, tmp_path: Path) -> None:
    """Latencies, profiles, errors against the reference, messages, to the last bit."""
    toolchain = (simulator_cache / "toolchain").resolve()
    alone = _results(1, tmp_path / "one", toolchain)
    assert [result.status for result in alone] == [Status.OK] * len(OPERATORS) + [Status.RUNTIME_FAULT]
    assert alone == _results(4, tmp_path / "four", toolchain)


def test_runs_side_by_side_leave_the_same_bytes(simulator: SimulatorBackend, tmp_path: Path) -> None:
    spec, protocol = load_operator("softmax"), MeasureProtocol()
    case = spec.cases[0]
    files = []
    for index, (array,) in enumerate(oracle_for(spec).inputs(case, 0)):
        files.append([tmp_path / f"{index}.bin"])
        array.tofile(files[-1][0])
    built = simulator.build(spec, case, spec.baseline, protocol)
    assert isinstance(built, Built)

    def run(_: int) -> str:
        outcome = simulator.run(built, case, files, protocol)
        assert isinstance(outcome, RunOutput)
        outputs = [[array.tobytes() for array in row] for row in outcome.outputs]
        digest = digest_of(outputs, bytes(outcome.handle.job.trace.mapped()))
        simulator.cleanup(outcome)
        return digest

    with ThreadPoolExecutor(4) as pool:
        assert len({run(0), *pool.map(run, range(8))}) == 1

"""What pipes wait for, by line of the source: on the real simulator, as results and prompts tell it."""

import re
from pathlib import Path

import pytest
from simulated import Workbench

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.suite.requests import request_for
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.profiling.profiler import Profiler
from npu_daemon.simulator.places import own_place
from npu_daemon.simulator.stalls import stalls_of
from npu_daemon.simulator.task_type import CoreKind

OPERATORS = Path(__file__).parent.parent / "operators"


def _evaluated(simulator, cache, name):
    spec = Workbench(simulator, cache, name, "", op_dir=OPERATORS / name).spec
    request = request_for(spec, spec.baseline, MeasureProtocol(stalls=True))
    evaluator = InProcessEvaluator(simulator, cache)
    evaluator.submit(request)
    ((_, result),) = evaluator.poll(timeout_s=60.0)
    assert result.latency_us is not None, [str(each) for each in result.all_diagnostics]
    return spec, result


def _line(spec, text):
    """Return the number of the first line of the kernel with a text."""
    return next(n for n, line in enumerate(spec.baseline.kernel_text.split("\n"), 1) if text in line)


def _without_quotes(text):
    """Return a text without the lines of the source, each of which it quotes once."""
    return re.sub(r" `[^`\n]*`", "", text)


def test_each_pipe_waits_at_the_line_that_needs_another_one(simulator, tmp_path):
    spec, result = _evaluated(simulator, tmp_path, "power")
    path = spec.baseline.kernel.main
    first_product = f"Mul at {path}:{_line(spec, 'Mul(y, x1, x2')} `Mul(y, x1, x2, count);`"
    last_product = f"Mul at {path}:{_line(spec, 'Mul(y, y, x2') + 2} `Mul(y, y, x2, count);`"
    copy_out = f"DataCopy(UB->GM) at {path}:{_line(spec, 'DataCopy(yGm')} `DataCopy(yGm[offset], y, count);`"
    second_copy = (
        f"DataCopy(GM->UB) at {path}:{_line(spec, 'DataCopy(x2')} `DataCopy(x2, x2Gm[offset], count);`"
    )
    longest = {(each.pipe, each.at): each for each in reversed(result.cases[0].stalls)}
    assert longest["aiv_mte3", copy_out].waits_for == last_product
    assert longest["aiv_vec", first_product].waits_for == second_copy
    assert all(0 < each.wait_ratio <= 1 for each in result.cases[0].stalls)
    ratio = longest["aiv_vec", first_product].wait_ratio
    told = _without_quotes(describe_result(result))
    before, after = map(_without_quotes, (first_product, second_copy))
    assert re.search(rf"aiv_vec {ratio:.1%}[^;]* before {re.escape(before)}, after {re.escape(after)}", told)
    profiler = Profiler(simulator, "910B2", tmp_path, max_events=None, timeout_s=60.0)
    launch = profiler.profile_operator(spec, spec.baseline, spec.cases[0], tmp_path)
    assert launch.stalls == result.cases[0].stalls
    assert launch.timeline is None


def test_scalar_time_is_split_into_what_it_went_into(simulator, tmp_path):
    """The parts and the waiting add up to the time of the cores, but for the start of blocks."""
    _, result = _evaluated(simulator, tmp_path, "power")
    for case in result.cases:
        assert case.profile is not None
        assert case.cores is not None
        times = case.cores.scalar["aiv"]
        assert times.fetched_instructions > 0
        assert times.fetch_us > times.code_us > 0
        busy_us = sum(
            (times.fetch_us, times.code_us, times.queue_us, times.access_us, times.issue_us, times.order_us)
        )
        assert 0.5 * case.profile.aiv_scalar_time < busy_us <= 1.001 * case.profile.aiv_scalar_time
        assert busy_us + times.wait_us <= 1.001 * case.profile.aiv_time
        assert all(each.first_ratio <= each.wait_ratio and each.times > 0 for each in case.stalls)
    assert "scalar unit of vector cores, us (first-run code: machine instructions" in describe_result(result)


def test_cube_and_vector_cores_are_told_apart(simulator, tmp_path):
    _, result = _evaluated(simulator, tmp_path, "matmul_leaky")
    kinds = {each.pipe[:3] for each in result.cases[0].stalls}
    assert kinds == {"aic", "aiv"}


def test_nothing_is_found_out_unless_asked_for(simulator, tmp_path):
    bench = Workbench(simulator, tmp_path, "power", "small", op_dir=OPERATORS / "power")
    result = bench.evaluate(bench.spec.baseline)
    assert result.cases[0].stalls == ()
    assert "longest pauses" not in describe_result(result)


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "located\tAdd\t0\tzz\t0 0\n",
        "located\t0\n\tlocated\t\t\t\t\tx y\n",
        "located\tAdd\t0\t10\t\u00b2 \u0663\n",
        f"located\tAdd\t0\t10\t0 {'9' * 5000}\n",
    ],
)
def test_what_the_second_run_prints_is_not_trusted(tmp_path, printed):
    """The kernel shares its process with what tells the places."""
    timeline = tmp_path / "timeline"
    timeline.write_text("0 MTE2 CopyGmToUb 10 100 64\n0 V Add 150 200 0\n")
    price = {"cores": [{"kind": "aiv"}]}
    libraries = {CoreKind.VECTOR: tmp_path / "none.so"}
    found = stalls_of(price, timeline, lambda _: printed, libraries, own_place, {}, 10.0)
    assert all(each.at == "Add" and each.waits_for == "DataCopy(GM->UB)" for each in found)

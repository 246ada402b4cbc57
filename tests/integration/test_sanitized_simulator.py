"""The programs that run, check and price, built with sanitizers: two operators, and traces of an adversary.

Only with ``--sanitize``: building takes a minute. The instructions one by one are tested in
tests/conformance with the same option.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sanitizers import ENVIRONMENT, FOUND_EXIT, sanitized_program

from ascend_gym.core.records import Case, MeasureProtocol
from ascend_gym.suite.inputs import Array
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.kernel_run import KernelJob, output_places

PROTOCOL = MeasureProtocol()
MALFORMED_EXIT = 4
MUTATIONS = 150
OPERATORS = ("core/softmax", "core/foreach_add")


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not request.config.getoption("--sanitize"):
        pytest.skip("only with --sanitize")
    cache_dir = request.config.cache.mkdir("simulator")
    reader = ("price/trace_reader.cpp",)
    parts = {"run": (("run", "runtime"), ()), "price": (("price",), ()), "races": (("races",), reader)}
    return {
        name: sanitized_program(cache_dir, tmp_path_factory.mktemp(name), folders, sources)
        for name, (folders, sources) in parts.items()
    }


@pytest.fixture(scope="module", params=OPERATORS)
def job(
    request: pytest.FixtureRequest,
    programs: dict[str, Path],
    simulator: SimulatorBackend,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[JobFiles]:
    """Return a finished run of the usual programs."""
    spec = load_operator(request.param)
    case = min(spec.cases, key=lambda case: max(max(shape) for shape in case.inputs[0].shapes))
    data = CaseDataCache(tmp_path_factory.mktemp("data"), "-").obtain(spec, oracle_for(spec), case, 0)
    built = simulator.build(spec, case, spec.baseline, PROTOCOL)
    run = simulator.run(built, case, data.input_files, PROTOCOL)
    yield named_files(run.handle.job, output_bytes(case, run.outputs))
    simulator.cleanup(run)


def output_bytes(case: Case, outputs: Sequence[Sequence[Array]]) -> bytes:
    """Return the file of outputs of a run, which is given up when they are read."""
    places, size = output_places(case)
    content = bytearray(size)
    for begins, arrays in zip(places, outputs, strict=True):
        for begin, array in zip(begins, arrays, strict=True):
            content[begin : begin + array.nbytes] = array.tobytes()
    return bytes(content)


@dataclass(frozen=True)
class JobFiles:
    """A finished run under names: what programs read and write."""

    path: Path
    trace: Path
    outputs: Path
    tensor_ranges: Path
    chip: Path


def named_files(job: KernelJob, outputs: bytes) -> JobFiles:
    files = JobFiles(*(job.folder / name for name in ("job", "trace", "outputs", "ranges", "chip")))
    files.path.write_text(job.described(str(files.trace), str(files.outputs)))
    files.trace.write_bytes(job.trace.mapped())
    files.outputs.write_bytes(outputs)
    files.tensor_ranges.write_text(job.tensor_ranges)
    files.chip.write_text(load_chip(PROTOCOL.chip).pricing_text())
    return files


def call(program: Path, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, arguments)]
    environment = {**os.environ, **ENVIRONMENT}
    environment.pop("LD_PRELOAD", None)
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert answer.returncode != FOUND_EXIT, answer.stderr[-6000:]
    assert "runtime error" not in answer.stderr, answer.stderr[-6000:]
    return answer


def priced(program: Path, job: JobFiles, trace: Path) -> subprocess.CompletedProcess[str]:
    return call(program, trace, job.chip, job.tensor_ranges)


def test_an_operator_runs_as_it_does_without_sanitizers(programs: dict[str, Path], job: JobFiles) -> None:
    written = [job.trace, job.outputs]
    expected = [path.read_bytes() for path in written]
    for path, content in zip(written, expected, strict=True):
        path.write_bytes(bytes(len(content)))
    answer = call(programs["run"], job.path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [path.read_bytes() for path in written] == expected


def test_a_price_is_the_same(programs: dict[str, Path], job: JobFiles, simulator: SimulatorBackend) -> None:
    usual = priced(simulator.toolchain.price_program, job, job.trace)
    sanitized = priced(programs["price"], job, job.trace)
    assert sanitized.returncode == 0
    assert sanitized.stdout == usual.stdout


def checked(program: Path, job: JobFiles, trace: Path) -> subprocess.CompletedProcess[str]:
    return call(program, trace, job.tensor_ranges, Path("on"))


def test_a_real_trace_has_no_race(programs: dict[str, Path], job: JobFiles) -> None:
    answer = checked(programs["races"], job, job.trace)
    assert (answer.returncode, answer.stdout) == (0, '{"race":null,"rewritten":null}\n')


def test_damaged_traces_are_refused_or_read(programs: dict[str, Path], job: JobFiles, tmp_path: Path) -> None:
    """Single bytes of a real trace changed, some in many places, and traces cut short."""
    source = random.Random(1)
    original = job.trace.read_bytes()[: 64 * 1024]
    for _ in range(MUTATIONS):
        damaged = bytearray(original[: source.choice([len(original), source.randrange(len(original))])])
        for _ in range(source.choice([0, 1, 1, 20])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        trace = tmp_path / "trace"
        trace.write_bytes(damaged)
        assert priced(programs["price"], job, trace).returncode in (0, MALFORMED_EXIT)
        assert checked(programs["races"], job, trace).returncode in (0, MALFORMED_EXIT)

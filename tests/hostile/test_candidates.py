"""Candidates that want to be paid for less, or for nothing: each is refused, and nothing of it stays."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from daemon_processes import ends

from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec, SourceFile, Sources
from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.sandbox import ResourceLimits, run_limited
from npu_daemon.sandbox.server import descendants_of
from npu_daemon.simulator.kernel_ir.compilation import emitter
from npu_daemon.simulator.kernel_ir.headers import headers_read_first, precompiled_headers
from npu_daemon.simulator.kernel_ir.toolchain import INCLUDE
from npu_daemon.simulator.places import line_reader

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parent / "candidates"
TARGET = CORPUS / "target"
HONEST = Path(__file__).parent / "honest"
REPLACED = {"candidate_kernel.h": "op_kernel/candidate.h", "candidate_tiling.h": "op_host/candidate.h"}
DEFAULT_TIMEOUT_S = 10.0
BUILD_TIMEOUT_S = 20.0
OWN_CPU_S = 30.0  # of this process alone, however busy the machine is
MEMORY_LEFT_BYTES = 64 * 2**20
SMALL_RUN_BYTES = 160 * 2**20  # enough for the honest one, less than objects of a kernel may take


@dataclass(frozen=True)
class Expectation:
    """What must become of a candidate.

    Attributes:
        statuses: how it may end; ``ok`` for text that has lost its meaning, at the price of the honest one.
        words: what its first diagnostic must say.
        run_timeout_s: CPU seconds that its kernel gets.
    """

    statuses: tuple[Status, ...]
    words: tuple[str, ...]
    run_timeout_s: float


def _names() -> list[str]:
    return sorted(path.parent.name for path in CORPUS.glob("*/expect.toml"))


def _expectation(name: str) -> Expectation:
    table = read_toml(CORPUS / name / "expect.toml")
    statuses = tuple(Status(status) for status in table["statuses"])
    return Expectation(statuses, tuple(table["words"]), table.get("run_timeout_s", DEFAULT_TIMEOUT_S))


def _candidate(spec: OpSpec, folder: Path, flags: tuple[str, ...] = ()) -> Candidate:
    texts = {
        target: (folder / file).read_bytes().decode()  # carriage returns as they are
        for file, target in REPLACED.items()
        if (folder / file).exists()
    }
    assert texts, f"{folder} replaces nothing"
    return replaced_candidate(spec, texts, flags)


def replaced_candidate(spec: OpSpec, texts: dict[str, str], flags: tuple[str, ...] = ()) -> Candidate:
    """Return the honest candidate with other texts for some of its files."""
    host, kernel = (_replaced(side, texts) for side in (spec.baseline.host, spec.baseline.kernel))
    return Candidate(host=host, kernel=kernel, build_flags=flags)


def _hostile(spec: OpSpec, name: str) -> Candidate:
    table = read_toml(CORPUS / name / "expect.toml")
    return _candidate(spec, CORPUS / name, tuple(table.get("flags", ())))


def _replaced(sources: Sources, texts: dict[str, str]) -> Sources:
    files = (SourceFile(path=file.path, text=texts.get(file.path, file.text)) for file in sources.files)
    return Sources(files=tuple(files), main=sources.main)


def _resident_bytes() -> int:
    """Return the memory of this process and of what it has started."""
    pids = [os.getpid(), *descendants_of(os.getpid())]
    return sum(_pages(pid) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def _pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except OSError:  # it has just ended
        return 0


class Court:
    """Evaluates candidates of the target operator, without cached results."""

    def __init__(self, backend: SimulatorBackend, cache_dir: Path) -> None:
        self.spec = load_operator("target", op_dir=TARGET)
        self._evaluator = InProcessEvaluator(backend, cache_dir)

    @cached_property
    def honest_us(self) -> float:
        """What the honest candidate takes."""
        latency_us = self.judge(self.spec.baseline).latency_us
        assert latency_us is not None
        return latency_us

    def judge(
        self,
        candidate: Candidate,
        run_timeout_s: float = DEFAULT_TIMEOUT_S,
        memory_limit_bytes: int = MeasureProtocol().memory_limit_bytes,
    ) -> EvalResult:
        """Evaluate on both cases."""
        protocol = MeasureProtocol(
            run_timeout_s=run_timeout_s,
            build_timeout_s=BUILD_TIMEOUT_S,
            memory_limit_bytes=memory_limit_bytes,
        )
        request = request_for(self.spec, candidate, protocol).model_copy(update={"use_cache": False})
        self._evaluator.submit(request)
        ((_, result),) = self._evaluator.poll(timeout_s=600.0)
        return result


@pytest.fixture(scope="module")
def court(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Court:
    folder = tmp_path_factory.mktemp("data")
    opened = Court(simulator, folder)
    # Start what stays as long as this process: the servers of the sandbox. Each has loaded its program when
    # it answers, if only that its arguments are wrong; else its memory would count as the first candidate's.
    opened.judge(opened.spec.baseline)
    limits = ResourceLimits(wall_s=600, cpu_s=600, memory_bytes=1 << 32, file_bytes=1 << 20)
    for program in (emitter(), line_reader()):
        assert run_limited([], cwd=folder, limits=limits, preload=program).returncode == 1
    return opened


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(_names()) >= 40


def test_the_honest_one_is_accepted(court: Court) -> None:
    result = court.judge(court.spec.baseline)
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]


@pytest.mark.parametrize("folder", [pytest.param(each, id=each.name) for each in sorted(HONEST.iterdir())])
def test_honest_code_of_any_style_is_accepted(court: Court, folder: Path) -> None:
    result = court.judge(_candidate(court.spec, folder))
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]


@pytest.mark.parametrize("name", _names())
def test_it_is_refused_and_nothing_of_it_stays(
    court: Court, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    expected = _expectation(name)
    before, resident_bytes = set(descendants_of(os.getpid())), _resident_bytes()
    started_s = time.process_time()
    result = court.judge(_hostile(court.spec, name), expected.run_timeout_s)
    own_cpu_s = time.process_time() - started_s
    told = [str(each) for each in result.all_diagnostics]
    assert result.status in expected.statuses, told
    assert all(word in told[0] for word in expected.words), told
    if result.status is Status.OK:
        assert result.latency_us is not None
        assert result.latency_us >= court.honest_us, "it gains by it"
    assert not any("root:" in text for text in told), "a file of the host is quoted"
    assert own_cpu_s < OWN_CPU_S, "the trusted side is kept busy"
    assert all(ends(pid) for pid in set(descendants_of(os.getpid())) - before)
    assert list(tmp_path.iterdir()) == [], "files are left"
    assert _resident_bytes() < resident_bytes + MEMORY_LEFT_BYTES
    assert court.judge(court.spec.baseline).status is Status.OK, "the next job suffers"


@pytest.mark.parametrize("path", ["asim_vector.bc/x.h", "asim_vector_overlay.json/x.h", "asim_prelude.h/x.h"])
def test_files_that_take_names_of_the_build_are_a_fault_of_their_author(court: Court, path: str) -> None:
    honest = court.spec.baseline
    files = (*honest.kernel.files, SourceFile(path=path, text="// in the way"))
    result = court.judge(honest.model_copy(update={"kernel": Sources(files=files, main=honest.kernel.main)}))
    assert result.status is Status.BUILD_ERROR
    assert "choose another" in str(result.all_diagnostics[0])


def _including(spec: OpSpec, headers: Sequence[str]) -> Candidate:
    """Return a candidate whose macros break each header that is read behind them."""
    words = ("namespace", "inline", "template", "struct", "enum")
    lines = [
        *(f"#define {word} broken" for word in words),
        *(f'#undef NAME\n#define NAME "{path}"\n#include NAME' for path in headers),
        *(f"#undef {word}" for word in words),
    ]
    text = "\n".join(['#pragma once\n#include "honest.h"', *lines, "using Candidate = HonestKernel;\n"])
    return replaced_candidate(spec, {"op_kernel/candidate.h": text})


def test_no_header_of_ascend_c_is_read_behind_the_macros_of_a_kernel(court: Court) -> None:
    api = sorted(path for path in precompiled_headers(INCLUDE) if path.startswith("asim/"))
    result = court.judge(_including(court.spec, api))
    assert len(api) > 50
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]


@pytest.mark.parametrize("path", sorted(headers_read_first(INCLUDE)))
def test_headers_that_are_read_first_are_an_error_behind_them(court: Court, path: str) -> None:
    result = court.judge(_including(court.spec, [path]))
    assert result.status is Status.BUILD_ERROR
    assert "poisoned" in str(result.all_diagnostics[0])


def test_a_run_out_of_memory_is_the_candidates_fault(court: Court) -> None:
    assert court.judge(court.spec.baseline, memory_limit_bytes=SMALL_RUN_BYTES).status is Status.OK
    candidate = _hostile(court.spec, "shapes_without_end")
    result = court.judge(candidate, memory_limit_bytes=SMALL_RUN_BYTES)
    assert result.status is Status.RESOURCE_LIMIT
    assert "more memory than its limit" in str(result.all_diagnostics[0])
    assert result.charge.evaluations == 1


def test_after_all_of_them_the_honest_one_is_accepted(court: Court) -> None:
    result = court.judge(court.spec.baseline)
    assert result.status is Status.OK, [str(each) for each in result.all_diagnostics]

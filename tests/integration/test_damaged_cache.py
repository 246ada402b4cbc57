"""Files of the cache that a disk or somebody's hand damaged: no candidate is blamed, nothing is kept."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from damages import DAMAGES, empty, flip

from ascend_gym.core.records import (
    Charge,
    Diagnostic,
    EvalRequest,
    EvalResult,
    MeasureProtocol,
    OpSpec,
    Phase,
    failed_result,
)
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon import service as service_module
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.cache_check import false_verdicts, verify_cache
from npu_daemon.cache_folder import RESULTS_NAME
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.own_files import MANIFEST_NAME, OWN_FILES
from npu_daemon.simulator import self_check
from npu_daemon.store import SqliteResultStore

SPEC = load_operator("gelu")
CASE = "fp16_1021x1003"


class Host:
    """A cache, and evaluations of which each one is as in a new process unless ``warm``."""

    def __init__(self, simulator: SimulatorBackend, cache: Path) -> None:
        self.cache = cache
        self._backend = lambda: SimulatorBackend(cache)
        self._warm = InProcessEvaluator(simulator, cache)

    def evaluate(self, spec: OpSpec = SPEC, *, warm: bool = False, use_cache: bool = False) -> EvalResult:
        request = request_for(spec, spec.baseline, MeasureProtocol(), (CASE,))
        request = request.model_copy(update={"use_cache": use_cache})
        if not warm:
            OWN_FILES._seen.clear()  # as in a new process
        evaluator = self._warm if warm else InProcessEvaluator(self._backend(), self.cache)
        evaluator.submit(request)
        ((_, result),) = evaluator.poll(60.0)
        return result

    def one(self, pattern: str) -> Path:
        return sorted(self.cache.glob(pattern))[0]

    @property
    def repairs(self) -> dict[str, int]:
        store = SqliteResultStore(self.cache / RESULTS_NAME)
        try:
            return store.repairs()
        finally:
            store.close()


@pytest.fixture
def host(simulator: SimulatorBackend, simulator_cache: Path, tmp_path: Path) -> Host:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "toolchain").symlink_to((simulator_cache / "toolchain").resolve())
    return Host(SimulatorBackend(cache), cache)


@pytest.mark.parametrize(
    ("damage", "warm"),
    [
        pytest.param(each, warm, id=f"{each.__name__}-{'same process' if warm else 'new process'}")
        for each, warm in zip(DAMAGES, (False, True, True, False), strict=True)
    ],
)
@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("builds/host/*/*/host.so", "builds"),
        ("builds/host/*/*/definition.json", "builds"),
        ("builds/kernel/*/*/kernel.so", "builds"),
        ("case_data/*/input_0_0.bin", "inputs"),
        ("case_data/*/expected_0_0.bin", "inputs"),
        ("case_data/*/index.json", "inputs"),
        (f"case_data/*/{MANIFEST_NAME}", "inputs"),
    ],
)
def test_damaged_files_are_made_again_in_silence(
    host: Host, pattern: str, part: str, damage: Callable[[Path], None], warm: bool
) -> None:
    before = host.evaluate(warm=True)
    assert before.status is Status.OK, before.all_diagnostics
    for path in host.cache.glob(pattern):
        damage(path)
    after = host.evaluate(warm=warm)
    assert (after.status, after.cases[0].samples_us) == (Status.OK, before.cases[0].samples_us)
    assert after.charge.evaluations == 1
    assert after.all_diagnostics == before.all_diagnostics
    assert host.repairs[part] >= 1
    verify_cache(host.cache)  # also of values that were drawn ahead and not used again
    assert verify_cache(host.cache).damaged == {}


@pytest.mark.parametrize("pattern", ["case_data/*/input_0_0.bin", "builds/kernel/*/*/kernel.so"])
def test_damage_while_a_candidate_is_evaluated_is_not_its_fault(
    host: Host, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = host.evaluate(warm=True)
    evaluate = service_module.evaluate
    answers: list[EvalResult] = []
    flipped: list[Path] = []

    def damaged_first(*arguments: object, **named: object) -> EvalResult:
        run = SimulatorBackend.run

        def run_on_damage(*own: object, **further: object) -> object:
            if not flipped:
                flipped.extend(host.cache.glob(pattern))
                for path in flipped:
                    flip(path)
            return run(*own, **further)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(SimulatorBackend, "run", run_on_damage)
            answers.append(evaluate(*arguments, **named))  # type: ignore[arg-type]
        return answers[-1]

    monkeypatch.setattr(service_module, "evaluate", damaged_first)
    after = host.evaluate(warm=True)
    assert len(answers) == 2
    assert (after.status, after.cases[0].samples_us) == (Status.OK, before.cases[0].samples_us)


def test_files_that_are_damaged_again_and_again_are_a_fault_of_the_host(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = service_module.evaluate

    def always_damaged(*arguments: object, **named: object) -> EvalResult:
        result = evaluate(*arguments, **named)  # type: ignore[arg-type]
        empty(host.one("builds/host/*/*/host.so"))
        return result

    monkeypatch.setattr(service_module, "evaluate", always_damaged)
    result = host.evaluate(warm=True)
    assert (result.status, result.charge.evaluations) == (Status.INFRA_ERROR, 0)
    assert "host.so has 0 bytes instead of" in result.diagnostics[0].message
    monkeypatch.undo()
    assert host.evaluate(warm=True, use_cache=True).status is Status.OK


def test_what_damage_once_made_of_results_is_found_and_voided(host: Host) -> None:
    assert host.evaluate(warm=True).status is Status.OK
    blamed = host.evaluate(warm=True).model_dump(mode="json")
    message = "libasim_host.so: file too short"
    blamed |= {"status": "tiling_error", "diagnostics": [{"phase": "run_tiling", "message": message}]}
    blamed["cases"] = []
    with sqlite3.connect(host.cache / RESULTS_NAME) as database:
        ((key,),) = database.execute("SELECT key FROM kept_results").fetchall()
    store = SqliteResultStore(host.cache / RESULTS_NAME)
    store.put(key, EvalResult.model_validate(blamed))
    assert host.evaluate(warm=True, use_cache=True).status is Status.TILING_ERROR
    assert false_verdicts(host.cache) == 1
    found = verify_cache(host.cache)
    assert (found.damaged, found.voided) == ({}, 1)
    assert false_verdicts(host.cache) == 0
    assert host.evaluate(warm=True, use_cache=True).status is Status.OK
    kernel = host.one("builds/kernel/*/*/kernel.so")
    whole = kernel.read_bytes()
    empty(kernel)
    assert false_verdicts(host.cache) == 1
    kernel.write_bytes(whole)
    flip(kernel)
    found = verify_cache(host.cache)
    assert [Path(name).parts[:2] for name in found.damaged] == [("builds", "kernel")]
    assert found.voided == 1
    assert verify_cache(host.cache).voided == 0
    store.close()


@pytest.mark.parametrize("lasting", [False, True])
def test_a_disk_that_is_full_for_a_while_is_no_candidate_s_fault(
    host: Host, monkeypatch: pytest.MonkeyPatch, lasting: bool
) -> None:
    tries: list[EvalResult] = []
    evaluate = service_module.evaluate

    def without_room(request: EvalRequest, *arguments: object, **named: object) -> EvalResult:
        if tries and not lasting:
            return evaluate(request, *arguments, **named)  # type: ignore[arg-type]
        told = Diagnostic(phase=Phase.BUILD_KERNEL, message="error: unable to write: No space left on device")
        tries.append(failed_result(request, Status.BUILD_ERROR, told))
        return tries[-1]

    monkeypatch.setattr(service_module, "evaluate", without_room)
    if lasting:
        monkeypatch.setattr(service_module, "_FULL_BELOW_BYTES", 1 << 62)
    result = host.evaluate()
    assert len(tries) == (3 if lasting else 1)
    expected = (Status.INFRA_ERROR, 0) if lasting else (Status.OK, 1)
    assert (result.status, result.charge.evaluations) == expected


@pytest.mark.parametrize(
    "told", ["the compiler ended with signal 9", "clang: unable to execute command: Killed"]
)
def test_a_compiler_that_somebody_kills_is_no_candidate_s_fault(
    host: Host, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    evaluate, tries = service_module.evaluate, []

    def killed_once(request: EvalRequest, *arguments: object, **named: object) -> EvalResult:
        tries.append(request)
        if len(tries) > 1:
            return evaluate(request, *arguments, **named)  # type: ignore[arg-type]
        return failed_result(request, Status.BUILD_ERROR, Diagnostic(phase=Phase.BUILD_KERNEL, message=told))

    monkeypatch.setattr(service_module, "evaluate", killed_once)
    result = host.evaluate()
    assert (len(tries), result.status, result.charge.evaluations) == (2, Status.OK, 1)


def test_a_candidate_that_only_says_that_the_disk_is_full_is_blamed_and_charged(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrue(request: EvalRequest, *arguments: object, **named: object) -> EvalResult:
        told = Diagnostic(phase=Phase.RUN_TILING, message="No space left on device")
        charge = Charge(evaluations=1)
        return failed_result(request, Status.TILING_ERROR, told).model_copy(update={"charge": charge})

    monkeypatch.setattr(service_module, "evaluate", untrue)
    result = host.evaluate()
    assert (result.status, result.charge.evaluations) == (Status.TILING_ERROR, 1)


@pytest.mark.parametrize("lost", ["", "compiler", "header"])
def test_what_looks_like_a_missing_program_is_blamed_on_a_candidate_only_if_none_is_missing(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: str
) -> None:
    def with_status_127(request: EvalRequest, *arguments: object, **named: object) -> EvalResult:
        told = Diagnostic(phase=Phase.RUN_TILING, message="the host code ended with exit status 127")
        result = failed_result(request, Status.TILING_ERROR, told)
        return result.model_copy(update={"charge": Charge(evaluations=1)})

    monkeypatch.setattr(service_module, "evaluate", with_status_127)
    if lost == "compiler":
        monkeypatch.setattr(self_check, "compiler_program", lambda: str(tmp_path / "zig"))
    if lost == "header":
        about = tmp_path / "ziglang-1.dist-info"
        about.mkdir()
        (about / "RECORD").write_text("ziglang/lib/include/stddef.h,,123\n")
        monkeypatch.setattr(self_check, "distribution", lambda _: PathDistribution(about))
    result = host.evaluate()
    expected = (Status.INFRA_ERROR, 0) if lost else (Status.TILING_ERROR, 1)
    assert (result.status, result.charge.evaluations) == expected, result.all_diagnostics
    assert not lost or {"compiler": "zig", "header": "stddef.h"}[lost] in result.diagnostics[0].message


@pytest.mark.slow
def test_a_cache_is_moved_and_its_simulator_repaired(simulator: SimulatorBackend, tmp_path: Path) -> None:
    built = simulator.toolchain.folder
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(built, first / "toolchain" / built.name)
    shutil.copytree(built.parent / "objects", first / "toolchain" / "objects")
    objects = [path for path in (first / "toolchain" / "objects").iterdir() if path.suffix == ""]
    for file in sorted(objects, key=lambda path: path.stat().st_size)[:8]:
        flip(file)  # made again where they are needed, and never linked
    before = Host(SimulatorBackend(first), first).evaluate(warm=True)
    first.rename(second)
    first.write_text("whoever looks here finds no folder")
    moved = Host(SimulatorBackend(second), second)
    assert moved.evaluate().status is Status.OK
    assert moved.evaluate(load_operator("gelu"), warm=True).cases[0].samples_us == before.cases[0].samples_us
    assert moved.repairs == {}
    library = second / "toolchain" / built.name / "host" / "libasim_host.so"
    price = second / "toolchain" / built.name / "asim_price"
    empty(library)
    flip(price)
    after = moved.evaluate(warm=True)
    assert (after.status, after.cases[0].samples_us) == (Status.OK, before.cases[0].samples_us)
    assert moved.repairs == {"simulator": 1}
    assert library.stat().st_size == (built / "host" / "libasim_host.so").stat().st_size
    assert json.loads((library.parents[1] / MANIFEST_NAME).read_text())["files"]["asim_price"]


def test_a_program_that_nobody_may_execute_any_more_is_damaged(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    OWN_FILES.seal(tmp_path)
    assert OWN_FILES.problem(tmp_path) is None
    program.chmod(0o644)
    assert OWN_FILES.problem(tmp_path) == "program has other executable bits than it was written with"
    manifest = json.loads((tmp_path / MANIFEST_NAME).read_text())
    manifest["files"]["program"] = manifest["files"]["program"][:2]  # as earlier releases wrote it
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(manifest))
    assert OWN_FILES.problem(tmp_path) is None


def test_others_cannot_read_the_results(host: Host) -> None:
    host.evaluate(warm=True)
    modes = {path.name: path.stat().st_mode & 0o077 for path in host.cache.glob(f"{RESULTS_NAME}*")}
    assert set(modes.values()) == {0}, modes

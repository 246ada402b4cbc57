"""The CANN backend from request to result, by real processes; a stand-in replaces tools and devices."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from damages import DAMAGES
from standin_toolkit import Standin, install

from ascend_gym.client import DaemonOptions, LocalDaemon, ZmqEvaluator
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec, SourceFile
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends import cann
from npu_daemon.backends.cann import CannBackend
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.cann import execution, recording
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.in_process import InProcessEvaluator
from npu_daemon.own_files import MANIFEST_NAME, OWN_FILES
from npu_daemon.settings import DaemonSettings

pytestmark = pytest.mark.slow

OPERATOR = Path(__file__).parent.parent / "operators" / "power"
CASE = "small"
ROUNDS = 6


class Bench:
    """Evaluates candidates of one operator on the backend under test."""

    def __init__(self, standin: Standin, cache_dir: Path) -> None:
        self.standin = standin
        self.spec: OpSpec = load_operator("local/power", op_dir=OPERATOR)
        self.settings = CannSettings(
            toolkit=standin.toolkit,
            rounds=ROUNDS,
            max_batches=2,
            clean_bytes=4096,
            build_timeout_s=1.0,
            start_timeout_s=120.0,
        )
        self.cache = cache_dir

    def backend(self, **changes: object) -> CannBackend:
        return CannBackend(self.cache, settings=self.settings.model_copy(update=changes))

    def candidate(self, *directives: str, kernel: tuple[str, str] | None = None) -> Candidate:
        text = self.spec.baseline.kernel_text
        if kernel is not None:
            assert kernel[0] in text
            text = text.replace(kernel[0], kernel[1], 1)
        marks = "".join(f"// standin: {word}\n" for word in directives)
        return self.spec.baseline.rewritten(kernel=marks + text)

    def evaluate(
        self,
        candidate: Candidate,
        protocol: MeasureProtocol | None = None,
        backend: CannBackend | None = None,
        **changes: object,
    ) -> EvalResult:
        evaluator = InProcessEvaluator(backend or self.backend(**changes), self.cache)
        request = request_for(self.spec, candidate, protocol or MeasureProtocol(), (CASE,))
        evaluator.submit(request.model_copy(update={"use_cache": False}))
        ((_, result),) = evaluator.poll(timeout_s=60.0)
        evaluator.close()
        return result

    def kernels(self, candidate: Candidate) -> list[list[str]]:
        """Return what was compiled in each build of a candidate, by the first line of its kernel."""
        mark = candidate.kernel_text.splitlines()[0].removeprefix("// standin: ")
        vendors = self.cache.glob("cann/opp/*/*/opp/vendors/customize/standin")
        own = [each for each in vendors if mark in (each / "directives").read_text().split()]
        return [(each / "kernels").read_text().splitlines() for each in own]

    @property
    def excluded(self) -> Path:
        return self.cache / "cann" / "devices" / "0.excluded"


@pytest.fixture(scope="module")
def standin(simulator_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Standin:
    return install(tmp_path_factory.mktemp("ascend"), simulator_cache)


@pytest.fixture(scope="module")
def cann_cache(simulator_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cann_cache")
    (folder / "toolchain").symlink_to(simulator_cache / "toolchain")
    return folder


@pytest.fixture
def bench(standin: Standin, cann_cache: Path) -> Iterator[Bench]:
    bench = Bench(standin, cann_cache)
    yield bench
    standin.reset()
    bench.excluded.unlink(missing_ok=True)


def _messages(result: EvalResult) -> str:
    return "\n".join(str(each) for each in result.all_diagnostics)


def test_the_baseline_is_built_run_checked_and_timed(bench: Bench, simulator: SimulatorBackend) -> None:
    result = bench.evaluate(bench.spec.baseline)
    assert result.status is Status.OK, _messages(result)
    (case,) = result.cases
    evaluator = InProcessEvaluator(simulator, bench.cache)
    evaluator.submit(request_for(bench.spec, bench.spec.baseline, MeasureProtocol(), (CASE,)))
    ((_, simulated),) = evaluator.poll(timeout_s=60.0)
    evaluator.close()
    assert simulated.latency_us is not None
    assert case.samples_us == pytest.approx([simulated.latency_us] * ROUNDS, rel=1e-4)
    assert case.profile is not None
    assert case.profile.aiv_time > 0
    assert case.accuracy is not None
    assert case.floor_us is not None
    assert result.device is not None
    assert (result.device.backend, result.device.chip, result.device.sandbox) == ("cann", "910B2", "rlimits")
    assert "6 samples, median" in _messages(result)
    assert "baseline" not in _messages(result), "it is not compared with itself"


def test_a_candidate_is_measured_in_turn_with_the_baseline(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("second_kernel"))
    assert result.status is Status.OK, _messages(result)
    assert "of the baseline's time in 1 pairs" in _messages(result)
    alone = bench.evaluate(bench.spec.baseline)
    assert result.latency_us == pytest.approx((alone.latency_us or 0) + 100.0), "every task is billed"


def test_a_launch_finds_in_the_cache_what_the_protocol_says(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in's device takes half the time where launches before have left the data in L2."""
    cold = bench.evaluate(bench.spec.baseline)
    monkeypatch.setattr(execution, "convention_of", lambda protocol: execution.WARM)
    warm = bench.evaluate(bench.spec.baseline)
    assert cold.latency_us is not None
    assert warm.latency_us == pytest.approx(cold.latency_us / 2, rel=1e-4), _messages(warm)
    monkeypatch.setattr(cann, "convention_of", lambda protocol: execution.COLD)
    refused = bench.backend().supports(bench.spec, MeasureProtocol())
    assert refused is not None
    assert "ask for l2-cold or warm" in refused.message


def test_processes_of_others_and_a_missing_clock_are_told(bench: Bench) -> None:
    (bench.standin.state / "user").write_text("4242")
    (bench.standin.state / "clock_mhz").write_text("NA")
    result = bench.evaluate(bench.spec.baseline)
    assert result.status is Status.OK, _messages(result)
    assert "device 0 is shared: processes 4242 of others may have disturbed these times" in _messages(result)
    assert "the profiler tells no clock in 1 batches" in _messages(result)


def test_only_the_kernel_that_is_launched_is_compiled(bench: Bench) -> None:
    """The kernel has two tiling keys; the simulator says which of them the case launches."""
    candidate = bench.candidate("one_kernel")
    result = bench.evaluate(candidate, pair_with_baseline=False)
    assert result.status is Status.OK, _messages(result)
    assert bench.kernels(candidate) == [["column 0 0 0", "key 1"]]


def test_a_device_that_launches_another_kernel_than_the_simulator_gets_all_of_them(bench: Bench) -> None:
    candidate = bench.candidate("other_key")
    result = bench.evaluate(candidate, pair_with_baseline=False)
    assert result.status is Status.OK, _messages(result)
    assert sorted(bench.kernels(candidate)) == [["column 0 0 0", "key 1"], ["column 0 0 0", "key 1", "key 2"]]


def test_the_older_project_and_layout_work_too(simulator_cache: Path, tmp_path: Path) -> None:
    standin = install(tmp_path / "ascend", simulator_cache, "8.2.RC1", old_layout=True)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "toolchain").symlink_to(simulator_cache / "toolchain")
    result = Bench(standin, cache).evaluate(Bench(standin, cache).spec.baseline)
    assert result.status is Status.OK, _messages(result)


def test_a_project_of_an_unknown_template_is_not_the_candidates_fault(bench: Bench) -> None:
    (bench.standin.toolkit / "template").write_text("of tomorrow")
    try:
        result = bench.evaluate(bench.candidate("unique"))
    finally:
        (bench.standin.toolkit / "template").write_text("npu_op")
    assert result.status is Status.INFRA_ERROR, _messages(result)
    assert "its template is not known" in _messages(result)


def test_a_record_of_the_host_has_what_a_maintainer_needs_and_no_secret(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording.getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(recording.platform, "node", lambda: "secrethost")
    monkeypatch.setenv("API_KEY", "swordfish")
    (bench.standin.state / "user").write_text("4242")
    settings = DaemonSettings(backend="cann", cache_dir=bench.cache, cann=bench.settings)
    written = recording.record(settings, tmp_path / "record", "ada at secrethost, 10.1.2.3")
    texts = {name: (tmp_path / "record" / name).read_text() for name in written}
    everything = "\n".join((*texts, *texts.values()))
    for secret in ("ada at", "secrethost", "10.1.2.3", "swordfish", "4242", "python3 "):
        assert secret not in everything
    assert "910B2" in texts["npusmi_info.txt"]
    assert "cmake version 3.22.1" in texts["cmake_version.txt"]
    assert "npu_op_kernel_library" in texts["project/op_kernel/CMakeLists.txt"]
    assert any(name.startswith("profile/") and "asg_l2_clean" in text for name, text in texts.items())
    with pytest.raises(MisuseError, match="is not empty"):
        recording.record(settings, tmp_path / "record", "")


def test_noisy_timings_are_sampled_to_the_limit_and_said_to_be_noisy(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("noisy"))
    assert result.status is Status.OK, _messages(result)
    assert len(result.cases[0].samples_us) == 2 * ROUNDS
    assert "noisy: the interval is wider than 1.0%" in _messages(result)


def test_a_wrong_result_is_incorrect(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate(kernel=("Mul(", "Add(")))
    assert result.status is Status.INCORRECT, _messages(result)


def test_a_compiler_error_is_located_in_the_operator(bench: Bench) -> None:
    text = bench.spec.baseline.kernel_text
    result = bench.evaluate(bench.spec.baseline.rewritten(kernel=text + "\n#error no such unit\n"))
    assert result.status is Status.BUILD_ERROR, _messages(result)
    assert result.all_diagnostics[0].file == "op_kernel/power.cpp"
    assert result.all_diagnostics[0].line == text.count("\n") + 2
    assert "no such unit" in result.all_diagnostics[0].message


def test_a_build_that_does_not_end_is_stopped(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("slow_build"), MeasureProtocol(build_timeout_s=4.0))
    assert result.status is Status.TIMEOUT, _messages(result)


def test_a_kernel_that_does_not_end_is_stopped_and_the_device_stays(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("hang"), MeasureProtocol(run_timeout_s=0.5), start_timeout_s=15.0)
    assert result.status is Status.TIMEOUT, _messages(result)
    assert not bench.excluded.exists()


def test_a_fault_of_the_kernel_is_the_candidates_and_the_device_stays(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate(kernel=("x1Gm[offset]", "x1Gm[offset + (1 << 24)]")))
    assert result.status is Status.RUNTIME_FAULT, _messages(result)
    assert "error 507015" in _messages(result)
    assert not bench.excluded.exists()


def test_a_device_that_fails_is_excluded(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("breaks_device"))
    assert result.status is Status.INFRA_ERROR, _messages(result)
    assert result.charge.evaluations == 0
    assert "the kernel failed on the device" in bench.excluded.read_text()
    again = bench.evaluate(bench.spec.baseline)
    assert again.status is Status.INFRA_ERROR
    assert "no device is left" in _messages(again)


def test_a_device_with_an_alarm_is_excluded(bench: Bench) -> None:
    (bench.standin.state / "health").write_text("Alarm")
    result = bench.evaluate(bench.spec.baseline)
    assert result.status is Status.INFRA_ERROR
    assert "its health is Alarm" in bench.excluded.read_text()


def test_a_low_clock_gives_no_result(bench: Bench) -> None:
    (bench.standin.state / "clock_mhz").write_text("1200")
    result = bench.evaluate(bench.spec.baseline)
    assert result.status is Status.INFRA_ERROR
    assert "the clock was below its rated one in all 2 batches" in _messages(result)


@pytest.mark.parametrize(
    ("directive", "status", "message"),
    [
        ("overruns", Status.RUNTIME_FAULT, "memory of y was written more than 32 bytes behind its end"),
        ("refuses_tiling", Status.TILING_ERROR, "refused the call: error 561002 said by the stand-in"),
        ("no_csv", Status.INFRA_ERROR, "msprof op left no OpBasicInfo.csv"),
    ],
)
def test_other_faults_have_their_status(bench: Bench, directive: str, status: Status, message: str) -> None:
    result = bench.evaluate(bench.candidate(directive))
    assert result.status is status, _messages(result)
    assert message in _messages(result)


def test_the_interface_must_stay(bench: Bench) -> None:
    text = bench.spec.baseline.tiling_text
    member = 'this->Output("y")'
    assert member in text
    other = text.replace(member, 'this->Attr("more").AttrType(OPTIONAL).Float(1.0);\n        ' + member, 1)
    result = bench.evaluate(bench.spec.baseline.rewritten(tiling=other))
    assert result.status is Status.BUILD_ERROR, _messages(result)
    assert "4 parameters, the operator's definition 3" in _messages(result)


def test_a_build_script_among_the_sources_is_refused(bench: Bench) -> None:
    candidate = bench.candidate()
    script = SourceFile(path="op_kernel/CMakeLists.txt", text="execute_process(COMMAND true)\n")
    kernel = candidate.kernel.model_copy(update={"files": (*candidate.kernel.files, script)})
    result = bench.evaluate(candidate.model_copy(update={"kernel": kernel}))
    assert result.status is Status.GUARD_REJECTED, _messages(result)
    assert "op_kernel/CMakeLists.txt: expected sources only" in _messages(result)


@pytest.mark.parametrize(
    ("side", "words", "message"),
    [
        ("tiling", 'static void* opened = std::fopen("/etc/passwd", "r");', "may not touch files"),
        (
            "kernel",
            '__attribute__((constructor)) static void Early() { asm volatile("nop"); }',
            "before its launch",
        ),
    ],
    ids=["tiling", "kernel"],
)
def test_what_the_boundary_refuses_no_device_sees(bench: Bench, side: str, words: str, message: str) -> None:
    candidate = bench.candidate("breaks_device")
    text = candidate.tiling_text if side == "tiling" else candidate.kernel_text
    candidate = candidate.rewritten(**{side: f"{text}\n{words}\n"})
    result = bench.evaluate(candidate, run_unread=True)
    assert result.status is Status.GUARD_REJECTED, _messages(result)
    assert message in _messages(result)
    assert not bench.excluded.exists()


def test_what_the_boundary_cannot_read_runs_only_where_the_settings_say_so(bench: Bench) -> None:
    unknown = bench.candidate("breaks_device", kernel=("Mul(", "MulOfTomorrow("))
    result = bench.evaluate(unknown)
    assert result.status is Status.UNSUPPORTED, _messages(result)
    assert "MulOfTomorrow" in _messages(result)
    assert "run_unread" in _messages(result)
    assert not bench.excluded.exists()
    allowed = bench.evaluate(unknown, run_unread=True)
    assert "the kernel failed on the device" in bench.excluded.read_text(), _messages(allowed)


def test_host_code_that_ends_its_process_is_blamed_and_the_device_stays(bench: Bench) -> None:
    result = bench.evaluate(bench.candidate("exits"), pair_with_baseline=False)
    assert result.status is Status.TILING_ERROR, _messages(result)
    assert "ended its process with exit status 127" in _messages(result)
    assert not bench.excluded.exists()


@pytest.mark.parametrize("first", range(2))
def test_damaged_files_of_the_cache_are_made_again_before_anybody_is_blamed(bench: Bench, first: int) -> None:
    """One file of each folder (builds for both compilers, our programs, values) in one of four ways."""
    before = bench.evaluate(bench.spec.baseline)
    folders = [path.parent for path in bench.cache.rglob(MANIFEST_NAME) if "toolchain" not in path.parts]
    assert {folder.relative_to(bench.cache).parts[0] for folder in folders} == {"builds", "cann", "case_data"}
    for number, folder in enumerate(sorted(folders), first):
        listed = json.loads((folder / MANIFEST_NAME).read_text())["files"]
        names = [name for name in sorted(listed) if (folder / name).exists()]
        DAMAGES[number % len(DAMAGES)](folder / names[(number + first) % len(names)])
    OWN_FILES._seen.clear()  # as in a new process
    after = bench.evaluate(bench.spec.baseline)
    assert (after.status, after.charge.evaluations) == (Status.OK, 1), _messages(after)
    assert after.latency_us == before.latency_us
    assert not bench.excluded.exists()


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("cann/runner/*/*/runner", DAMAGES[0]),
        ("cann/runner/*/*/libasg_l2_clean.so", DAMAGES[1]),
        ("cann/opp/*/*/opp/vendors/customize/op_api/lib/libcust_opapi.so", DAMAGES[2]),
        ("case_data/*/input_0_0.bin", DAMAGES[3]),
    ],
)
def test_damage_while_a_candidate_is_on_its_way_is_not_its_fault(
    bench: Bench, pattern: str, damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, damaged = CannBackend.run, []

    def run_on_damage(*arguments: object, **named: object) -> object:
        if not damaged:
            damaged.extend(bench.cache.glob(pattern))
            for path in damaged:
                damage(path)
        return run(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(CannBackend, "run", run_on_damage)
    result = bench.evaluate(bench.spec.baseline)
    assert damaged
    assert (result.status, result.charge.evaluations) == (Status.OK, 1), _messages(result)
    assert not bench.excluded.exists()


@pytest.mark.parametrize("name", ["lib64/libnnopbase.so", "bin/cmake", "bin/msprof"])
def test_what_the_toolkit_lacks_is_the_host_s_fault_and_excludes_no_device(bench: Bench, name: str) -> None:
    """It goes between the start of the daemon and the candidate."""
    lost = bench.standin.toolkit / name
    backend = bench.backend()
    shutil.rmtree(bench.cache / "cann" / "opp", ignore_errors=True)  # the operator has to be built
    lost.rename(lost.with_suffix(".away"))
    try:
        result = bench.evaluate(bench.spec.baseline, backend=backend)
    finally:
        lost.with_suffix(".away").rename(lost)
    assert (result.status, result.charge.evaluations) == (Status.INFRA_ERROR, 0), _messages(result)
    assert lost.name in _messages(result)
    assert not bench.excluded.exists()
    assert bench.evaluate(bench.spec.baseline, backend=backend).status is Status.OK


def test_a_daemon_serves_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TOOLKIT", bench.standin.toolkit), ("ROUNDS", ROUNDS), ("CLEAN_BYTES", 4096)):
        monkeypatch.setenv(f"NPU_DAEMON_CANN_{name}", str(value))
    options = DaemonOptions(backend="cann", workers=1, cache_dir=bench.cache)
    with LocalDaemon(options) as daemon:
        evaluator = ZmqEvaluator(daemon.address)
        evaluator.submit(request_for(bench.spec, bench.spec.baseline, MeasureProtocol(), (CASE,)))
        ((_, result),) = evaluator.poll(timeout_s=120.0)
        evaluator.close()
    assert result.status is Status.OK, _messages(result)
    assert result.device is not None
    assert result.device.backend == "cann"

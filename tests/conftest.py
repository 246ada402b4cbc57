"""Fixtures shared by all tests: a small operator and an evaluator that answers from the source text."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sanitizers
from hypothesis import HealthCheck, settings
from traces import Pricer

from ascend_gym import cli
from ascend_gym.client import DaemonOptions, LocalDaemon
from ascend_gym.core.config import ENV_CACHE, ENV_CHIP_FILES, ENV_CONNECT_TIMEOUT, ENV_DAEMON, ENV_KEYS
from ascend_gym.core.protocols import Evaluation
from ascend_gym.core.records import (
    Candidate,
    Case,
    CaseResult,
    Charge,
    DeviceInfo,
    Diagnostic,
    DType,
    EvalRequest,
    EvalResult,
    OpSpec,
    Phase,
    Profile,
    SourceFile,
    Sources,
    TensorSpec,
    failed_result,
)
from ascend_gym.core.status import Status, rule_of
from npu_daemon.backends.simulator import SimulatorBackend

BASELINE_LATENCY_US = 100.0

# How long a busy machine takes says nothing about what is tested. The same code always gets the same verdict:
# examples follow from the test alone. `pytest --hypothesis-profile=search` draws others.
settings.register_profile(
    "same examples", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "search", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=500
)
settings.load_profile("same examples")


def make_candidate(tiling: str = "// tiling", kernel: str = "// kernel") -> Candidate:
    """Return a candidate of one file a side."""
    return Candidate(
        host=Sources(files=(SourceFile(path="op_host/toy.cpp", text=tiling),), main="op_host/toy.cpp"),
        kernel=Sources(files=(SourceFile(path="op_kernel/toy.cpp", text=kernel),), main="op_kernel/toy.cpp"),
    )


def make_spec(name: str = "toy", *, tiling: str = "// tiling", kernel: str = "// kernel") -> OpSpec:
    """Return an operator with two cases."""
    tensor = TensorSpec(name="x", dtype=DType.FLOAT16, shapes=((8, 128),))
    cases = tuple(
        Case(case_id=case_id, inputs=(tensor,), outputs=(tensor,)) for case_id in ("small", "large")
    )
    return OpSpec(
        op_id=f"core/{name}",
        op_type=name.title(),
        folder=f"/nowhere/{name}",
        level=1,
        category="elementwise",
        description="a toy",
        auto_sync=False,
        cases=cases,
        baseline=make_candidate(tiling, kernel),
        folder_digest="f" * 64,
    )


def make_profile(duration_us: float) -> Profile:
    """Return a profile of one launch whose vector pipe is busy half of the time."""
    times = {f"aiv_{pipe}_time": duration_us / 2 for pipe in ("vec", "scalar", "mte2", "mte3")}
    ratios = {f"aiv_{pipe}_ratio": 0.5 for pipe in ("vec", "scalar", "mte2", "mte3")}
    counts = dict.fromkeys(("mte2", "mte3", "vec"), 7)
    return Profile(
        task_duration_us=duration_us,
        block_dim=40,
        aiv_time=duration_us,
        aiv_total_cycles=int(duration_us * 1850),
        gm_to_ub_bytes=2048,
        ub_to_gm_bytes=2048,
        **times,
        **ratios,
        **{f"aiv_{pipe}_instructions": count for pipe, count in counts.items()},
    )


def ok_result(request: EvalRequest, latency_us: float) -> EvalResult:
    """Return a measured result of the cases asked for; the geometric mean of both is ``latency_us``."""
    factors = {"small": 0.5, "large": 2.0}
    latencies = {case_id: latency_us * factors[case_id] for case_id in request.case_ids or factors}
    return EvalResult(
        request_digest=request.digest,
        candidate_digest=request.candidate.digest,
        status=Status.OK,
        cases=tuple(
            CaseResult(case_id=name, status=Status.OK, samples_us=(us,), profile=make_profile(us))
            for name, us in latencies.items()
        ),
        charge=Charge(evaluations=1),
    )


class FakeEvaluator:
    """Answers from the sources: ``// latency: 12.5`` anywhere is a latency, ``// status: timeout`` a failure.

    ``// warning: TEXT`` is a diagnostic of sources that are correct.

    Args:
        statuses: statuses to force by the number of the evaluation, counted from 0.
    """

    def __init__(self, statuses: Mapping[int, Status] | None = None) -> None:
        self.statuses = dict(statuses or {})
        self.requests: list[EvalRequest] = []
        self.closed = 0
        self._finished: list[tuple[Evaluation, EvalResult]] = []

    def submit(self, request: EvalRequest) -> Evaluation:
        number = len(self.requests)
        self.requests.append(request)
        evaluation = Evaluation(self, request, str(number))
        self._finished.append((evaluation, self._answer(number, request)))
        return evaluation

    def poll(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        arrived = self.arrived(timeout_s)
        for evaluation, result in arrived:
            evaluation.finish(result)
        return arrived

    def arrived(self, timeout_s: float) -> list[tuple[Evaluation, EvalResult]]:
        finished, self._finished = self._finished, []
        return finished

    def cancel(self, evaluation: Evaluation) -> None:
        self._finished = [pair for pair in self._finished if pair[0] is not evaluation]

    def describe(self) -> DeviceInfo:
        return DeviceInfo(backend="fake", chip="910B2", toolchain_digest="0", sandbox="none", host="here")

    def close(self) -> None:
        self.closed += 1

    def _answer(self, number: int, request: EvalRequest) -> EvalResult:
        text = request.candidate.tiling_text + request.candidate.kernel_text
        named = re.search(r"// status: (\w+)", text)
        status = self.statuses.get(number, Status(named.group(1)) if named else Status.OK)
        if status is not Status.OK:
            message = f"the toy ended as asked, rule {rule_of(status).reward.value}"
            return failed_result(request, status, Diagnostic(phase=Phase.RUN_KERNEL, message=message))
        latency = re.search(r"// latency: ([\d.]+)", text)
        result = ok_result(request, float(latency.group(1)) if latency else BASELINE_LATENCY_US)
        warnings = [
            Diagnostic(phase=Phase.RUN_KERNEL, message=message)
            for message in re.findall(r"// warning: (.+)", text)
        ]
        return result.model_copy(update={"diagnostics": tuple(warnings)})


TOY_MANIFEST = """
[operator]
type = "Toy"
level = 1
category = "elementwise"
description = "Scales [a tensor]."
tiling = "op_host/toy.cpp"
kernel = "op_kernel/toy.cpp"

[tolerance.float16]
atol = 1e-3
rtol = 1e-3
""" + "".join(
    f"""
[[case]]
id = "{case_id}"
attributes = {{ scale = 2.0 }}
[[case.input]]
name = "x"
dtype = "float16"
shape = [{rows}, 128]
[[case.output]]
name = "y"
dtype = "float16"
shape = [{rows}, 128]
"""
    for case_id, rows in (("small", 8), ("large", 1024))
)

TOY_REFERENCE = """
import numpy as np


def reference(inputs, attributes):
    return {"y": inputs["x"].astype(np.float64) * attributes["scale"]}
"""


def pytest_configure(config: pytest.Config) -> None:
    """Keep what is built between test runs; neither read nor write what the user has at home and has set."""
    browsers = Path.home() / ".cache" / "ms-playwright"
    os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(browsers))
    for name in [name for name in os.environ if name.startswith(("XDG_", "NPU_DAEMON_", "OPENAI_"))]:
        del os.environ[name]
    for name in (ENV_DAEMON, ENV_KEYS, ENV_CHIP_FILES, ENV_CONNECT_TIMEOUT):
        os.environ.pop(name, None)
    os.environ["HOME"] = str(config.cache.mkdir("home"))
    os.environ[ENV_CACHE] = str(config.cache.mkdir("simulator"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sanitize",
        action="store_true",
        help="test the simulator itself, built with AddressSanitizer and UndefinedBehaviorSanitizer",
    )
    parser.addoption("--all", action="store_true", help="also tests marked slow")


def _leaves_out_slow(config: pytest.Config) -> bool:
    """Return whether this is a plain run: of no tests in particular, without ``-m`` or ``--all``."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["leaves_out_slow"])
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS or config.getoption("markexpr")
    return not (chosen or config.getoption("all"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let the processes of ``-n`` know what was asked for; they see tests by name."""
    node.workerinput["leaves_out_slow"] = _leaves_out_slow(node.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out of a plain run."""
    if not _leaves_out_slow(config):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    items[:] = [item for item in items if not item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep ten thousand collected tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say that a plain run is not all of it."""
    if _leaves_out_slow(config):
        terminalreporter.write_line("Tests marked slow were left out: pytest --all runs them, too.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Have each process take neighbouring tests with ``-n``, which share what their module sets up."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(scope="session", autouse=True)
def _sanitized(request: pytest.FixtureRequest) -> None:
    """Take the sanitizers for test machines; this process has them preloaded, and compilers need none."""
    if request.config.getoption("--sanitize"):
        sanitizers.machine_flags = sanitizers.SANITIZER_FLAGS
        os.environ.pop("LD_PRELOAD", None)


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_interrupts() -> None:
    """Shells start background jobs with SIGINT ignored, and Python then leaves it so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def toy_folder(tmp_path: Path) -> Path:
    """An operator folder named ``toy`` with cases ``small`` and ``large``."""
    folder = tmp_path / "toy"
    texts = {
        "op.toml": TOY_MANIFEST,
        "reference.py": TOY_REFERENCE,
        "op_host/toy.cpp": "// tiling\n",
        "op_kernel/toy.cpp": "// kernel\nint tile = 1;\n",
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, toy_folder: Path
) -> Callable[..., tuple[object, str, str]]:
    """Run the command line beside the toy; return exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["ascend-gym", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        captured = capsys.readouterr()
        return exit_info.value.code, captured.out, captured.err

    return invoke


@pytest.fixture(scope="session")
def simulator(request: pytest.FixtureRequest) -> SimulatorBackend:
    """Return the real simulator; its toolchain and builds are kept between test runs."""
    return SimulatorBackend(request.config.cache.mkdir("simulator"))


@pytest.fixture(scope="session")
def pricer(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Pricer:
    """Return what prices traces of vector cores that are made by hand."""
    return Pricer(simulator.toolchain.price_program, tmp_path_factory.mktemp("prices"))


@pytest.fixture(scope="session")
def cold_pricer(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Pricer:
    """Return the same for first launches."""
    return Pricer(simulator.toolchain.price_program, tmp_path_factory.mktemp("cold_prices"), cold=True)


@pytest.fixture(scope="session")
def cube_pricer(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Pricer:
    """Return the same for cube cores."""
    folder = tmp_path_factory.mktemp("cube_prices")
    return Pricer(simulator.toolchain.price_program, folder, cube=True)


@pytest.fixture(scope="session")
def simulator_cache(
    simulator: SimulatorBackend, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a cache folder with the simulator's toolchain and without builds and results."""
    cache_dir = tmp_path_factory.mktemp("cache")
    (cache_dir / "toolchain").symlink_to(request.config.cache.mkdir("simulator") / "toolchain")
    return cache_dir


@pytest.fixture(scope="session")
def simulator_daemon(simulator_cache: Path) -> Iterator[str]:
    """Return the address of a daemon with the real simulator."""
    with LocalDaemon(DaemonOptions(workers=1, cache_dir=simulator_cache)) as daemon:
        yield daemon.address


@pytest.fixture
def evaluator(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let commands connect to a fake; it notes addresses and chips asked for, and toolchains built."""
    fake: Any = FakeEvaluator()
    fake.addresses, fake.chips, fake.toolchains = [], [], []

    def connect(address: object, *, options: DaemonOptions) -> Any:
        fake.addresses.append(address)
        fake.chips.append(options.chip)
        return fake

    def obtain_toolchain(cache_dir: Path, announce: Callable[[str], None]) -> None:
        fake.toolchains.append(cache_dir)
        announce("building the simulator")

    monkeypatch.delenv("ASCEND_GYM_DAEMON", raising=False)
    monkeypatch.setattr("ascend_gym.client.connect", connect)
    monkeypatch.setattr("npu_daemon.simulator.toolchain.obtain_toolchain", obtain_toolchain)
    return fake

"""``ascend-gym doctor``: what it finds, what it calls a problem, and what it says to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ascend_gym import __version__
from ascend_gym.cli import doctor
from ascend_gym.core.errors import DaemonUnreachableError
from ascend_gym.core.wheel import compiler_folder

Run = Callable[..., tuple[object, str, str]]


def _checks(run: Run, *options: object) -> tuple[object, dict[str, dict[str, Any]]]:
    status, out, _ = run("doctor", "--json", *options)
    document = json.loads(out)
    assert document["version"] == __version__
    assert document["usable"] == all(each["level"] != "problem" for each in document["checks"])
    return status, {each["name"]: each for each in document["checks"]}


def test_a_host_that_can_simulate_has_no_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_GYM_DAEMON", raising=False)
    status, checks = _checks(run)
    assert status == 0
    assert {"ascend-gym", "compiler", "sandbox", "cache", "open files", "daemons", "CANN"} <= checks.keys()
    assert {"name agents", "name baselines"} <= checks.keys()
    assert "ziglang 0.17.1" in checks["compiler"]["message"]
    text = run("doctor")[1]
    assert f"ok      ascend-gym: {__version__}" in text
    assert "-> for real NPUs: npu-daemon doctor --backend cann" in text


def test_a_missing_compiler_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascend_gym.core.wheel.find_spec", lambda name: None)
    compiler_folder.cache_clear()
    status, checks = _checks(run)
    assert (status, checks["compiler"]["level"]) == (3, "problem")
    assert "install ascend-gym again" in checks["compiler"]["remedy"]
    assert "problem compiler: the package ziglang, whose compiler is needed" in run("doctor")[1]


class Daemon:
    """Stands for an evaluator; ``nowhere`` does not answer."""

    def __init__(self, address: str, **_: object) -> None:
        self.address = address

    def describe(self) -> Any:
        if "nowhere" in self.address:
            raise DaemonUnreachableError(f"no daemon answers at {self.address}")
        return type("Device", (), {"backend": "simulator", "chip": "910B3", "sandbox": "rlimits"})

    def close(self) -> None:
        pass


def test_daemons_have_to_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascend_gym.client.ZmqEvaluator", Daemon)
    status, checks = _checks(run, "--daemon", "tcp://here:1", "--daemon", "tcp://nowhere:1")
    assert status == 3
    assert checks["daemon tcp://here:1"]["message"] == "simulator, chip 910B3, candidates confined by rlimits"
    assert checks["daemon tcp://nowhere:1"]["level"] == "problem"
    assert "npu-daemon serve" in checks["daemon tcp://nowhere:1"]["remedy"]
    monkeypatch.setenv("ASCEND_GYM_DAEMON", "tcp://nowhere:2")
    assert _checks(run)[1]["daemon tcp://nowhere:2"]["level"] == "problem"


def test_what_is_no_address_is_a_problem(run: Run) -> None:
    status, checks = _checks(run, "--daemon", "garbage")
    assert (status, checks["daemon garbage"]["level"]) == (3, "problem")


@pytest.mark.parametrize(("hidden", "level"), [(False, "ok"), (True, "warning")])
def test_other_packages_called_agents_are_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, hidden: bool, level: str
) -> None:
    monkeypatch.setattr(doctor, "strangers", lambda name: ["openai-agents"] if name == "agents" else [])
    monkeypatch.setattr(doctor, "is_hidden", lambda name: hidden and name == "agents")
    status, checks = _checks(run)
    assert (status, checks["name agents"]["level"]) == (0, level)
    assert "openai-agents" in checks["name agents"]["message"]
    assert ("without -e" in checks["name agents"]["remedy"]) is hidden
    assert checks["name baselines"]["message"] == "ours alone"


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the distribution declare packages of which some are here."""
    lines = [
        "numpy>=1.26",
        "tomli>=2; python_version < '3.0'",
        "ray>=2.55 ; extra == 'sweep'",
        'optuna>=4; extra == "knobs"',
        'openevolve<0.5,>=0.4; extra == "openevolve"',
        "ascend-gym[knobs]; extra == 'dev'",
    ]
    monkeypatch.setattr(doctor, "requires", lambda name: lines)


def _installed(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    def version(name: str) -> str:
        if name not in versions:
            raise doctor.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)


@pytest.mark.usefixtures("declared")
def test_extras_are_present_or_absent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, numpy="2.1.0", optuna="4.0", openevolve="0.5.1")
    status, checks = _checks(run)
    assert (status, checks["package versions"]["message"]) == (0, "all 1 that are needed are as asked for")
    assert checks["extra knobs"]["message"] == "optuna 4.0"
    assert checks["extra sweep"]["message"] == "not installed: ray"
    assert "pip install 'ascend-gym[sweep]'" in checks["extra sweep"]["remedy"]
    assert checks["extra openevolve"]["level"] == "warning"
    assert "openevolve 0.5.1 is installed, <0.5,>=0.4 is needed" in checks["extra openevolve"]["message"]
    assert "extra dev" not in checks


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("found", [{}, {"numpy": "1.25.9"}])
def test_a_package_that_is_missing_or_too_old_is_a_problem(
    run: Run, monkeypatch: pytest.MonkeyPatch, found: dict[str, str]
) -> None:
    _installed(monkeypatch, **found)
    status, checks = _checks(run)
    assert (status, checks["package versions"]["level"]) == (3, "problem")
    assert "numpy" in checks["package versions"]["message"]


def test_little_room_for_open_files_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda which: (256, 4096))
    status, checks = _checks(run)
    assert (status, checks["open files"]["level"]) == (0, "warning")
    assert checks["open files"]["remedy"] == "ulimit -n 4096"

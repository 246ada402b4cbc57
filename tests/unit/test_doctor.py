"""What npu-daemon doctor says of hosts with and without NPUs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cann_samples import NPU_SMI_INFO
from conftest import make_candidate, ok_result
from standin_toolkit import install

from ascend_gym.core.records import DeviceInfo, EvalRequest, PhaseSeconds
from npu_daemon import __main__ as command_line
from npu_daemon.cache_folder import RESULTS_NAME
from npu_daemon.cann import checks
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.devices import DevicePool, parse_info
from npu_daemon.doctor import Report, examine
from npu_daemon.settings import DaemonSettings
from npu_daemon.store import SqliteResultStore

Doctor = Callable[..., tuple[object, str]]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Doctor:
    """Run the command; return exit status and standard output."""
    monkeypatch.setenv("NPU_DAEMON_CACHE_DIR", str(tmp_path / "cache"))

    def invoke(*arguments: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["npu-daemon", "doctor", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            command_line.main()
        return exit_info.value.code, capsys.readouterr().out

    return invoke


def _levels(report: Report) -> dict[str, str]:
    return {finding.name: finding.level for finding in report.cann}


def test_a_host_without_npus_can_simulate_and_is_told_what_cann_needs(doctor: Doctor, tmp_path: Path) -> None:
    absent = tmp_path / "none"
    status, text = doctor("--toolkit", absent)
    assert status == 0
    assert "simulator: ready" in text
    assert "simulator's programs: not built yet: the first evaluation does that (about half a minute)" in text
    assert "cann: not usable on this host" in text
    assert f"MISSING toolkit: no CANN toolkit in {absent}" in text
    assert "-> install CANN 8.2 or newer" in text
    assert not (tmp_path / "cache").exists()
    assert doctor("--toolkit", absent, "--backend", "cann")[0] == 1


def test_programs_read_json(doctor: Doctor, tmp_path: Path) -> None:
    status, text = doctor("--toolkit", tmp_path / "none", "--json", "--backend", "cann")
    answer = json.loads(text)
    assert status == 1
    assert answer["simulator"]["usable"] is True
    assert answer["cann"]["usable"] is False
    findings = {each["name"]: each for each in answer["cann"]["findings"]}
    assert findings["toolkit"]["level"] == "missing"
    assert findings["toolkit"]["remedy"]


def test_a_complete_host_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doctor: Doctor) -> None:
    nodes = tmp_path / "dev"
    nodes.mkdir()
    (nodes / "davinci0").touch()
    monkeypatch.setattr(checks, "_DEVICE_NODES", nodes)
    standin = install(tmp_path, tmp_path)
    cann = CannSettings(toolkit=standin.toolkit)
    settings = DaemonSettings(backend="cann", cache_dir=tmp_path / "cache", cann=cann)
    report = examine(settings)
    assert report.usable("cann"), report.as_text()
    assert _levels(report)["runner"] == "ok"
    assert _levels(report)["device 0"] == "ok"

    (standin.toolkit / "bin" / "msopgen").unlink()
    (standin.toolkit / "include" / "acl" / "acl.h").unlink()
    (nodes / "davinci0").unlink()
    DevicePool(tmp_path / "cache" / "cann", cann, "910B2").exclude(0, "it smokes")
    levels = _levels(examine(settings))
    for name in ("msopgen", "runtime", "device nodes", "device 0"):
        assert levels[name] == "missing", levels


def test_a_device_that_others_use_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = tuple(replace(state, pids=(4711,)) for state in parse_info(NPU_SMI_INFO))
    monkeypatch.setattr(checks, "query_devices", lambda kit: busy)
    cann = CannSettings(toolkit=install(tmp_path, tmp_path).toolkit)
    (finding,) = checks.devices(DaemonSettings(cache_dir=tmp_path, cann=cann))
    assert (finding.level, finding.message) == ("warning", "processes 4711 use it")


def test_an_incomplete_toolkit_is_told(tmp_path: Path) -> None:
    (finding,) = checks.toolkit(DaemonSettings(cann=CannSettings(toolkit=tmp_path)))
    assert finding.level == "missing"
    assert "has no set_env.sh" in finding.message
    (tmp_path / "set_env.sh").write_text("echo broken >&2; exit 7\n")
    (finding,) = checks.toolkit(DaemonSettings(cann=CannSettings(toolkit=tmp_path)))
    assert "failed with exit status 7: broken" in finding.message


@pytest.mark.parametrize(
    ("version", "level"), [("8.2.RC1", "ok"), ("9.0.0", "ok"), ("8.1.RC1", "missing"), ("7.0", "missing")]
)
def test_old_toolkits_are_refused(tmp_path: Path, version: str, level: str) -> None:
    root = tmp_path / "latest"
    root.mkdir()
    (root / "set_env.sh").write_text("export ASCEND_HOME_PATH=here\n")
    (root / "ascend_toolkit_install.info").write_text(f"version={version}\n")
    settings = DaemonSettings(cache_dir=tmp_path / "cache", cann=CannSettings(toolkit=root))
    (finding,) = checks.toolkit(settings)
    assert finding.level == level
    assert version in finding.message


def test_devices_of_another_chip_and_unknown_numbers_are_told(tmp_path: Path) -> None:
    standin = install(tmp_path, tmp_path)
    cann = CannSettings(toolkit=standin.toolkit, devices=(0, 1, 7))
    findings = checks.devices(DaemonSettings(cache_dir=tmp_path, chip="910B4", cann=cann))
    messages = [finding.message for finding in findings]
    assert "it is a 910B2, the daemon is set up for 910B4" in messages[0]
    assert messages[1] == "its health is Alarm"
    assert messages[2] == "npu-smi info lists 2 devices, numbered from 0"


def test_the_time_of_a_candidate_is_estimated_by_the_last_ones_of_this_backend(tmp_path: Path) -> None:
    settings = DaemonSettings(cache_dir=tmp_path)
    (before,) = checks.seconds(settings)
    assert "none was evaluated here yet; at most 180 s to build" in before.message
    request = EvalRequest(op_id="core/toy", folder_digest="0", candidate=make_candidate())
    store = SqliteResultStore(tmp_path / RESULTS_NAME)
    for number in range(1, 11):
        device = DeviceInfo(
            backend="cann" if number > 1 else "simulator",
            chip="910B2",
            toolchain_digest="0",
            sandbox="rlimits",
            host="h",
        )
        seconds = PhaseSeconds(build=10.0 * number, run=2.0, price=3.0, total=10.0 * number + 5.0)
        result = ok_result(request, 10.0).model_copy(update={"device": device, "seconds": seconds})
        store.put(str(number), result)
    store.close()
    (after,) = checks.seconds(settings)
    assert "about 65.0 s: 60.0 s to build, 2.0 s to run and 3.0 s to time; nine of ten" in after.message
    assert "nine of ten in 105.0 s (medians of the last 9 that were right); at most 180 s" in after.message

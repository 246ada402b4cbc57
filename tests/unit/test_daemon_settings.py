"""Settings of a daemon: their sources, their order, and complaints that say where the fault is."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from ascend_gym.core.config import daemon_settings as environment_settings
from ascend_gym.core.errors import MisuseError
from npu_daemon.__main__ import JsonLines
from npu_daemon.settings import DaemonSettings, daemon_settings

FILE = """
workers = 3
chip = "910B3"
max_device_seconds = 100.0
[quota]
max_queued = 50
[tenants.alice]
max_running = 2
"""


def test_options_go_before_environment_before_file_before_defaults(tmp_path: Path) -> None:
    config = tmp_path / "daemon.toml"
    config.write_text(FILE)
    settings = daemon_settings(
        {"chip": "910B4", "workers": None}, {"chip": "910B1", "workers": "5", "operators": "a,b"}, config
    )
    assert (settings.chip, settings.workers, settings.max_device_seconds) == ("910B4", 5, 100.0)
    assert settings.operators == ("a", "b")
    assert settings.quota.quota().max_queued == 50
    assert settings.tenants["alice"].quota().max_running == 2
    assert settings.bind == DaemonSettings().bind


@pytest.mark.parametrize(
    ("options", "environment", "text", "complaint"),
    [
        ({}, {}, "wrokers = 2", r"daemon\.toml: wrokers: .*known are bind, backend"),
        (
            {},
            {},
            "[quota]\nmax_queud = 2",
            r"daemon\.toml: quota\.max_queud: .*known are max_running, max_queued",
        ),
        ({}, {}, "workers = 'many'", r"daemon\.toml: workers: .*got 'many'"),
        ({}, {}, "[tenants.a]\nspeed = 1", r"daemon\.toml: tenants\.a\.speed"),
        ({}, {}, "workers =", r"daemon\.toml cannot be read"),
        ({}, {"wrokers": "2"}, "", r"environment: NPU_DAEMON_WROKERS"),
        ({"log_format": "xml"}, {}, "", r"options: log_format"),
        ({"secret_key": Path("x")}, {}, "", r"settings: .*go together"),
        ({}, {}, "[cann]\nspeed = 1", r"daemon\.toml: cann\.speed: .*known are toolkit, tools, devices"),
        ({}, {}, "[cann]\nrounds = 0", r"daemon\.toml: cann\.rounds: .*got 0"),
        ({}, {}, "[cann]\nsampling_s = 900", r"cann\.sampling_s: .*less than or equal to 300"),
        ({}, {"cann_speed": "1"}, "", r"environment: NPU_DAEMON_CANN_SPEED"),
        ({"cann": {"devices": [1, 1]}}, {}, "", r"options: cann\.devices: .*different device numbers"),
    ],
)
def test_faults_are_told_with_their_place(
    tmp_path: Path, options: dict[str, Any], environment: dict[str, str], text: str, complaint: str
) -> None:
    config = tmp_path / "daemon.toml"
    config.write_text(text)
    with pytest.raises(MisuseError, match=complaint):
        daemon_settings(options, environment, config)


def test_settings_of_the_cann_section_come_one_by_one_from_all_sources(tmp_path: Path) -> None:
    config = tmp_path / "daemon.toml"
    config.write_text("backend = 'cann'\n[cann]\nrounds = 5\nwarm_up = 1\ntoolkit = '/file'\n")
    environment = {"cann_warm_up": "2", "cann_devices": "2,3", "devices": "0"}
    settings = daemon_settings({"cann": {"toolkit": Path("/options")}}, environment, config)
    assert (settings.cann.rounds, settings.cann.warm_up) == (5, 2)
    assert (settings.cann.toolkit, settings.cann.devices) == (Path("/options"), (2, 3))
    assert settings.device_count == 2
    assert settings.model_copy(update={"devices": 1}).device_count == 1
    assert DaemonSettings(workers=3).device_count == 3


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match=r"nothing\.toml cannot be read"):
        daemon_settings({}, {}, tmp_path / "nothing.toml")


def test_keys_may_come_from_different_sources(tmp_path: Path) -> None:
    settings = daemon_settings({"secret_key": tmp_path / "k"}, {"allowed_clients": str(tmp_path)}, None)
    assert settings.policy is not None
    assert settings.policy.clients_folder == tmp_path
    assert daemon_settings({}, {}, None).policy is None


def test_the_environment_is_read_by_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPU_DAEMON_MAX_DEVICE_SECONDS", "60")
    assert environment_settings()["max_device_seconds"] == "60"
    assert daemon_settings({}, environment_settings(), None).max_device_seconds == 60.0


def test_each_address_has_a_journal_of_its_own(tmp_path: Path) -> None:
    paths = {DaemonSettings(bind=bind, cache_dir=tmp_path).journal_path for bind in ("ipc:///a", "ipc:///b")}
    assert len(paths) == 2
    assert DaemonSettings(keep_jobs=False, journal=tmp_path).journal_path is None
    assert DaemonSettings(bind="tcp://127.0.0.1:*").journal_path is None
    assert DaemonSettings(journal=tmp_path / "j").journal_path == tmp_path / "j"


def test_json_log_lines_carry_their_fields() -> None:
    record = logging.LogRecord("npu_daemon", logging.INFO, "f", 1, "lost %s", ("it",), None)
    record.fields = {"worker": "worker-1"}
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"], line["worker"]) == ("info", "lost it", "worker-1")

"""Builds of operator packages with the stand-in toolkit: both layouts, both templates of a project."""

from pathlib import Path

import pytest
from standin_toolkit import install

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from npu_daemon.cann import configuration
from npu_daemon.cann.checks import programs
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.opp_build import OppBuild, OppBuilder
from npu_daemon.cann.toolkit import open_toolkit
from npu_daemon.settings import DaemonSettings

SPEC = load_operator("local/power", op_dir=Path(__file__).parent.parent / "operators" / "power")


def built(folder: Path, standin) -> OppBuild:
    settings = CannSettings(toolkit=standin.toolkit)
    builder = OppBuilder(open_toolkit(settings), settings, folder / "builds")
    made = builder.build(SPEC, SPEC.cases[0], SPEC.baseline, MeasureProtocol())
    assert isinstance(made, OppBuild), made
    return made


@pytest.mark.parametrize(("version", "old_layout"), [("9.1.0", False), ("8.2.RC1", True)])
def test_the_project_of_either_template_is_built(tmp_path, version, old_layout):
    standin = install(tmp_path / "ascend", tmp_path, version, old_layout=old_layout)
    assert open_toolkit(CannSettings(toolkit=standin.toolkit)).version == version
    made = built(tmp_path, standin)
    assert made.library.is_file()
    assert "aclnnPowerGetWorkspaceSize" in made.header


def test_a_template_that_is_not_known_is_no_fault_of_the_candidate(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    (standin.toolkit / "template").write_text("of tomorrow")
    with pytest.raises(InfrastructureError, match="its template is not known"):
        built(tmp_path, standin)


def test_options_of_the_wrong_template_do_not_configure(tmp_path, monkeypatch):
    standin = install(tmp_path / "ascend", tmp_path)
    monkeypatch.setattr(
        "npu_daemon.cann.opp_build._options", lambda *_: "add_ops_compile_options(Power OPTIONS -g)\n"
    )
    with pytest.raises(InfrastructureError, match="cmake -S failed with exit status 1"):
        built(tmp_path, standin)


@pytest.mark.parametrize(("version", "level"), [("3.18.4", "missing"), ("3.19.0", "ok"), ("3.31.2", "ok")])
def test_doctor_asks_for_the_first_cmake_with_presets(tmp_path, version, level):
    standin = install(tmp_path / "ascend", tmp_path)
    cmake = standin.toolkit / "bin" / "cmake"
    cmake.write_text(cmake.read_text().replace("cmake version 3.22.1", f"cmake version {version}"))
    settings = DaemonSettings(cache_dir=tmp_path, cann=CannSettings(toolkit=standin.toolkit))
    findings = [each for each in programs(settings) if each.name.startswith("cmake")]
    assert findings[-1].level == level
    assert level == "ok" or "3.19" in findings[-1].remedy


def test_the_toolkit_is_found_where_cann_installs_to(tmp_path, monkeypatch):
    monkeypatch.setattr(configuration, "_INSTALL_FOLDERS", (tmp_path,))
    assert configuration.installed_toolkit() == tmp_path / "cann"
    (tmp_path / "ascend-toolkit" / "latest").mkdir(parents=True)
    assert CannSettings().toolkit == tmp_path / "ascend-toolkit" / "latest"
    (tmp_path / "cann").mkdir()
    assert CannSettings().toolkit == tmp_path / "cann"

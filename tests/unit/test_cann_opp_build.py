"""Builds of operator packages with the stand-in toolkit: both layouts, both templates of a project."""

import json
from pathlib import Path

import pytest
from standin_toolkit import install

from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from npu_daemon.cann import configuration
from npu_daemon.cann.checks import opp_folder, programs
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.instance import Instance, instance_of
from npu_daemon.cann.opp_build import OppBuild, OppBuilder
from npu_daemon.cann.toolkit import open_toolkit
from npu_daemon.settings import DaemonSettings
from npu_daemon.simulator.host_schema import Attribute, HostParameter, OperatorDefinition

SPEC = load_operator("local/power", op_dir=Path(__file__).parent.parent / "operators" / "power")


CASE = SPEC.cases[0]
TWO_COLUMNS = SPEC.baseline.rewritten(
    tiling=SPEC.baseline.tiling_text.replace("{ge::DT_FLOAT}", "{ge::DT_FLOAT16, ge::DT_FLOAT}").replace(
        "{ge::FORMAT_ND}", "{ge::FORMAT_ND, ge::FORMAT_ND}"
    )
)
DEFINITION = OperatorDefinition(
    op_type="Power",
    inputs=tuple(
        HostParameter(name=name, kind="required", types=("DT_FLOAT16", "DT_FLOAT"), formats=("ND", "ND"))
        for name in ("x1", "x2")
    ),
    outputs=(
        HostParameter(name="y", kind="required", types=("DT_FLOAT16", "DT_FLOAT"), formats=("ND", "ND")),
    ),
    attributes=(Attribute(name="modes", type="list_list_int", required=False, default=[[1]]),),
    structures=(),
)
ONE = instance_of(DEFINITION, CASE, 1)
EVERY = Instance()
ALL_KERNELS = ["column 1 1 1", "column 0 0 0", "key 1", "key 2"]


def built(folder: Path, standin, candidate=SPEC.baseline, instance=EVERY, **settings) -> OppBuild:
    settings = CannSettings(toolkit=standin.toolkit, **settings)
    builder = OppBuilder(open_toolkit(settings), settings, folder / "builds")
    made = builder.build(SPEC, CASE, candidate, MeasureProtocol(), instance)
    assert isinstance(made, OppBuild), made
    return made


def kernels(made: OppBuild) -> list[str]:
    return (made.vendor / "standin" / "kernels").read_text().splitlines()


@pytest.mark.parametrize(("version", "old_layout"), [("9.1.0", False), ("8.2.RC1", True)])
def test_the_project_of_either_template_is_built(tmp_path, version, old_layout):
    standin = install(tmp_path / "ascend", tmp_path, version, old_layout=old_layout)
    assert open_toolkit(CannSettings(toolkit=standin.toolkit)).version == version
    made = built(tmp_path, standin)
    assert made.library.is_file()
    assert "aclnnPowerGetWorkspaceSize" in made.header


@pytest.mark.parametrize(
    ("old_layout", "settings", "expected"),
    [
        (False, {}, ["column 0 0 0", "key 1"]),
        (True, {}, ["column 1 1 1", "column 0 0 0", "key 1"]),  # its script knows tiling keys only
        (False, {"single_kernel": False}, ALL_KERNELS),
    ],
)
def test_the_kernel_of_a_case_is_compiled_alone_as_far_as_the_toolkit_can(
    tmp_path, old_layout, settings, expected
):
    version = "8.2.RC1" if old_layout else "9.1.0"
    standin = install(tmp_path / "ascend", tmp_path, version, old_layout=old_layout)
    made = built(tmp_path, standin, TWO_COLUMNS, ONE, **settings)
    assert kernels(made) == expected
    assert bool(made.instance) == (expected != ALL_KERNELS)
    assert kernels(built(tmp_path, standin, TWO_COLUMNS, ONE, **settings)) == expected
    assert kernels(built(tmp_path, standin, TWO_COLUMNS)) == ALL_KERNELS


def test_the_column_of_a_case_is_described_as_the_vendor_s_build_does():
    described = json.loads(ONE.parameters)
    (node,) = described["op_list"]
    assert described["op_type"] == "Power"
    assert node["bin_filename"].startswith("Power_")
    assert [each["dtype"] for each in (*node["inputs"], *node["outputs"])] == ["float32"] * 3
    assert node["inputs"][1] == {
        "name": "x2",
        "index": 1,
        "dtype": "float32",
        "format": "ND",
        "paramType": "required",
        "shape": [-2],
        "format_match_mode": "FormatAgnostic",
    }
    assert node["attrs"] == [{"name": "modes", "dtype": "list_list_int", "value": [[]]}]
    none = DEFINITION.model_copy(update={"inputs": DEFINITION.inputs[:1]})
    assert instance_of(none, CASE, 7) == Instance("", 7)


def test_where_one_kernel_cannot_be_built_alone_all_are(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    text = TWO_COLUMNS.tiling_text + "// standin: needs_all_kernels\n"
    made = built(tmp_path, standin, TWO_COLUMNS.rewritten(tiling=text), ONE)
    assert not made.instance
    assert kernels(made) == ALL_KERNELS


def test_where_the_build_refuses_the_options_it_gets_none(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    (script,) = standin.toolkit.rglob("ascendc_gen_options.py")
    settings = CannSettings(toolkit=standin.toolkit)
    builder = OppBuilder(open_toolkit(settings), settings, tmp_path / "builds")
    assert builder.options == {"--tiling_key", "--input-param-file"}
    script.write_text("knows nothing any more\n")
    for candidate in (TWO_COLUMNS, SPEC.baseline):
        made = builder.build(SPEC, CASE, candidate, MeasureProtocol(), ONE)
        assert isinstance(made, OppBuild)
        assert not made.instance


def test_a_build_that_lacks_a_program_is_no_candidate_s_fault(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    text = TWO_COLUMNS.tiling_text + "// standin: lacks_compiler\n"
    with pytest.raises(InfrastructureError, match=r"lacks one of its programs: .*command not found"):
        built(tmp_path, standin, TWO_COLUMNS.rewritten(tiling=text), ONE)


def test_doctor_refuses_a_folder_that_the_build_takes_for_an_option(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    settings = DaemonSettings(cache_dir=tmp_path / "room", cann=CannSettings(toolkit=standin.toolkit))
    (finding,) = opp_folder(settings)
    assert (finding.level, finding.remedy) == ("missing", "choose another folder with --cache-dir")


def test_a_template_that_is_not_known_is_no_fault_of_the_candidate(tmp_path):
    standin = install(tmp_path / "ascend", tmp_path)
    (standin.toolkit / "template").write_text("of tomorrow")
    with pytest.raises(InfrastructureError, match="its template is not known"):
        built(tmp_path, standin)


def test_options_of_the_wrong_template_do_not_configure(tmp_path, monkeypatch):
    standin = install(tmp_path / "ascend", tmp_path)
    monkeypatch.setattr("npu_daemon.cann.opp_build._options_call", lambda *_: "add_ops_compile_options(Power")
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

"""Chips as data: what they share is told once, and each differs as its sources say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import FakeEvaluator, make_spec

from ascend_gym.cli.sweep_plan import kept_plan
from ascend_gym.core.chips import CHIPS, own_chips, require_chip
from ascend_gym.core.config import ENV_CHIP_FILES
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Convention
from ascend_gym.core.toml_file import read_toml
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.sweep.plan import read_plan
from npu_daemon.simulator import chips
from npu_daemon.simulator.chips import chip_names, load_chip, shipped_digests
from npu_daemon.simulator.task_type import CoreKind

NAMES = ["910B1", "910B2", "910B3", "910B4", "910_93"]
FOLDER = Path(chips.__file__).with_name("chips")


def test_every_chip_is_listed() -> None:
    assert chip_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_chip_has_every_figure_and_every_figure_a_source(name: str) -> None:
    chip = load_chip(name)
    assert set(chip.timing) == set(load_chip("910B1").timing)
    assert all(len(figure.source) > 5 for figure in (*chip.timing.values(), *chip.geometry.values()))
    geometry = chip.tiling_geometry()
    assert geometry.aiv_cores == 2 * geometry.aic_cores


@pytest.mark.parametrize("name", NAMES)
def test_a_chip_gives_only_what_its_base_does_not(name: str) -> None:
    shared = read_toml(FOLDER / "base" / "dav_2201.toml")
    own = read_toml(FOLDER / f"{name}.toml")
    assert not {key for section in shared for key in own.get(section, {}) if key in shared[section]}


@pytest.mark.parametrize(
    ("name", "vector_cores", "clock_mhz"),
    [
        ("910B1", 48, 1850),
        ("910B2", 48, 1800),
        ("910B3", 40, 1800),
        ("910B4", 40, 1500),
        ("910_93", 48, 1850),
    ],
)
def test_cores_and_clock(name: str, vector_cores: int, clock_mhz: int) -> None:
    chip = load_chip(name)
    assert chip.tiling_geometry().aiv_cores == vector_cores
    assert chip.clock_hz == clock_mhz * 1e6


@pytest.mark.parametrize(
    ("kinds", "core_num"), [([CoreKind.VECTOR], 40), ([CoreKind.CUBE], 20), (list(CoreKind), 20)]
)
def test_the_cores_counted_are_those_that_the_kernel_is_built_for(
    kinds: list[CoreKind], core_num: int
) -> None:
    assert load_chip("910B3").tiling_geometry(kinds).core_num == core_num


def test_chips_are_told_apart() -> None:
    assert len({load_chip(name).digest for name in NAMES}) == len(NAMES)


def test_an_unknown_chip_is_refused_with_those_that_exist() -> None:
    with pytest.raises(MisuseError, match=r"no chip is named '910B9'.*there are: 910B1, 910B2"):
        load_chip("910B9")


def test_requests_know_every_chip() -> None:
    assert list(CHIPS) == chip_names()


HALF = """name = "half_clock"
base = "910B2"
[timing]
clock_mhz = { value = 900, source = "half of a 910B2" }
"""


@pytest.fixture
def chip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chip of a user's own; what is known of it in this process is forgotten at the end."""
    monkeypatch.setenv(ENV_CHIP_FILES, "")
    path = tmp_path / "half.toml"
    path.write_text(HALF)
    return path


def test_a_chip_of_one_s_own_is_its_base_but_for_its_figures(chip_file: Path) -> None:
    before = shipped_digests()
    name = require_chip(str(chip_file))
    own, base = load_chip(name), load_chip("910B2")
    assert name.startswith("half_clock@")
    assert own.clock_hz == base.clock_hz / 2
    assert {**own.timing, "clock_mhz": None} == {**base.timing, "clock_mhz": None}
    assert (require_chip("half_clock"), require_chip(name)) == (name, name)
    assert chip_names() == [*NAMES, name]
    assert shipped_digests() == before  # what is stored for other chips stays valid
    chip_file.write_text(HALF.replace("900", "901"))
    assert require_chip("half_clock") != name
    with pytest.raises(MisuseError, match=r"no chip is named .*--chip-file"):
        require_chip(name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            HALF.replace("900", "-3"),
            r"half\.toml: timing\.clock_mhz: expected a number above 0 such as 1800, got -3",
        ),
        (HALF.replace("900", '"fast"'), r"expected a number above 0 .* got 'fast'"),
        (HALF.replace("clock_mhz", "clock_mh"), r"timing\.clock_mh is no figure of a chip.*clock_mhz"),
        (HALF.replace("[timing]", "[timings]"), r"unknown section 'timings'.*timing"),
        (HALF.replace(', source = "half of a 910B2"', ""), r"clock_mhz: expected { value = \.\.\., source"),
        (
            HALF.replace("value", "vaule"),
            r"clock_mhz: unknown key 'vaule', did you mean 'value'\?; expected { value = \.\.\., source",
        ),
        (
            'name = "few"\nbase = "910B2"\n[geometry]\naiv_cores = 24\n',
            r"geometry\.aiv_cores: expected { value = \.\.\., source = .*, got 24",
        ),
        (
            HALF.replace("[timing]", "[geometry]").replace("clock_mhz", "aiv_cores").replace("900", "25"),
            r"half\.toml: geometry: aiv_cores is 25 and aic_cores 24; expected two .*: 48 and 24",
        ),
        (
            HALF.replace("[timing]", "[geometry]").replace("clock_mhz", "aiv_cores").replace("900", "24"),
            r"half\.toml: geometry: aiv_cores is 24 and aic_cores 24; expected two .*: 48 and 24",
        ),
        (HALF.replace('"910B2"', '"910B9"'), "no base is named '910B9'; there are: 910B1"),
        (HALF.replace('"910B2"', '"dav_2201"'), "geometry lacks aic_cores"),
        (
            HALF.replace("[timing]", "[geometry]").replace("clock_mhz", "aiv_cores").replace("900", "1.5"),
            "whole number",
        ),
    ],
)
def test_a_figure_that_cannot_be_is_refused_when_its_chip_is_loaded(
    chip_file: Path, text: str, problem: str
) -> None:
    chip_file.write_text(text)
    with pytest.raises(MisuseError, match=problem):
        load_chip(require_chip(str(chip_file)))
    assert load_chip("910B2").clock_hz == 1800e6


@pytest.mark.parametrize(
    ("section", "figure", "value", "problem"),
    [
        (
            "timing",
            "ub_bytes",
            131072,
            r"timing\.ub_bytes is no figure of \[timing\]; it belongs in \[geometry\]",
        ),
        ("geometry", "clock_mhz", 900, r"no figure of \[geometry\]; it belongs in \[timing\]"),
        ("timing", "hbm_gb_per_s", 2.96, r"expected GB/s such as 1480, .* got 2\.96; is it in TB/s"),
        ("timing", "l2_gb_per_s", 5.2e12, r"expected GB/s such as 5200, .*; is it .* in bytes per second\?"),
        ("geometry", "aiv_cores", 4000, r"expected at most 1024 vector cores, got 4000"),
        (
            "timing",
            "clock_mhz",
            1.8,
            r"timing\.clock_mhz: expected MHz such as 1800, .* got 1\.8; is it in GHz",
        ),
        ("geometry", "ub_bytes", 100001, r"expected bytes such as 196608: a multiple of 32 .* got 100001"),
        ("geometry", "ub_bytes", 192, r"expected bytes such as 196608: .* at least 1024, got 192"),
    ],
)
def test_figures_of_another_section_or_unit_are_refused(
    chip_file: Path, section: str, figure: str, value: float, problem: str
) -> None:
    chip_file.write_text(
        f'name = "other"\nbase = "910B2"\n[{section}]\n{figure} = {{ value = {value}, source = "a guess" }}\n'
    )
    with pytest.raises(MisuseError, match=problem):
        load_chip(require_chip(str(chip_file)))


@pytest.mark.parametrize(("figure", "value"), [("ub_bytes", 131072), ("l0c_bytes", 65536)])
def test_a_chip_may_have_buffers_of_other_sizes(chip_file: Path, figure: str, value: int) -> None:
    chip_file.write_text(
        f'name = "other"\nbase = "910B2"\n[geometry]\n{figure} = {{ value = {value}, source = "a guess" }}\n'
    )
    chip = load_chip(require_chip(str(chip_file)))
    assert getattr(chip.tiling_geometry(), figure) == value


@pytest.mark.parametrize("text", ['base = "910B2"', 'name = "910B2"', 'name = "a b"', "no toml", None])
def test_a_file_without_the_name_of_a_chip_stops_no_other(chip_file: Path, text: str | None) -> None:
    chip_file.unlink() if text is None else chip_file.write_text(text)
    with pytest.raises(MisuseError, match=r"half\.toml"):
        require_chip(str(chip_file))
    assert own_chips() == {}
    assert chip_names() == NAMES


def test_a_chip_of_one_s_own_on_the_command_line(chip_file: Path, run: Any, evaluator: Any) -> None:
    """It is what the daemon is asked for; a file that is wrong ends the command before one is started."""
    name = require_chip(str(chip_file))
    assert run("evaluate", "toy", "--op-dir", "toy", "--chip-file", chip_file)[0] == 0
    assert (evaluator.chips, evaluator.requests[-1].protocol.chip) == ([name], name)
    chip_file.write_text(HALF.replace("900", "0"))
    status, _, err = run("evaluate", "toy", "--op-dir", "toy", "--chip-file", chip_file)
    assert (status, evaluator.chips) == (2, [name])
    assert "clock_mhz: expected a number above 0" in err


def test_an_environment_counts_the_cycles_of_a_chip_of_one_s_own(chip_file: Path) -> None:
    evaluator = FakeEvaluator()
    env = AscendOpEnv(make_spec(), chip=str(chip_file), evaluator=evaluator)
    env.reset(seed=0)
    assert evaluator.requests[0].protocol.chip == require_chip("half_clock")


def test_a_run_on_a_chip_of_one_s_own_is_resumed_without_naming_its_file(
    chip_file: Path, run: Any, evaluator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = ("optimize", "toy", "--op-dir", "toy", "--chip-file", chip_file, "--method", "greedy-rules")
    status, out, _ = run(*searched, "--budget", 1, "--out", "half")
    assert status == 0
    assert any(line.split()[0:1] == ["chip"] and "half_clock@" in line for line in out.splitlines())
    monkeypatch.setenv(ENV_CHIP_FILES, "")
    assert run("resume", "half")[0] == 0
    monkeypatch.setenv(ENV_CHIP_FILES, "")
    chip_file.write_text(HALF.replace("900", "901"))
    status, _, err = run("resume", "half")
    assert (status, f"{chip_file} now has other figures than the run began with" in err) == (2, True)


def test_a_sweep_on_a_chip_of_one_s_own_is_resumed_without_naming_its_file(
    chip_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_plan(None, methods=["greedy-rules"], operators=["gelu"], chips=[str(chip_file), "910B2"])
    kept_plan(tmp_path / "out", plan, resume=False)
    monkeypatch.setenv(ENV_CHIP_FILES, "")
    assert kept_plan(tmp_path / "out", None, resume=True) == plan
    assert own_chips() == {plan.chips[0]: chip_file}
    monkeypatch.setenv(ENV_CHIP_FILES, "")
    chip_file.write_text(HALF.replace("900", "901"))
    with pytest.raises(MisuseError, match="now has other figures than the sweep began with"):
        kept_plan(tmp_path / "out", None, resume=True)
    kept = read_plan(None, methods=["greedy-rules"], operators=["gelu"])
    assert "chip_files" not in kept.model_dump()  # plans of earlier releases are as they were


def test_an_evaluation_on_another_chip_names_it(run: Any, evaluator: Any) -> None:
    asked = ("evaluate", "toy", "--op-dir", "toy")
    assert ["chip", "910B4"] in [line.split() for line in run(*asked, "--chip", "910B4")[1].splitlines()]
    assert not any(line.startswith("chip") for line in run(*asked)[1].splitlines())


def test_conventions_differ_in_what_a_launch_finds() -> None:
    chip = load_chip("910B2")
    cold, l2_cold, warm = (chip.under(convention) for convention in Convention)
    assert l2_cold == chip
    assert warm.launches == 2
    assert "launches 2\n" in warm.pricing_text()
    assert float(warm.timing["code_line_cycles"].value) < 1 < float(chip.timing["code_line_cycles"].value)
    assert float(cold.timing["block_start_us"].value) > float(chip.timing["block_start_us"].value)
    assert len({each.digest for each in (cold, l2_cold, warm)}) == 3

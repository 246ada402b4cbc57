"""Methods from outside the package: named, run, gone on with, and refused with a reason."""

import json
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from ascend_gym.cli import outside_methods
from ascend_gym.cli.variants import variant_name, variant_settings
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status

TOY = ("toy", "--op-dir", "toy")
METHOD = """
from ascend_gym.core.protocols import Proposal


class Halve:
    def __init__(self, setting):
        self.base, self.number = setting.spec.baseline, setting.settings.seed

    def propose(self, limit):
        self.number += 1
        kernel = f"// latency: {100 / 2**self.number}"
        return [Proposal(self.base.rewritten(kernel=kernel), {"kind": "halve"})]

    def observe(self, proposal, result):
        pass

    def close(self):
        pass
"""


@pytest.fixture
def method(tmp_path):
    (tmp_path / "halve.py").write_text(METHOD)
    return "halve.py:Halve"


def test_a_run_of_a_method_in_a_file(run, evaluator, method, tmp_path):
    status, out, _ = run("optimize", *TOY, "--method", method, "--budget", 3, "--json")
    summary = json.loads(out)
    assert status == 0
    assert (summary["method"], summary["evaluations"], summary["speedup"]) == (
        "halve.py:Halve",
        3,
        pytest.approx(8),
    )
    header = json.loads((tmp_path / "runs/toy-Halve-seed0/journal.jsonl").read_text().splitlines()[0])
    assert header["settings"]["method"] == "halve.py:Halve"


def test_it_goes_on_from_another_folder_and_not_when_it_was_changed(
    run, evaluator, method, tmp_path, monkeypatch
):
    run("optimize", *TOY, "--method", method, "--budget", 3, "--out", "whole")
    number = len(evaluator.requests)
    evaluator.statuses[number + 2] = Status.INFRA_ERROR
    run("optimize", *TOY, "--method", method, "--budget", 3, "--out", "broken", "--in-flight", 1)
    monkeypatch.setattr("pathlib.Path.cwd", lambda: tmp_path.parent)
    (tmp_path / "halve.py").write_text(METHOD + "# changed")
    status, _, err = run("resume", "broken")
    assert status == 2
    assert "differs from what is on file in settings" in err
    (tmp_path / "halve.py").write_text(METHOD)
    evaluator.statuses.clear()
    status, _, _ = run("resume", "broken", "--in-flight", 1)
    assert status == 0
    best = json.loads((tmp_path / "broken/summary.json").read_text())["best_latency_us"]
    assert best == json.loads((tmp_path / "whole/summary.json").read_text())["best_latency_us"]


def test_a_sweep_calls_it_by_its_class(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = variant_settings(f"{method}:temperature=0.5", operator="toy")
    assert settings.method == f"{tmp_path / 'halve.py'}:Halve"
    assert variant_name(settings) == "Halve"  # temperature is told by the model's columns
    assert variant_name(variant_settings(f"{method}:islands=2", operator="toy")) == "Halve:islands=2"


def test_an_entry_point_is_a_method(monkeypatch):
    own = EntryPoint("climb", "fractions:Fraction", outside_methods.GROUP)
    monkeypatch.setattr(outside_methods, "entry_points", lambda **wanted: EntryPoints([own]).select(**wanted))
    settings = variant_settings("climb:islands=2", operator="toy")
    assert (settings.method_name, settings.islands) == ("climb", 2)
    assert outside_methods.load("climb")(2) == 2


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("magic", "no method 'magic'; one of your own is FILE.py:CLASS, .*; ours: best-of-n, "),
        ("nowhere.py:Climb", "there is no file .*nowhere.py"),
    ],
)
def test_what_cannot_be_found_is_refused_at_once(run, evaluator, named, reason):
    status, _, err = run("optimize", *TOY, "--method", named)
    assert status == 2
    assert evaluator.requests == []
    with pytest.raises(MisuseError, match=reason):
        variant_settings(named, operator="toy")
    assert "method" in err


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("no_such_module:Climb", "cannot be imported: No module named 'no_such_module'"),
        ("json:Climb", "module 'json' has no attribute 'Climb'"),
        ("sys:version_info", "expected a class or function that takes a Setting"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_reason(named, reason):
    with pytest.raises(MisuseError, match=reason):
        outside_methods.load(named)


def test_a_file_is_loaded_once(method, tmp_path):
    place = f"{tmp_path / 'halve.py'}:Halve"
    assert outside_methods.load(place) is outside_methods.load(place)

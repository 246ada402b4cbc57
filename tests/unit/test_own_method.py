"""Methods from outside the package: named, run, gone on with, and refused with a reason."""

import json
import re
from contextlib import nullcontext
from importlib.metadata import EntryPoint, EntryPoints
from threading import Thread
from types import SimpleNamespace

import pytest
from conftest import FakeEvaluator

from ascend_gym.cli import outside_methods, sweep_child
from ascend_gym.cli.methods import run_settings
from ascend_gym.cli.variants import variant_name, variant_settings
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.status import Status
from ascend_gym.sweep.jobs import RunEnding

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
    assert "halve.py has changed since the run began; put the old file back or begin a new run" in err
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
        ("Best-of-N", "no method 'Best-of-N'; .*; ours: best-of-n, "),
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
    assert err.startswith(f"ascend-gym: --method '{named}': ")
    assert re.search(reason, err)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("no_such_module:Climb", "cannot be imported: No module named 'no_such_module'"),
        ("json:Climb", "json has no class Climb; it has none of its own"),
        ("sys:version_info", "expected a class or function that takes a Setting"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_reason(named, reason):
    with pytest.raises(MisuseError, match=reason):
        outside_methods.load(named)


def test_a_file_is_loaded_once(method, tmp_path):
    place = f"{tmp_path / 'halve.py'}:Halve"
    assert outside_methods.load(place) is outside_methods.load(place)


@pytest.mark.parametrize(
    ("replaced", "by", "told", "evaluations"),
    [
        (
            "        pass\n\n    def close",
            "        1 / 0\n\n    def close",
            "observe: ZeroDivisionError: .*",
            0,
        ),
        (
            "self.number += 1",
            "self.number += self.step if self.number else 1",
            "propose: AttributeError: .*",
            1,
        ),
        (
            "return [Pro",
            "return None and [Pro",
            "propose: TypeError: expected a list of Proposal, got None",
            0,
        ),
        (
            "return [Pro",
            "return {1} or [Pro",
            r"propose: TypeError: expected a list of Proposal, got a value of type set$",
            0,
        ),
        (
            "return [Pro",
            "return [(self.base, {})] or [Pro",
            r"propose: TypeError: expected .*, got a list whose item 0 is of type tuple",
            0,
        ),
        ("def close(self):\n        pass", "def close(self):\n        [][0]", "close: IndexError: .*", 3),
        ("from asc", "raise SystemError\nfrom asc", r"import: SystemError \(halve.py:2\)", None),
    ],
)
def test_its_failure_ends_the_run_with_what_was_found(
    run, evaluator, method, tmp_path, replaced, by, told, evaluations
):
    assert replaced in METHOD
    (tmp_path / "halve.py").write_text(METHOD.replace(replaced, by))
    options = ("--method", method, "--budget", 3, "--out", "run", "--in-flight", 1)
    status, out, err = run("optimize", *TOY, *options)
    assert status == 2
    assert "Traceback" not in err
    assert re.search(f"ascend-gym: method .*halve.py:Halve.* {told}", err.splitlines()[-1])
    if evaluations is not None:
        assert json.loads((tmp_path / "run/summary.json").read_text())["evaluations"] == evaluations
        assert "speedup" in out


def test_a_failure_to_take_the_builder_ends_the_run_too(run, evaluator, method, tmp_path):
    (tmp_path / "halve.py").write_text(f"{METHOD}\n    def use_builder(self, builder):\n        1 / 0\n")
    status, _, err = run("optimize", *TOY, "--method", method, "--out", "run")
    assert status == 2
    assert "failed in use_builder: ZeroDivisionError" in err
    assert json.loads((tmp_path / "run/summary.json").read_text())["stop_reason"] == "method_failed"


def test_settings_of_a_variant_are_part_of_the_identity(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain, islands = (variant_settings(each, operator="toy") for each in (method, f"{method}:islands=2"))
    assert islands.identity() == {**plain.identity(), "islands": 2}
    assert plain.identity() == variant_settings(f"{method}:islands=1", operator="toy").identity()


def test_its_failure_in_a_sweep_refuses_the_run(method, tmp_path, monkeypatch, toy_folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halve.py").write_text(METHOD.replace("self.number += 1", "self.step"))
    settings = run_settings(operator="toy", op_dir=toy_folder, method=method)
    monkeypatch.setattr(sweep_child, "read_settings", lambda folder: settings)
    monkeypatch.setattr(sweep_child, "opened_evaluator", lambda *_: nullcontext(FakeEvaluator()))
    arguments = SimpleNamespace(
        folder=tmp_path,
        daemon=None,
        base_url=None,
        timeout=1.0,
        command=None,
        concurrency=1,
        requests_per_minute=None,
        tokens_per_minute=None,
        in_flight=1,
        across_versions=False,
    )
    ending, message = sweep_child._ending(arguments, lambda step: None, Thread(target=lambda: None))
    assert ending is RunEnding.REFUSED
    assert message.startswith("method halve.py:Halve failed in propose: AttributeError: ")


def test_the_place_of_a_failure_is_told(run, evaluator, method, tmp_path):
    (tmp_path / "halve.py").write_text(
        METHOD.replace("        pass\n\n    def close", "        1 / 0\n\n    def close")
    )
    err = run("optimize", *TOY, "--method", method)[2]
    line = METHOD.splitlines().index("    def observe(self, proposal, result):") + 2
    assert err.endswith(
        f"halve.py:Halve failed in observe: ZeroDivisionError: division by zero (halve.py:{line})\n"
    )


def test_what_lacks_a_function_is_refused_before_anything_is_evaluated(run, evaluator, method, tmp_path):
    (tmp_path / "halve.py").write_text(METHOD.replace("def close", "def shut"))
    status, _, err = run("optimize", *TOY, "--method", method)
    assert status == 2
    assert "method halve.py:Halve has no close: expected the functions propose, observe, close" in err
    assert evaluator.requests == []


def test_a_file_without_the_class_tells_what_it_has(run, method):
    status, _, err = run("optimize", *TOY, "--method", "halve.py:Nope")
    assert status == 2
    assert err == "ascend-gym: halve.py has no class Nope; it has Halve\n"

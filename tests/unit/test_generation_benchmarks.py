"""Benchmarks over the suite ``generate``: which operators they take."""

import runpy
import sys
from pathlib import Path

import pytest

from ascend_gym.rewrites.fenced import sections

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "methods"


def _main(monkeypatch, script, *arguments):
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return runpy.run_path(str(BENCHMARKS / script))["main"]()


@pytest.mark.parametrize(
    ("script", "arguments"), [("multi_kernel_bench.py", ("score", ".")), ("craft_suite.py", ())]
)
def test_an_operator_that_does_not_exist_is_refused_with_those_that_do(
    monkeypatch, capsys, script, arguments
):
    with pytest.raises(SystemExit) as ended:
        _main(monkeypatch, script, *arguments, "--operator", "reluu")
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "invalid choice: 'reluu'" in told
    assert "leaky_relu" in told


def test_an_exported_answer_is_one_fenced_text(monkeypatch, tmp_path):
    assert _main(monkeypatch, "multi_kernel_bench.py", "export", str(tmp_path), "--operator", "relu") == 0
    (path,) = tmp_path.iterdir()
    (section,) = sections(path.read_text(encoding="utf-8"))
    assert section.language == "python"
    assert section.closed

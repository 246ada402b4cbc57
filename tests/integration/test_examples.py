"""The examples of the documentation, run on the real daemon and simulator."""

import inspect
import json
import runpy
from pathlib import Path

import pytest

from ascend_gym import cli
from ascend_gym.core.config import ENV_DAEMON

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"


@pytest.fixture(autouse=True)
def _daemon(simulator_daemon, monkeypatch):
    monkeypatch.setenv(ENV_DAEMON, simulator_daemon)


def _run(name, *arguments, monkeypatch):
    monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_the_random_agent_plays_an_episode(monkeypatch, capsys):
    _run("random_agent.py", "add", 2, monkeypatch=monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("  2 ")
    assert float(lines[2].removeprefix("speedup ")) >= 1.0


def test_the_numeric_loop_learns_from_what_it_tries(monkeypatch, capsys):
    model = _run("learn_predict.py", "add", 1, monkeypatch=monkeypatch)["model"]
    assert float(capsys.readouterr().out.removeprefix("best speedup ")) >= 1.0
    action, _ = model.predict(None, deterministic=True)
    assert model.env.action_space.contains(action)


def test_an_operator_of_ones_own_is_optimised(tmp_path, monkeypatch, capsys):
    _run("custom_operator.py", tmp_path, 2, monkeypatch=monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["ok", "ok"]
    assert float(lines[2].removeprefix("speedup ")) >= 1.0
    assert "AscendC::Max(yLocal, yLocal, xLocal, count);" in (tmp_path / "best.cpp").read_text()


def test_a_method_of_ones_own_searches(tmp_path, monkeypatch, capsys):
    method = f"{EXAMPLES / 'own_method.py'}:Climb"
    command = ("ascend-gym", "optimize", "add", "--method", method, "--budget", "4", "--seed", "1", "--json")
    monkeypatch.setattr("sys.argv", [*command, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["method"], summary["evaluations"]) == ("own_method.py:Climb", 4)
    assert summary["speedup"] >= 1.0


@pytest.mark.parametrize("name", ["random_agent.py", "learn_predict.py", "custom_operator.py"])
def test_examples_need_no_arguments_and_the_page_shows_their_defaults(name):
    example = runpy.run_path(str(EXAMPLES / name))
    defaults = [each.default for each in inspect.signature(example["main"]).parameters.values()]
    assert inspect.Parameter.empty not in defaults
    command = f"python docs/examples/{name} {' '.join(defaults[:2])}"
    assert f"``{command}``" in example["__doc__"]
    assert f"| `{command}` |" in (EXAMPLES.parent / "environment.md").read_text("utf-8")


@pytest.mark.parametrize(
    "name", ["random_agent.py", "learn_predict.py", "custom_operator.py", "own_method.py"]
)
def test_examples_fit_on_a_page(name):
    code = [line for line in (EXAMPLES / name).read_text().splitlines() if line.strip()]
    assert len(code) <= 42

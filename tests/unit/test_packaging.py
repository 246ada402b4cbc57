"""What is installed and what the documents promise agree with the sources."""

import inspect
import re
import shlex
from pathlib import Path

import pytest
from conftest import FakeEvaluator, make_spec
from typer.main import get_command

import ascend_gym
from ascend_gym.cli import app
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.task import Task
from ascend_gym.env.text_observation import PROFILE_FIELDS, observation_space
from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.loader import load_operator

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ENVIRONMENT = (ROOT / "docs/environment.md").read_text("utf-8")
LLM_RL = (ROOT / "docs/llm_rl.md").read_text("utf-8")
OWN_OPERATOR = (ROOT / "docs/own_operator.md").read_text("utf-8")


def _files(root: Path) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def _table_names(text: str, heading: str) -> list[str]:
    table = text.split(heading)[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)`", table, re.MULTILINE)


@pytest.mark.parametrize("package", ["agents", "ascend_gym", "baselines", "npu_daemon"])
def test_the_installed_package_has_every_file(package):
    installed = Path(ascend_gym.__file__).parents[1] / package
    assert _files(ROOT / package) - _files(installed) == set()


def test_ci_runs_the_test_command_of_the_readme():
    command = _blocks(README, "sh")[1].strip().rpartition("&& ")[2]
    assert command.startswith(".venv/bin/pytest ")
    arguments = command.removeprefix(".venv/bin/pytest ")
    assert re.search(rf'^ *"\$bin/pytest" {re.escape(arguments)}$', (ROOT / ".ci/run").read_text(), re.M)


def test_the_main_command_of_the_readme_parses():
    command = _blocks(README, "sh")[0].strip().rpartition("&& ")[2]
    program, name, *arguments = shlex.split(command)
    assert program == ".venv/bin/ascend-gym"
    context = get_command(app).commands[name].make_context(name, arguments)
    assert (context.params["op"], context.params["budget"], context.params["seed"]) == ("gelu", 20, 0)


def test_the_python_example_of_the_readme_changes_the_kernel(monkeypatch, capsys):
    evaluator = FakeEvaluator()
    monkeypatch.setattr("ascend_gym.client.connect", lambda address, options: evaluator)
    exec(compile(_blocks(README, "python")[0], "README.md", "exec"), {})
    baseline, candidate = (request.candidate for request in evaluator.requests)
    assert candidate.kernel_text != baseline.kernel_text
    assert capsys.readouterr().out == "ok reward 0.000, speedup 1.000\n"


def test_the_conversation_of_the_page_is_held(monkeypatch, capsys):
    monkeypatch.setattr("ascend_gym.client.connect", lambda address, options: FakeEvaluator())
    exec(compile(_blocks(LLM_RL, "python")[0], "docs/llm_rl.md", "exec"), {})
    assert capsys.readouterr().out == "ok reward 0.000\n" * 2


def test_environment_page_has_every_argument():
    parameters = {*inspect.signature(AscendOpEnv).parameters, *inspect.signature(Task).parameters}
    assert set(_table_names(ENVIRONMENT, "other processes.\n\n")) == parameters - {"evaluator", "task"}


def test_environment_page_has_every_observation():
    names = _table_names(ENVIRONMENT, "in microseconds.\n\n")
    assert sorted(names) == sorted(observation_space(1, 10, 10).spaces)


def test_environment_page_has_every_info():
    env = AscendOpEnv(make_spec(), evaluator=FakeEvaluator())
    page = ENVIRONMENT.split("`info` holds")[1].split("\n\n")[0]
    assert all(f"`{name}`" in page for name in env.reset()[1])


def test_environment_page_explains_every_profile_field():
    page = ENVIRONMENT.split("field names of msprof:")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", page))
    pipes = [("aiv", pipe) for pipe in ("vec", "scalar", "mte2", "mte3")]
    pipes += [("aic", pipe) for pipe in ("mac", "scalar", "mte1", "mte2", "fixpipe")]
    for core, pipe in pipes:
        named |= {f"{core}_{pipe}_time", f"{core}_{pipe}_ratio"}
    assert named == set(PROFILE_FIELDS)


def test_the_operator_of_the_page_loads_and_its_verdicts_hold(tmp_path):
    files = {
        "op.toml": _blocks(OWN_OPERATOR, "toml")[0],
        "reference.py": _blocks(OWN_OPERATOR, "python")[0],
        "op_host/scale.cpp": "static ge::graphStatus TilingFunc(gert::TilingContext* context);\n",
        "op_kernel/scale.cpp": 'extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y);\n',
    }
    for path, text in files.items():
        (tmp_path / "scale" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "scale" / path).write_text(text, "utf-8")
    spec = load_operator("scale", op_dir=tmp_path / "scale")
    assert [audit_case(spec, case, seed=0) for case in spec.cases] == [[]]

"""Packages of other distributions that are called ``agents`` or ``baselines``: ours are found beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ascend_gym
from ascend_gym.core.own_python import SHARED_NAMES, is_hidden, strangers

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"agents": "agents.ascend_optimizer.settings", "baselines": "baselines.best_of_n"}


def _stranger(folder: Path, name: str) -> Path:
    """Install a package of that name, with a module and the metadata of a distribution, into a folder."""
    package = folder / name
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("from .runner import Runner\n", "utf-8")
    (package / "runner.py").write_text("class Runner:\n    pass\n", "utf-8")
    record = folder / f"other_{name}-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other-{name}\nVersion: 1.0\n", "utf-8")
    (record / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/runner.py,,\n", "utf-8")
    return folder


def _python(script: str, *path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=path[0]
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_no_file_of_ours_lies_where_another_package_has_one(name: str) -> None:
    assert [path.name for path in (ROOT / name).glob("__*__.py")] == []


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_both_work_from_one_folder(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / name, tmp_path / name)
    script = f"from {name} import Runner; import {MODULES[name]} as own; print(own.__file__)"
    assert _python(script, _stranger(tmp_path, name), ROOT).startswith(str(tmp_path))


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_commands_find_ours_where_another_package_hides_it(name: str, tmp_path: Path) -> None:
    script = f"import ascend_gym.cli, {MODULES[name]} as own; from {name} import Runner; print(own.__file__)"
    assert _python(script, _stranger(tmp_path, name), ROOT).startswith(str(ROOT / name))


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_child_processes_find_ours_too(name: str, tmp_path: Path) -> None:
    child = f"def main():\n    import {MODULES[name]} as own; print(own.__file__)\n"
    (tmp_path / "child.py").write_text(child, "utf-8")
    script = "import subprocess; from ascend_gym.core.own_python import own_python_command as command; "
    script += "print(subprocess.run(command('child'), capture_output=True, text=True, check=True).stdout)"
    assert _python(script, _stranger(tmp_path, name), ROOT).startswith(str(ROOT / name))


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_the_other_package_is_named_and_whether_it_hides_ours(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = str(Path(ascend_gym.__file__).parents[1])
    monkeypatch.setattr(sys, "path", [own])
    assert (strangers(name), is_hidden(name)) == ([], False)
    monkeypatch.setattr(sys, "path", [own, str(_stranger(tmp_path, name))])
    assert (strangers(name), is_hidden(name)) == ([f"other-{name}"], True)

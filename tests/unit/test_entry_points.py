"""Packages installed beside ours bring suites and backends by entry points; those here are real, on disk."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from suite_folders import write_files, write_operator

from ascend_gym.core.errors import MisuseError, OperatorNotFoundError
from ascend_gym.suite.loader import is_suite, list_operators, load_operator, suite_names
from npu_daemon.serving import load_backend

Install = Callable[..., str]
_NUMBERS = itertools.count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a package with an operator and a backend, under the names given."""

    def installed(group: str, name: str, value: str = "{package}.operators") -> str:
        package = f"brought_{tmp_path.name.replace('-', '_')}_{next(_NUMBERS)}"
        folder, info = tmp_path / package, f"{package}-1.0.dist-info"
        write_operator(folder / package / "operators" / "twice")
        write_files(
            folder,
            {
                f"{package}/__init__.py": "",
                f"{package}/backend.py": "class Backend:\n    pass\n",
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
                f"{info}/entry_points.txt": f"[{group}]\n{name} = {value.format(package=package)}\n",
            },
        )
        monkeypatch.syspath_prepend(folder)
        return package

    return installed


def test_a_suite_of_another_package_is_loaded_by_its_name(install: Install) -> None:
    assert not is_suite("mine")
    install("ascend_gym.suites", "mine")
    assert is_suite("mine")
    assert "mine" in suite_names()
    assert [spec.op_id for spec in list_operators("mine")] == ["mine/twice"]
    assert load_operator("mine/twice").op_type == "Twice"
    assert load_operator("twice").op_id == "mine/twice"
    with pytest.raises(OperatorNotFoundError, match=r"no suite 'other'.*'mine'"):
        list_operators("other")


def test_a_suite_with_the_name_of_one_of_ours_is_ignored_with_one_warning(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    package = install("ascend_gym.suites", "core")
    for _ in range(2):
        assert load_operator("gelu").op_id == "core/gelu"
    with pytest.raises(OperatorNotFoundError):
        load_operator("core/twice")
    (told,) = caplog.messages
    assert f"'core' of the installed package '{package}' is ignored" in told
    assert "rename it in that package" in told


def test_doctor_calls_a_suite_that_is_ignored_a_problem(
    install: Install, run: Callable[..., tuple[object, str, str]]
) -> None:
    package = install("ascend_gym.suites", "core")
    status, out, _ = run("doctor")
    assert status == 3
    assert re.search(rf"problem suites: .*'{package}' is ignored.*\n?.*-> rename it", out)


def test_a_suite_without_its_package_says_what_to_do(install: Install) -> None:
    install("ascend_gym.suites", "mine", "gone_{package}.operators")
    with pytest.raises(MisuseError, match=r"suite 'mine'.*there is no such package: install"):
        list_operators("mine")


def test_a_backend_of_another_package_is_loaded_by_its_name(install: Install) -> None:
    install("ascend_gym.backends", "board", "{package}.backend:Backend")
    assert load_backend("board").__name__ == "Backend"
    with pytest.raises(MisuseError, match=r"no backend 'bord': use one of \['board', 'cann', 'simulator'"):
        load_backend("bord")

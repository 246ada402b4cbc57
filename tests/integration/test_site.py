"""The site is built without a warning, needs no other host, and its tutorials do what they say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_gym.core.config import ENV_CACHE, ENV_DAEMON

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs").glob("tutorial_*.md"))
_FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?://[^\" >]+)")
_INSTALLS = re.compile(r"^pip install .*\n", re.MULTILINE)  # what the test runs in has been installed
_CALL = "-c 'import sys; from npu_daemon.commands import {0}; sys.exit({0}())'"


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path / "site"): path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    assert len(made) > 40
    elsewhere = {str(path): found for path, text in made.items() if (found := _LOADED.findall(text))}
    assert elsewhere == {}
    assert "AscendOpEnv" in made[Path("reference/api_environment/index.html")]
    assert "--budget" in made[Path("reference/commands/index.html")]


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_command_of_a_tutorial_succeeds(
    page: Path, simulator_daemon: str, simulator_cache: Path, tmp_path: Path
) -> None:
    """Its files are written and its commands run, in order, in one shell and a folder of their own."""
    if page.stem == "tutorial_policy" and not all(map(importlib.util.find_spec, ("torch", "ray"))):
        pytest.skip("training needs torch and ray (extra 'train')")
    (programs := tmp_path / "bin").mkdir()
    calls = {"ascend-gym": _CALL.format("ascend_gym"), "npu-daemon": _CALL.format("npu_daemon"), "python": ""}
    for program, call in calls.items():  # whatever is in PATH, this Python and this copy of the package
        (programs / program).write_text(f"#!/bin/sh\nexec '{sys.executable}' {call} \"$@\"\n")
        (programs / program).chmod(0o755)
    (work := tmp_path / "work").mkdir()
    lines = ["set -eu"]
    for language, title, text in _FENCE.findall(page.read_text("utf-8")):
        if title:
            (work / title).write_text(text)
        elif language == "sh":
            lines.append(_INSTALLS.sub("", text))
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=work,
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            ENV_DAEMON: simulator_daemon,
            ENV_CACHE: str(simulator_cache),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    for figure in re.findall(r"^speedup +([\d.]+)x?$", page.read_text("utf-8"), re.MULTILINE):
        assert figure in done.stdout, (
            f"{page.name} shows a speedup of {figure}; the commands did not print it"
        )

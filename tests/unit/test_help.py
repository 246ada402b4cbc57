"""The help of every command: what it says of each option, and that terminals of 80 columns show it whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import invented_run
from typer.main import get_command
from typer.testing import CliRunner

from ascend_gym.cli import app as ascend_gym
from ascend_gym.sweep.store import ResultsStore
from npu_daemon.__main__ import app as npu_daemon

PROGRAMS = {"ascend-gym": ascend_gym, "npu-daemon": npu_daemon}


def commands_of(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every visible command with the words that call it."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, each in command.commands.items():
        if not each.hidden:
            yield from commands_of(each, *words, name)


COMMANDS = [(name, *each) for name, app in PROGRAMS.items() for each in commands_of(get_command(app))]


@pytest.mark.parametrize(
    ("program", "words", "command"), COMMANDS, ids=[" ".join((name, *words)) for name, words, _ in COMMANDS]
)
def test_help_names_and_explains_every_option(
    program: str, words: tuple[str, ...], command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(PROGRAMS[program], [*words, "-h"]).output
    assert max(map(len, shown.splitlines())) <= 80
    visible = [each for each in command.params if not getattr(each, "hidden", False)]
    named = {name for each in visible for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}
    assert named <= set(shown.replace(",", " ").split())
    assert [each.name for each in visible if not each.help] == []


def test_optimize_has_its_options_in_sections() -> None:
    shown = CliRunner().invoke(ascend_gym, ["optimize", "--help"]).output
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[0] == "Arguments:"
    assert {"Run:", "Limits:", "Model:", "AscendOptimizer:", "AscendCraft:"} < set(headings)
    assert headings[-1] == "Options:"


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_tell_their_version(program: str) -> None:
    assert CliRunner().invoke(PROGRAMS[program], ["--version"]).output.startswith(f"{program} ")


@pytest.mark.parametrize("option", ["--op", "--operator"])
def test_operators_are_chosen_by_either_name(option: str, tmp_path: Path) -> None:
    store = tmp_path / "results.sqlite"
    with ResultsStore(store, write=True) as results:
        for name in ("core/gelu", "core/exp"):
            results.put(invented_run(name, 1, "best-of-n", 0, 2))
    listed = CliRunner().invoke(
        ascend_gym, ["runs", "list", "--store", str(store), option, "core/gelu", "--json"]
    )
    assert [each["op_id"] for each in json.loads(listed.output)["runs"]] == ["core/gelu"]

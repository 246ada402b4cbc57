"""Options in groups: what users of a command see, and what the command gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ascend_gym.core.option_groups import flat, grouped


@dataclass(frozen=True)
class Limits:
    """Two options."""

    tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens.")] = None
    names: Annotated[list[str] | None, typer.Option("--name", help="A name.")] = None


@dataclass(frozen=True)
class Subject:
    """An argument and an option."""

    op: Annotated[str, typer.Argument(metavar="OP")]
    as_json: Annotated[bool, typer.Option("--json")] = False


seen_by_it: list[object] = []
app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
@grouped
def command(subject: Subject, limits: Limits, seed: Annotated[int, typer.Option()] = 3) -> None:
    """Do it."""
    seen_by_it.append((subject, limits, seed))


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["gelu"], (Subject("gelu"), Limits(), 3)),
        (
            ["gelu", "--json", "--tokens", "5", "--name", "a", "--name", "b", "--seed", "1"],
            (Subject("gelu", as_json=True), Limits(5, ["a", "b"]), 1),
        ),
    ],
)
def test_a_command_gets_groups(words: list[str], seen: object) -> None:
    seen_by_it.clear()
    assert CliRunner().invoke(app, words).exit_code == 0
    assert seen_by_it == [seen]


@pytest.mark.parametrize(
    ("words", "told"), [([], "OP"), (["gelu", "--tokens", "0"], "tokens"), (["gelu", "--no"], "--no")]
)
def test_what_is_wrong_with_an_option_is_told_as_ever(words: list[str], told: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert told in result.output


def test_help_has_every_option() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(word in shown for word in ("OP", "--json", "--tokens", "--name", "--seed", "Most tokens"))


def test_groups_are_flat_by_name() -> None:
    assert flat(Subject("gelu"), Limits(1)) == {"op": "gelu", "as_json": False, "tokens": 1, "names": None}

"""Every command that a document shows exists, with the options that it shows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from ascend_gym.cli import app as ascend_gym
from npu_daemon.__main__ import app as npu_daemon

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
PROGRAMS = {"ascend-gym": get_command(ascend_gym), "npu-daemon": get_command(npu_daemon)}
BENCHMARK = re.compile(r"python (benchmarks/[\w/]+\.py)\b(.*)")


def commands_of(page: str) -> Iterator[str]:
    """Yield what blocks (fenced or indented) and code spans show, a command each."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^ {4,}.*\n)+", rest, re.MULTILINE)
    for block in (*fenced, *indented):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            yield from line.split("&&")
    for span in re.findall(r"`([^`]+)`", rest):
        yield " ".join(span.split())


def shown(page: Path) -> list[str]:
    """Return the commands of ours on a page, without what explains them beside."""
    pieces = (
        re.split(r"\s{3,}|\s#\s| \| ", piece.strip())[0] for piece in commands_of(page.read_text("utf-8"))
    )
    commands = (re.sub(r"^(?:\S*/)?bin/", "", piece) for piece in pieces)
    return [each for each in commands if each.split(" ")[0] in PROGRAMS or BENCHMARK.match(each)]


def options_in(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if re.match(r"--\w", word)}


def unknown_parts(command: str) -> set[str]:
    """Return the subcommand or the options of a command that do not exist."""
    benchmark = BENCHMARK.match(command)
    if benchmark:
        script = (ROOT / benchmark[1]).read_text("utf-8")
        return {option for option in options_in(benchmark[2].split()) if f'"{option}"' not in script}
    program, *words = command.split()
    called = PROGRAMS[program]
    while hasattr(called, "commands") and words:
        name = words.pop(0)
        if name not in called.commands:
            return {name}
        called = called.commands[name]
    takes_words = any(each.param_type_name == "argument" for each in called.params)
    if words and not takes_words and words[0].isalnum():
        return {words[0]}
    known = {name for each in called.params for name in (*each.opts, *each.secondary_opts)}
    return options_in(words) - known - {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist_with_their_options(page: Path) -> None:
    unknown = {command: parts for command in shown(page) if (parts := unknown_parts(command))}
    assert unknown == {}


def test_pages_show_commands_and_wrong_ones_are_noticed() -> None:
    assert sum(len(shown(page)) for page in PAGES) > 50
    assert unknown_parts("ascend-gym optimise gelu") == {"optimise"}
    assert unknown_parts("ascend-gym suite list mine") == {"mine"}
    assert unknown_parts("ascend-gym optimize gelu --no-such 1 --seed=2") == {"--no-such"}
    assert unknown_parts("python benchmarks/methods/rules.py --no-such") == {"--no-such"}


def test_the_page_of_the_benchmarks_has_a_line_for_each() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    scripts = {str(path.relative_to(ROOT / "benchmarks")) for path in ROOT.glob("benchmarks/*/*.py")}
    assert set(re.findall(r"^- `([\w/]+\.py)`", page, re.MULTILINE)) == scripts

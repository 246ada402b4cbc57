"""Pages of the site that are made from the sources when it is built: commands, statuses, rules, calls, API.

A hook of MkDocs (``mkdocs.yml``). ``python docs/site/generated_pages.py FOLDER`` writes the same pages there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from typer.main import get_command

from ascend_gym.cli import app as ascend_gym
from ascend_gym.core import config as environment
from ascend_gym.core.config import cache_root
from ascend_gym.core.status import STATUS_RULES
from ascend_gym.core.toml_file import read_toml
from ascend_gym.rewrites.library import REWINDS, RULES
from npu_daemon.__main__ import app as npu_daemon
from npu_daemon.settings import DaemonSettings

ROOT = Path(__file__).resolve().parents[2]
API = {
    "environment": (
        "Environments",
        "whoever writes an agent. `gymnasium.make` takes the arguments of `AscendOpEnv` and of `Task`",
        (
            "env.op_env.AscendOpEnv",
            "env.task.Task",
            "env.vector_env.AscendOpVectorEnv",
            "env.wrappers",
            "env.reward",
        ),
    ),
    "records": (
        "Records",
        "whoever reads results or writes a client. They are frozen, and check themselves when they are made",
        ("core.request_records", "core.evaluation_records", "core.result_records", "core.daemon_records"),
    ),
    "interfaces": (
        "Interfaces, statuses and errors",
        "whoever writes a method, a backend or an evaluator of their own",
        ("core.protocols", "core.status", "core.errors"),
    ),
    "client": ("Daemon client", "whoever evaluates candidates from a program", ("client",)),
    "operators": ("Operators", "whoever loads operators from a program", ("suite.loader",)),
    "search": (
        "Searches and methods",
        "whoever runs searches from a program, or reads their journals",
        (
            *("search.driver.run_search", "search.outcome", "search.journal", "search.ledger"),
            *("agents.ascend_optimizer.agent.AscendOptimizer", "agents.ascend_optimizer.settings"),
            *("agents.ascend_craft.agent.AscendCraft", "agents.ascend_craft.settings"),
            *("baselines.best_of_n.BestOfN", "baselines.iterate.Iterate", "baselines.openevolve.OpenEvolve"),
            *(
                "baselines.gepa.Gepa",
                "baselines.greedy_rules.GreedyRules",
                "baselines.knob_search.KnobSearch",
            ),
            *("baselines.random_rewrites.RandomRewrites", "baselines.ppo_search.PpoSearch"),
        ),
    ),
    "chat": (
        "Conversations",
        "whoever trains language models",
        ("chat.conversation", "chat.session"),
    ),
}
VARIABLES = {
    environment.ENV_DAEMON: "addresses of daemons, with commas between; unset: commands start private ones",
    environment.ENV_CONNECT_TIMEOUT: "seconds that a daemon may be unreachable",
    environment.ENV_CACHE: "folder for builds, inputs, results and the simulator",
    environment.ENV_USER_CACHE: "`ascend-gym` below it is the cache where the variable above is unset",
    environment.ENV_KEYS: "folder of keys; default `~/.config/ascend-gym/keys`",
    environment.ENV_CHIP_FILES: "chip files of your own, separated as in `$PATH`",
    f"{environment.DAEMON_SETTING_PREFIX}NAME": "a setting of the daemon, see below",
    environment.ENV_OPENAI_BASE_URL: "endpoint of language models",
    environment.ENV_OPENAI_API_KEY: "its key",
}


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(_cell(each) for each in line)} |\n" for line in lines)


def commands() -> str:
    """Return the help of every visible command, a heading each."""

    def each(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
        context = command.context_class(command, info_name=name, parent=parent, terminal_width=100)
        if not hasattr(command, "commands"):
            yield context.command_path, command.get_help(context)
        for word, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                yield from each(below, context, word)

    parts = [
        "# Commands\n\n**For**: whoever looks for an option. This is the `--help` of each command. "
        "[Statuses](statuses.md) says how commands end.\n"
    ]
    for name, app in (("ascend-gym", ascend_gym), ("npu-daemon", npu_daemon)):
        parts += [f"## {path}\n\n```text\n{text}\n```\n" for path, text in each(get_command(app), None, name)]
    return "\n".join(parts)


def statuses() -> str:
    """Return the table of statuses, and of exit statuses."""
    rows = [
        (
            f"`{status.value}`",
            rule.blame.value,
            "yes" if rule.charged else "no",
            "yes" if rule.retried else "no",
            rule.reward.value,
        )
        for status, rule in STATUS_RULES.items()
    ]
    ends = [
        ("0", "the command did its job, even if the candidate is bad"),
        ("1", "`--check` found what it looks for"),
        ("2", "misuse, sources that cannot be profiled, or a method of your own that failed"),
        ("3", "broken infrastructure, or no disk space"),
        ("130, 143", "interrupted by SIGINT or SIGTERM; results so far are saved and printed"),
    ]
    return (
        "# Statuses\n\n**For**: whoever reads results. "
        "[Why was my candidate refused?](../refused.md) says what to do.\n\n"
        "How an evaluation, or a case of it, ends:\n\n"
        f"{table(('status', 'who has to act', 'charged to the budget', 'retried', 'reward'), rows)}\n"
        f"## Exit statuses of commands\n\n{table(('status', 'meaning'), ends)}"
    )


def _fields(model: type[BaseModel], section: str = "") -> Iterator[tuple[str, str, str]]:
    told = re.findall(r"^ {8}([\w, ]+): (.+(?:\n {12}.+)*)", model.__doc__ or "", re.MULTILINE)
    notes = {name: note.replace("``", "`") for names, note in told for name in names.split(", ")}
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{name}.")
            continue
        default = (
            "of the host"
            if field.default_factory is cache_root
            else repr(field.get_default(call_default_factory=True))
        )
        if field.is_required():
            default = "required"
        yield f"`{section}{name}`", f"`{default}`", notes.get(name, field.description or "")


def settings() -> str:
    """Return environment variables and the settings of the daemon."""
    return (
        "# Settings\n\n**For**: whoever configures a host.\n\n## Environment variables\n\n"
        f"{table(('variable', 'meaning'), [(f'`{name}`', text) for name, text in VARIABLES.items()])}\n"
        "## Daemon\n\nKeys of the file of `npu-daemon serve --config`; `a.b` is key `b` of section `[a]`. "
        "[The daemon](../daemon.md) shows a file.\n\n"
        f"{table(('key', 'default', 'meaning'), _fields(DaemonSettings))}"
    )


def rules() -> str:
    """Return the rewrite rules."""
    rows = [
        (
            f"`{rule.name}`",
            rule.family.value,
            rule.side.value,
            ", ".join(pipe.value for pipe in rule.effect.pipes),
            rule.effect.summary,
        )
        for rule in RULES
    ]
    back = [(f"`{rule.name}`", rule.family.value, rule.side.value, rule.effect.summary) for rule in REWINDS]
    return (
        '# Rewrite rules\n\n**For**: whoever uses `actions="rules"`, or reads the origin of a proposal. '
        "[What they gain](../rewrite_rules.md) was measured.\n\n"
        f"{table(('rule', 'family', 'side', 'relieves', 'effect'), rows)}\n"
        "## Rewinds\n\nInverses of rules that cannot undo themselves; experience is gathered with them.\n\n"
        f"{table(('rule', 'family', 'side', 'effect'), back)}"
    )


def calls() -> str:
    """Return the calls that prompts explain, and what pages of the documentation forbid."""
    sheet = read_toml(ROOT / "ascend_gym/core/calls.toml")["call"]
    rows = [
        (each["name"], "<br>".join(f"`{form}`" for form in each.get("forms", ())), each.get("notes", ""))
        for each in sheet
    ]
    declared = (ROOT / "npu_daemon/simulator/include/asim/check/contracts.def").read_text("utf-8")
    overlaps = re.findall(r'^CONTRACT\(\w+, "(.+?)", (\w+), "(.+?)"\)', declared, re.MULTILINE)
    ranges = re.findall(
        r'^RANGE\(\w+, "(.+?)", "(.+?)", (.+?), (.+?), (.+?), "(.+?)"\)', declared, re.MULTILINE
    )
    return (
        "# Calls of Ascend C\n\n**For**: whoever writes kernels. These are the calls that prompts explain; "
        "[the simulator](../simulator.md#library-functions) knows more.\n\n"
        f"{table(('call', 'forms', 'what it does'), rows)}\n"
        "## Results and operands\n\nWhether the result of a library call may share memory with its operands. "
        "Apart: not at all. Same: the same place, or apart. Free: as it likes. "
        "Pages are those of asc-devkit, `docs/zh/api/SIMD-API`.\n\n"
        f"{table(('call', 'memory', 'page'), overlaps)}\n"
        "## Ranges\n\n"
        f"{table(('call', 'parameter', 'least', 'most', 'multiple of', 'page'), ranges)}"
    )


def api() -> Iterator[tuple[str, str]]:
    """Yield the pages of the Python interface: names, whose docstrings mkdocstrings fills in."""
    for page, (title, reader, names) in API.items():
        full = (name if name.startswith(("agents", "baselines")) else f"ascend_gym.{name}" for name in names)
        parts = "\n\n".join(f"::: {name}" for name in full)
        yield f"reference/api_{page}.md", f"# {title}\n\n**For**: {reader}.\n\n{parts}\n"


def pages() -> Mapping[str, str]:
    """Return the generated pages by their path below docs."""
    made = {
        "reference/commands.md": commands(),
        "reference/statuses.md": statuses(),
        "reference/settings.md": settings(),
        "reference/rewrite_rules.md": rules(),
        "reference/calls.md": calls(),
    }
    return {**made, **dict(api())}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those that MkDocs found."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


if __name__ == "__main__":
    for path, text in pages().items():
        target = Path(sys.argv[1]) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

"""The commands that the CANN backend runs, against the table of docs/cann.md: neither has others."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from standin_toolkit import Standin, install

from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import load_operator
from npu_daemon.cann import opp_build, recording
from npu_daemon.cann.checks import programs
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.devices import query_devices
from npu_daemon.cann.execution import DeviceHost, DeviceSession
from npu_daemon.cann.instance import Instance
from npu_daemon.cann.measurement import Subject
from npu_daemon.cann.runner_build import build_tools
from npu_daemon.cann.toolkit import PROGRAMS, open_toolkit
from npu_daemon.settings import DaemonSettings

ROOT = Path(__file__).resolve().parents[2]
SPEC = load_operator("local/power", op_dir=ROOT / "tests" / "operators" / "power")
PLACEHOLDER = re.compile(r"<([A-Z]+)>")
STARTS_PROCESSES = re.compile(r"\brun_limited\(|\bsubprocess\b|os\.system|\bPopen\b")


@dataclass(frozen=True)
class Row:
    """A line of the table: a command or a call in a CMakeLists.txt, and what is said of it."""

    texts: tuple[str, ...]
    cells: tuple[str, ...]


def rows() -> list[Row]:
    """Return the table of vendor commands."""
    page = (ROOT / "docs" / "cann.md").read_text("utf-8")
    section = page.split("## Vendor commands", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    split = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [Row(tuple(re.findall(r"`([^`]+)`", cells[0])), cells[1:]) for cells in split]


def pattern_of(text: str) -> re.Pattern[str]:
    """Return what a command of the page matches: ``<X>`` is anything without spaces, ``<MORE>`` anything."""
    parts = PLACEHOLDER.split(text)  # names are every second one
    found = [
        (".*" if part == "MORE" else "[^ ]+") if at % 2 else re.escape(part) for at, part in enumerate(parts)
    ]
    return re.compile("".join(found))


def said(argv: list[str]) -> str:
    """Return a command as the page writes it: files without their folders."""
    words = [Path(word).name if word.startswith("/") else word for word in argv]
    return " ".join(shlex.quote(word) if " " in word else word for word in words)


def process_starters() -> set[str]:
    """Return the modules of the backend that start processes."""
    folder = ROOT / "npu_daemon"
    sources = [*sorted((folder / "cann").glob("*.py")), folder / "backends" / "cann.py"]
    starters = [path for path in sources if STARTS_PROCESSES.search(path.read_text("utf-8"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in starters}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the commands and calls of all that the backend does with a toolkit, by module."""
    found: dict[str, set[str]] = {name: set() for name in process_starters()}
    folder = tmp_path_factory.mktemp("commands")
    with pytest.MonkeyPatch.context() as patch:
        for name in found:
            module = import_module(name)
            run = module.run_limited

            def recorded(argv, *arguments, name=name, run=run, **named):
                found[name].add(said([str(word) for word in argv]))
                return run(argv, *arguments, **named)

            patch.setattr(module, "run_limited", recorded)
        fill = opp_build.fill_project

        def filled(project: Path, *arguments: object) -> None:
            fill(project, *arguments)
            call = (project / "op_kernel" / "CMakeLists.txt").read_text().splitlines()[0]
            options = call.split(" OPTIONS ", 1)[1].rstrip(")").split()
            found["CMakeLists.txt"] |= {call.replace(str(project.parent), ""), *map(said_option, options)}

        found["CMakeLists.txt"] = set()
        patch.setattr(opp_build, "fill_project", filled)
        everything(folder, install(folder / "new", folder))
        older(folder, install(folder / "old", folder, "8.2.RC1", old_layout=True))
    return found


def said_option(option: str) -> str:
    return re.sub(r"=/.*/", "=", option)


def everything(folder: Path, standin: Standin) -> None:
    """Do all that needs the toolkit once."""
    settings = DaemonSettings(
        backend="cann", cache_dir=folder / "cache", cann=CannSettings(toolkit=standin.toolkit)
    )
    kit = open_toolkit(settings.cann)
    programs(settings)
    builder = opp_build.OppBuilder(kit, settings.cann, settings.cache_dir / "cann")
    for instance in (Instance(), Instance(PARAMETERS, 1)):
        made = builder.build(SPEC, SPEC.cases[0], SPEC.baseline, MeasureProtocol(), instance)
        assert isinstance(made, opp_build.OppBuild)
    recording.record(settings, folder / "record", "")
    query_devices(kit)
    tools = partial(build_tools, kit, settings.cann, settings.cache_dir / "cann")
    host = DeviceHost(kit, tools, settings.cann)
    session = DeviceSession(host, 0, 1, MeasureProtocol())
    session.execute(None, folder)

    def profiled(rounds: int, options):
        return session.execute(None, folder, rounds, [kit.program("msprof"), *options])

    Subject(folder, profiled, lambda _: None, warm_up=5).profile(1, ("BasicInfo",))


def older(folder: Path, standin: Standin) -> None:
    """Build with a toolkit of the older template."""
    settings = CannSettings(toolkit=standin.toolkit)
    builder = opp_build.OppBuilder(open_toolkit(settings), settings, folder / "older")
    for instance in (Instance(), Instance(PARAMETERS, 1)):
        made = builder.build(SPEC, SPEC.cases[0], SPEC.baseline, MeasureProtocol(), instance)
        assert isinstance(made, opp_build.OppBuild)


PARAMETERS = """{"op_type": "Power", "op_list": [{"bin_filename": "Power_0",
"inputs": [{"name": "x1", "dtype": "float32"}, {"name": "x2", "dtype": "float32"}],
"outputs": [{"name": "y", "dtype": "float32"}]}]}"""


def test_the_page_lists_what_is_run_and_nothing_else(ran) -> None:
    patterns = {text: pattern_of(text) for row in rows() for text in row.texts}
    commands = sorted(set().union(*ran.values()))
    listed = {
        command: [text for text, pattern in patterns.items() if pattern.fullmatch(command)]
        for command in commands
    }
    assert {command: texts for command, texts in listed.items() if len(texts) != 1} == {}
    unused = set(patterns) - {text for texts in listed.values() for text in texts}
    assert unused == set(), "the page lists commands that nothing runs"


def test_every_module_that_starts_processes_was_seen_to(ran) -> None:
    assert {name for name, commands in ran.items() if not commands} == set()
    assert {each.split(".")[-1] for each in ran} >= {"opp_build", "execution", "devices", "runner_build"}


def test_every_program_is_on_the_page() -> None:
    listed = {text.split()[0] for row in rows() for text in row.texts if "(" not in text and text[0] != "-"}
    assert set(PROGRAMS) <= listed
    assert listed - set(PROGRAMS) == {"bash", "runner", "custom_opp_<NAME>.run"}


def test_each_line_names_document_check_and_that_no_hardware_has_seen_it() -> None:
    assert len(rows()) >= 10
    for row in rows():
        document, check, hardware = row.cells
        assert re.search(r"\d+\.\d|commit [0-9a-f]{8}", document), row
        assert len(check) >= 5, row
        assert hardware == "unverified", row

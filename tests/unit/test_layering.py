"""Imports point one way (docs/architecture.md, rule 10) and no part is too large, read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ascend_gym", "baselines", "agents", "npu_daemon")

# For each part of the project, the parts that it may import; longest prefix wins.
ALLOWED: dict[str, set[str]] = {
    "ascend_gym": set(),
    "ascend_gym.core": {"ascend_gym.core"},
    "ascend_gym.suite": {"ascend_gym.core", "ascend_gym.suite"},
    "ascend_gym.client": {"ascend_gym.core", "ascend_gym.client"},
    "ascend_gym.rewrites": {"ascend_gym.core", "ascend_gym.suite", "ascend_gym.rewrites"},
    "ascend_gym.staged": {"ascend_gym.core", "ascend_gym.suite", "ascend_gym.staged"},
    "ascend_gym.env": {
        "ascend_gym.core",
        "ascend_gym.suite",
        "ascend_gym.client",
        "ascend_gym.rewrites",
        "ascend_gym.env",
    },
    "ascend_gym.search": {
        "ascend_gym.core",
        "ascend_gym.suite",
        "ascend_gym.rewrites",
        "ascend_gym.search",
    },
    "ascend_gym.sweep": {
        "ascend_gym.core",
        "ascend_gym.suite",
        "ascend_gym.client",
        "ascend_gym.search",
        "ascend_gym.sweep",
    },
    "ascend_gym.report": {
        "ascend_gym.core",
        "ascend_gym.suite",
        "ascend_gym.search",
        "ascend_gym.sweep",
        "ascend_gym.report",
    },
    "ascend_gym.chat": {
        "ascend_gym.core",
        "ascend_gym.suite",
        "ascend_gym.env",
        "ascend_gym.search",
        "ascend_gym.chat",
    },
    "ascend_gym.cli": {"ascend_gym", "agents", "baselines", "npu_daemon"},
    "baselines": {"ascend_gym", "baselines"},
    "agents": {"ascend_gym", "agents"},
    "npu_daemon": {"ascend_gym.__version__", "ascend_gym.core", "ascend_gym.suite", "npu_daemon"},
}
# This reads no setting: it hands an allow list of the environment on to child processes.
HANDS_ENVIRONMENT_ON = {"npu_daemon.sandbox.limited_run"}
OPERATOR_FILES = ("ascend_gym/suite/ops", "ascend_gym/suite/generate")
# The parameters of a command are its options, one for each.
COMMANDS = ("ascend_gym.cli", "npu_daemon.__main__")
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MAX_PARAMETERS = 8


class Definition(NamedTuple):
    """A class, or a function with the number of its parameters other than ``self`` and ``cls``."""

    name: str
    parameters: int | None


class Module(NamedTuple):
    """What the rules ask of a source file; broad excepts by line."""

    name: str
    imported: frozenset[str]
    loaded: frozenset[str]
    attributes: frozenset[str]
    broad_excepts: tuple[int, ...]
    definitions: tuple[Definition, ...]


@cache
def _modules() -> tuple[Module, ...]:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    own = [path for path in files if not path.relative_to(ROOT).as_posix().startswith(OPERATOR_FILES)]
    return tuple(_read(_module_name(path), path.read_text("utf-8")) for path in own)


def _read(name: str, source: str) -> Module:
    nodes = list(ast.walk(ast.parse(source, name)))
    return Module(
        name,
        frozenset(_imported(nodes)),
        frozenset(_imported(_run_at_once(nodes[0]))),
        frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        tuple(node.lineno for node in nodes if isinstance(node, ast.ExceptHandler) and _is_broad(node.type)),
        tuple(_definition(node) for node in nodes if isinstance(node, DEFINITIONS)),
    )


def _definition(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Definition:
    if isinstance(node, ast.ClassDef):
        return Definition(node.name, None)
    parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return Definition(node.name, sum(each.arg not in ("self", "cls") for each in parameters))


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(nodes: list[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _run_at_once(node: ast.AST) -> list[ast.AST]:
    """Return the nodes that run when a module is imported: not those of functions and of type checking."""
    typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return []
    return [node, *(each for child in ast.iter_child_nodes(node) for each in _run_at_once(child))]


def _inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _rule_of(module: str) -> str:
    return max((part for part in ALLOWED if _inside(module, part)), key=len)


def _violations(module: Module) -> list[str]:
    allowed = ALLOWED[_rule_of(module.name)]
    project = [name for name in module.imported if name.partition(".")[0] in PACKAGES]
    return [
        f"{module.name} imports {name}"
        for name in project
        if not any(_inside(name, part) for part in allowed)
    ]


def test_imports_point_one_way():
    assert [line for module in _modules() for line in _violations(module)] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ascend_gym.core.records", "from ascend_gym.suite.loader import load_operator"),
        ("ascend_gym.suite.loader", "import ascend_gym.env"),
        ("baselines.best_of_n", "from npu_daemon import pipeline"),
        ("npu_daemon.worker", "def late():\n    from ascend_gym.client import connect"),
        ("ascend_gym", "from ascend_gym import cli"),
    ],
)
def test_the_rule_notices_a_wrong_import(module, source):
    assert len(_violations(_read(module, source))) == 1


def test_no_module_needs_itself_to_be_imported():
    """What a package's ``__init__`` imports counts as its own; imports inside functions come later."""
    names = {module.name for module in _modules()}
    needed = {
        module.name: {
            imported if imported in names else imported.rpartition(".")[0] for imported in module.loaded
        }
        & names - {module.name}
        for module in _modules()
    }
    list(TopologicalSorter(needed).static_order())  # raises CycleError, which names the circle


def test_functions_have_few_parameters():
    too_many = [
        f"{module.name}.{each.name}: {each.parameters} parameters"
        for module in _modules()
        for each in module.definitions
        if (each.parameters or 0) > MAX_PARAMETERS
        and each.name != "__init__"  # of Task: the arguments of gymnasium.make
        and not _is_command(module, each)
    ]
    assert too_many == []


def _is_command(module: Module, definition: Definition) -> bool:
    return module.name.startswith(COMMANDS) and definition.parameters is not None


def test_a_public_class_name_means_one_class():
    modules = defaultdict(list)
    for module in _modules():
        for each in module.definitions:
            if each.parameters is None and not each.name.startswith("_"):
                modules[each.name].append(module.name)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def _users(names: set[str]) -> set[str]:
    return {
        module.name
        for module in _modules()
        if any(_inside(imported, name) for imported in module.imported for name in names)
    }


def test_only_the_environment_imports_gymnasium():
    strangers = {
        module
        for module in _users({"gymnasium"})
        if module != "ascend_gym" and not _inside(module, "ascend_gym.env")
    }
    assert strangers == set()
    assert "ascend_gym.env.op_env" in _users({"gymnasium"})


def test_only_the_configuration_reads_the_process_environment():
    readers = {module.name for module in _modules() if module.attributes & {"environ", "getenv", "environb"}}
    assert "ascend_gym.core.config" in readers
    assert readers - {"ascend_gym.core.config"} <= HANDS_ENVIRONMENT_ON


def test_at_most_five_broad_excepts_in_the_project():
    """The edges to a worker, to authors' code (three), and to Ray, whose late nodes raise Exception."""
    broad = [f"{module.name}:{line}" for module in _modules() for line in module.broad_excepts]
    assert len(broad) <= 5, broad


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        each is None or (isinstance(each, ast.Name) and each.id in ("Exception", "BaseException"))
        for each in kinds
    )


def _loaded_by(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "strangers"),
    [
        (
            "import ascend_gym",
            {
                "pydantic",
                "zmq",
                "openai",
                "ray",
                "torch",
                "rich",
                "scipy",
                "typer",
                "tree_sitter",
                "ml_dtypes",
            },
        ),
        ("import ascend_gym.core.records", {"zmq", "openai", "ray", "torch", "rich", "typer", "tree_sitter"}),
        ("import ascend_gym.env.op_env", {"zmq", "openai", "ray", "torch", "rich", "typer", "tree_sitter"}),
        ("import ascend_gym.cli", {"zmq", "openai", "ray", "scipy", "torch", "tree_sitter"}),
        ("import ascend_gym.cli.results", {"ray", "scipy", "torch"}),
        ("import ascend_gym.report.leaderboard", {"ray", "scipy", "torch"}),
        ("import baselines.openevolve", {"openevolve", "zmq", "openai", "ray", "torch", "tree_sitter"}),
    ],
)
def test_imports_are_light(statement, strangers):
    assert _loaded_by(statement) & strangers == set()

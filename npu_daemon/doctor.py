"""``npu-daemon doctor``: checks of a host for each backend, with advice for each problem."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.cache_check import false_verdicts
from npu_daemon.cann.checks import CANN_CHECKS
from npu_daemon.cann.toolkit import Finding, missing, ok, warning
from npu_daemon.sandbox import RLIMITS, sandbox_level
from npu_daemon.settings import DaemonSettings
from npu_daemon.simulator.compiler import (
    call_tool,
    clang,
    compiler_version,
    system_libraries,
)
from npu_daemon.simulator.toolchain import toolchain_state

_MARKS = {"ok": "ok", "warning": "warning", "missing": "MISSING"}
_MODULES = ("gymnasium", "ml_dtypes", "numpy", "prometheus_client", "pydantic", "tree_sitter", "typer", "zmq")

Section = Literal["simulator", "cann"]
_Check = Callable[[DaemonSettings], list[Finding]]


@dataclass(frozen=True)
class Report:
    """Findings by backend."""

    simulator: tuple[Finding, ...]
    cann: tuple[Finding, ...]

    def usable(self, backend: str) -> bool:
        """Whether nothing is missing for ``backend``; NPUs also need everything that the simulator needs."""
        needed = (*self.simulator, *self.cann) if backend == "cann" else self.simulator
        return all(finding.level != "missing" for finding in needed)

    def as_text(self) -> str:
        """Return the report as text: one line per finding, followed by the advice."""
        lines = []
        for title, findings in (("simulator", self.simulator), ("cann", self.cann)):
            verdict = "ready" if self.usable(title) else "not usable on this host"
            lines.append(f"{title}: {verdict}")
            lines += [f"  {line}" for line in finding_lines(findings, _MARKS)]
        return "\n".join(lines)

    def as_json(self) -> str:
        """Return the report as JSON."""
        sections: dict[Section, tuple[Finding, ...]] = {"simulator": self.simulator, "cann": self.cann}
        return json.dumps(
            {
                name: {"usable": self.usable(name), "findings": [asdict(each) for each in findings]}
                for name, findings in sections.items()
            },
            indent=2,
        )


def finding_lines(findings: Iterable[Finding], marks: Mapping[str, str]) -> list[str]:
    """Return one line per finding, followed by the advice.

    Args:
        findings: findings.
        marks: label of each level.
    """
    width = max(map(len, marks.values()))
    lines = []
    for finding in findings:
        lines.append(f"{marks[finding.level].ljust(width)} {finding.name}: {finding.message}")
        lines += [f"{'':{width}} -> {finding.remedy}"] if finding.remedy else []
    return lines


def examine(settings: DaemonSettings) -> Report:
    """Check this host, changing nothing except for a test file, which is removed.

    A check that fails to run is reported as a finding.
    """
    own: tuple[_Check, ...] = (_modules, _compiler, _simulator, _sandbox, _cache, _verdicts)
    return Report(
        simulator=tuple(finding for check in own for finding in _run(check, settings)),
        cann=tuple(finding for check in CANN_CHECKS for finding in _run(check, settings)),
    )


def _run(check: _Check, settings: DaemonSettings) -> list[Finding]:
    try:
        return check(settings)
    except (InfrastructureError, MisuseError, OSError) as error:
        name = check.__name__.strip("_").replace("_", " ")
        return [missing(name, str(error), "remove what stands in the way, then run doctor again")]


def _modules(settings: DaemonSettings) -> list[Finding]:
    absent = [name for name in _MODULES if find_spec(name) is None]
    if absent:
        return [missing("python packages", f"not installed: {', '.join(absent)}", "pip install ascend-gym")]
    return [ok("python packages", f"all {len(_MODULES)} are installed")]


def _compiler(settings: DaemonSettings) -> list[Finding]:
    """Check the simulator's compiler, which comes as a package, by starting it."""
    try:
        call_tool(clang("--version"))
        system_libraries()
    except InfrastructureError as error:
        remedy = "install ascend-gym again, with its dependencies, for a Python on the GNU C library"
        return [missing("compiler", str(error), remedy)]
    return [ok("compiler", f"{compiler_version()} in {compiler_folder()}")]


def _simulator(settings: DaemonSettings) -> list[Finding]:
    """Say whether the simulator is built; nothing where the compiler is missing (``_compiler``)."""
    try:
        return [ok("simulator's programs", toolchain_state(settings.cache_dir))]
    except InfrastructureError:
        return []


def _sandbox(settings: DaemonSettings) -> list[Finding]:
    level = sandbox_level()
    if level == RLIMITS:
        message = "limits only: candidates can read and write what this user can"
        return [warning("sandbox", message, "use Linux 5.13 or newer (Landlock) or install bubblewrap")]
    return [ok("sandbox", level)]


def _verdicts(settings: DaemonSettings) -> list[Finding]:
    """Say whether stored results blame candidates for damage of this host."""
    try:
        count = false_verdicts(settings.cache_dir)
    except sqlite3.Error as error:
        remedy = "ascend-gym cache clear removes it"
        return [warning("stored results", f"they cannot be read: {error}", remedy)]
    if count:
        message = f"{count} came from damaged files of this host, whatever they say of candidates"
        return [
            warning("stored results", message, "ascend-gym cache verify removes them, and what is damaged")
        ]
    return [ok("stored results", "none came from files that are damaged now")]


def _cache(settings: DaemonSettings) -> list[Finding]:
    folder = settings.cache_dir
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return [
            missing("cache", f"{existing} cannot be written", "set ASCEND_GYM_CACHE to a folder of your own")
        ]
    free_gib = shutil.disk_usage(existing).free / 2**30
    if free_gib < settings.cache_limit_gib:
        message = f"{folder}: {free_gib:.1f} GiB free, the limit of the cache is {settings.cache_limit_gib:g}"
        return [warning("cache", message, "lower cache_limit_gib or make room")]
    return [ok("cache", f"{Path(folder)}: {free_gib:.1f} GiB free")]

"""``ascend-gym doctor``: checks of this host and its packages, with advice for each problem."""

from __future__ import annotations

import platform
import re
import resource
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascend_gym import __version__
from ascend_gym.cli.options import EXIT_INFRASTRUCTURE, Json
from ascend_gym.core.config import daemon_settings as environment_settings
from ascend_gym.core.config import default_daemon_addresses
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.own_python import DISTRIBUTION, SHARED_NAMES, is_hidden, strangers
from ascend_gym.report.summary import to_json
from ascend_gym.suite.loader import ignored_suites, suite_names

if TYPE_CHECKING:
    from npu_daemon.cann.toolkit import Finding
    from npu_daemon.doctor import Report

_LEVELS = {"ok": "ok", "warning": "warning", "missing": "problem"}
_CONNECT_TIMEOUT_S = 5.0
_READY_TIMEOUT_S = 10.0
_FEWEST_FILES = 1024
_DEVELOPMENT = frozenset({"dev", "test"})
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?([^;]*)(?:;(.*))?$")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_BOUND = re.compile(r"(>=|<)\s*([\d.]+)")


@dataclass(frozen=True)
class Examination:
    """Input of the checks.

    Attributes:
        daemons: addresses of daemons that should answer.
        host: findings of the daemon's own checks on this host.
    """

    daemons: tuple[str, ...]
    host: Report


def doctor(
    daemon: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDR", help="Daemon that should answer; default $ASCEND_GYM_DAEMON; repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check compiler, sandbox, packages, cache, daemons and NPUs, and print advice.

    Exit status 3: there is a problem.
    """
    from npu_daemon.doctor import examine, finding_lines
    from npu_daemon.settings import daemon_settings

    host = examine(daemon_settings({}, environment_settings(), None))
    examination = Examination(tuple(daemon or default_daemon_addresses()), host)
    findings = [finding for check in CHECKS for finding in check(examination)]
    usable = all(finding.level != "missing" for finding in findings)
    if as_json:
        checks = [{**asdict(each), "level": _LEVELS[each.level]} for each in findings]
        typer.echo(to_json({"version": __version__, "usable": usable, "checks": checks}))
    else:
        typer.echo("\n".join(finding_lines(findings, _LEVELS)))
    raise typer.Exit(0 if usable else EXIT_INFRASTRUCTURE)


def _versions(examination: Examination) -> list[Finding]:
    """Report the versions that a bug report needs."""
    from npu_daemon.cann.toolkit import ok

    system = (
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {platform.machine()}"
    )
    return [ok(DISTRIBUTION, f"{__version__}, {system}")]


def _requirements(examination: Examination) -> list[Finding]:
    """Compare the required packages with their required versions."""
    from npu_daemon.cann.toolkit import missing, ok, warning

    needed = [each for each in _declared() if each.extra is None]
    if not needed:
        remedy = "pip install ascend-gym, or pip install -e . in a clone"
        return [
            warning(
                "package versions", "ascend-gym runs without being installed: versions are unknown", remedy
            )
        ]
    wrong = [told for each in needed if (told := each.complaint())]
    if wrong:
        return [missing("package versions", "; ".join(wrong), "pip install --upgrade ascend-gym")]
    return [ok("package versions", f"all {len(needed)} that are needed are as asked for")]


def _extras(examination: Examination) -> list[Finding]:
    """Report for each extra whether its packages are installed; none is required."""
    from npu_daemon.cann.toolkit import Finding, ok, warning

    findings = []
    by_extra: dict[str, list[_Requirement]] = {}
    for each in _declared():
        if each.extra is not None and each.extra not in _DEVELOPMENT:
            by_extra.setdefault(each.extra, []).append(each)
    for extra, packages in sorted(by_extra.items()):
        install = f"pip install 'ascend-gym[{extra}]'"
        absent = [each.name for each in packages if each.installed() is None]
        wrong = [told for each in packages if each.installed() and (told := each.complaint())]
        if wrong:
            findings.append(warning(f"extra {extra}", "; ".join(wrong), f"{install} --upgrade"))
        elif absent:
            findings.append(
                Finding(
                    f"extra {extra}",
                    "ok",
                    f"not installed: {', '.join(absent)}",
                    f"if you need it: {install}",
                )
            )
        else:
            findings.append(
                ok(f"extra {extra}", ", ".join(f"{each.name} {each.installed()}" for each in packages))
            )
    return findings


def _shared_names(examination: Examination) -> list[Finding]:
    """Look for other distributions with the same package names as ours."""
    from npu_daemon.cann.toolkit import ok, warning

    findings = []
    for name in SHARED_NAMES:
        others = ", ".join(strangers(name))
        if is_hidden(name):
            message = (
                f"{others or 'a package elsewhere'} hides ours from imports; commands find ours all the same"
            )
            remedy = "install ascend-gym without -e, or import ascend_gym.cli first in programs of your own"
            findings.append(warning(f"name {name}", message, remedy))
        elif others:
            findings.append(ok(f"name {name}", f"shared with {others}; both can be imported"))
        else:
            findings.append(ok(f"name {name}", "ours alone"))
    return findings


def _suites(examination: Examination) -> list[Finding]:
    """Report suites of other packages that cannot be used."""
    from npu_daemon.cann.toolkit import missing, ok

    ignored = [message.split(": ", 1) for message in ignored_suites()]
    if not ignored:
        return [ok("suites", ", ".join(suite_names()))]
    return [missing("suites", message, remedy) for message, remedy in ignored]


def _host(examination: Examination) -> list[Finding]:
    """Return the findings of the daemon's checks of compiler, sandbox and cache."""
    return list(examination.host.simulator)


def _open_files(examination: Examination) -> list[Finding]:
    """Check the limit of open files, which many environments in one process reach first."""
    from npu_daemon.cann.toolkit import ok, warning

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < _FEWEST_FILES:
        message = f"a process may have {limit}, little for many environments at a time"
        return [warning("open files", message, f"ulimit -n {most}")]
    return [ok("open files", f"a process may have {limit}")]


def _daemons(examination: Examination) -> list[Finding]:
    """Ask each daemon for its device."""
    from npu_daemon.cann.toolkit import ok

    if not examination.daemons:
        return [ok("daemons", "none is named: commands start a private one")]
    return [_daemon(address) for address in examination.daemons]


def _daemon(address: str) -> Finding:
    from ascend_gym.client import ZmqEvaluator
    from npu_daemon.cann.toolkit import missing, ok

    name = f"daemon {address}"
    try:
        evaluator = ZmqEvaluator(
            address, connect_timeout_s=_CONNECT_TIMEOUT_S, ready_timeout_s=_READY_TIMEOUT_S
        )
    except AscendGymError as error:
        return missing(name, str(error), "correct the address: tcp://HOST:PORT or ipc:///PATH")
    try:
        device = evaluator.describe()
    except AscendGymError as error:
        return missing(
            name, str(error), f"start it there: npu-daemon serve --bind {address}; or name another"
        )
    finally:
        evaluator.close()
    return ok(name, f"{device.backend}, chip {device.chip}, candidates confined by {device.sandbox}")


def _cann(examination: Examination) -> list[Finding]:
    """Summarise the daemon's checks for real NPUs, which are optional."""
    from npu_daemon.cann.toolkit import Finding, ok, warning

    lacking = [finding for finding in examination.host.cann if finding.level == "missing"]
    if not lacking:
        return [ok("CANN", "ready for npu-daemon serve --backend cann")]
    more = "npu-daemon doctor --backend cann says all that is needed"
    if any(finding.name == "toolkit" for finding in lacking):
        return [
            Finding("CANN", "ok", "no toolkit here: operators run on the simulator", f"for real NPUs: {more}")
        ]
    return [warning("CANN", f"incomplete: {lacking[0].name}: {lacking[0].message}", more)]


CHECKS: Sequence[Callable[[Examination], list[Finding]]] = (
    _versions,
    _requirements,
    _host,
    _open_files,
    _daemons,
    _cann,
    _shared_names,
    _suites,
    _extras,
)


@dataclass(frozen=True)
class _Requirement:
    """A dependency of ascend-gym, required or of an extra."""

    name: str
    bounds: str
    extra: str | None

    def installed(self) -> str | None:
        """Return the installed version; ``None`` if it is missing."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None

    def complaint(self) -> str:
        """Return what is wrong with the installed version; an empty string if nothing."""
        found = self.installed()
        if found is None:
            return f"{self.name} is not installed"
        bounds = [(sign, _numbers(bound)) for sign, bound in _BOUND.findall(self.bounds)]
        fits = all((_numbers(found) >= bound) == (sign == ">=") for sign, bound in bounds)
        return "" if fits else f"{self.name} {found} is installed, {self.bounds.strip()} is needed"


def _declared() -> list[_Requirement]:
    """Return the dependencies of the installed distribution for this Python; empty without one."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []
    found = [_REQUIREMENT.match(line) for line in lines]
    parts: list[tuple[Any, ...]] = [each.groups() for each in found if each is not None]
    return [
        _Requirement(name, bounds, extra[1] if (extra := _EXTRA.search(marker or "")) else None)
        for name, bounds, marker in parts
        if name != DISTRIBUTION and _is_for_this_python(marker or "")
    ]


def _is_for_this_python(marker: str) -> bool:
    """Return whether a marker applies to this Python version; markers only use the minor version."""
    asked = re.search(r"""python_version\s*(>=|<)\s*['"]([\d.]+)['"]""", marker)
    if asked is None:
        return True
    return (_numbers(platform.python_version()) >= _numbers(asked[2])) == (asked[1] == ">=")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release numbers of a version, for comparison."""
    numbers = tuple(int(part) for part in re.match(r"[\d.]*", text)[0].rstrip(".").split(".") if part)  # type: ignore[index]
    return numbers + (0,) * (4 - len(numbers))

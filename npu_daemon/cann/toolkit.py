"""The CANN toolkit of this host: location, version, programs, their environment, and findings about it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.sandbox import ResourceLimits, run_limited

Level = Literal["ok", "warning", "missing"]

OLDEST_VERSION = (8, 2)
PROGRAMS = ("cmake", "msopgen", "bisheng", "msprof", "npu-smi", "g++")
HEADERS = ("include/acl/acl.h", "include/aclnn/acl_meta.h")
LIBRARIES = ("lib64/libascendcl.so", "lib64/libnnopbase.so")
DRIVER_LIBRARIES = tuple(Path("/usr/local/Ascend/driver/lib64", part) for part in ("", "common", "driver"))
_INSTALL_INFO = "ascend_toolkit_install.info"
_VERSION_FOLDERS = ("", "compiler", "share/info/compiler", "share/info/asc-devkit")
_SET_ENV = ("set_env.sh", "../set_env.sh", "bin/setenv.bash")
_VERSION_LINE = re.compile(r"^\s*version\s*=\s*(\S+)", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(r"(\d+)\.(\d+)")
_KEPT = re.compile(r"PATH|LD_LIBRARY_PATH|PYTHONPATH|TOOLCHAIN_HOME|ASCEND_\w+")
_SET_ENV_LIMITS = ResourceLimits(wall_s=20.0, cpu_s=20.0, memory_bytes=4 << 30, file_bytes=1 << 20)


@dataclass(frozen=True)
class Finding:
    """One line of ``npu-daemon doctor``.

    Attributes:
        name: what was checked.
        level: severity; ``missing`` prevents the backend from working.
        message: what was found.
        remedy: advice; empty if nothing is wrong.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""


def ok(name: str, message: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(name, "ok", message)


def warning(name: str, message: str, remedy: str) -> Finding:
    """Return the finding of something that works, but not as well as it could."""
    return Finding(name, "warning", message, remedy)


def missing(name: str, message: str, remedy: str) -> Finding:
    """Return the finding of something that the backend cannot work without."""
    return Finding(name, "missing", message, remedy)


@dataclass(frozen=True)
class Toolkit:
    """An installed toolkit.

    Attributes:
        root: its folder.
        version: its version, for example ``8.2.RC1``; empty if unknown.
        environment: environment variables for its programs.
    """

    root: Path
    version: str
    environment: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Identity: location and version."""
        return digest_of("cann", self.version, str(self.root.resolve()), _install_info(self.root))

    def program(self, name: str) -> str:
        """Return the path of a program.

        Raises:
            InfrastructureError: it does not exist.
        """
        found = self.find(name)
        if found is None:
            raise InfrastructureError(
                f"program {name!r} was not found; run `npu-daemon doctor --backend cann`"
            )
        return found

    def find(self, name: str) -> str | None:
        """Return the path of a program, or ``None`` if it does not exist."""
        return shutil.which(name, path=self.environment["PATH"])


def open_toolkit(settings: CannSettings) -> Toolkit:
    """Return the toolkit of this host.

    Raises:
        InfrastructureError: the configured folder has none, or it is too old.
    """
    root = settings.toolkit
    if not root.is_dir():
        raise InfrastructureError(
            f"no CANN toolkit in {root}; install CANN 8.2 or newer, or say where it is with --toolkit"
        )
    version = toolkit_version(root)
    if version and parse_version(version) < OLDEST_VERSION:
        raise InfrastructureError(f"the CANN toolkit in {root} is {version}; 8.2 or newer is needed")
    return Toolkit(root, version, _environment(root, settings.tools))


def toolkit_version(root: Path) -> str:
    """Return the version of the toolkit, or an empty string if unknown."""
    found = _VERSION_LINE.search(_install_info(root))
    return found.group(1) if found else ""


def parse_version(text: str) -> tuple[int, int]:
    """Return major and minor number of a version such as ``8.2.RC1``; ``(0, 0)`` if it has none."""
    found = _VERSION.search(text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def set_env_script(root: Path) -> Path | None:
    """Return the script that sets a shell up for the toolkit, or ``None``."""
    return next((root / name for name in _SET_ENV if (root / name).is_file()), None)


def _install_info(root: Path) -> str:
    named = [root / _INSTALL_INFO, *sorted(root.glob(f"*-linux/{_INSTALL_INFO}"))]
    places = [*named, *(root / folder / "version.info" for folder in _VERSION_FOLDERS)]
    return next((place.read_text("utf-8", "replace") for place in places if place.is_file()), "")


def _environment(root: Path, tools: Sequence[Path]) -> dict[str, str]:
    """Return the variables that the toolkit's script sets, with ``tools`` first in the search path."""
    script = set_env_script(root)
    if script is None:
        raise InfrastructureError(f"{root} has no set_env.sh; is the CANN toolkit installed completely?")
    with tempfile.TemporaryDirectory(prefix="ascend-gym-env-") as folder:
        command = ["bash", "-c", '. "$0" >/dev/null && env -0', str(script.resolve())]
        outcome = run_limited(command, cwd=Path(folder), limits=_SET_ENV_LIMITS, reach=None)
    if outcome.returncode != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip()
        raise InfrastructureError(f"{script} failed with exit status {outcome.returncode}: {said}")
    pairs = (entry.partition("=") for entry in outcome.stdout.decode("utf-8", "replace").split("\0"))
    values = {name: value for name, _, value in pairs if _KEPT.fullmatch(name)}
    values["PATH"] = ":".join([*(str(folder) for folder in tools), values["PATH"]])
    libraries = [value for value in (values.get("LD_LIBRARY_PATH"),) if value]
    drivers = [str(folder) for folder in DRIVER_LIBRARIES if folder.is_dir()]
    values["LD_LIBRARY_PATH"] = ":".join([*libraries, *drivers])
    return {"ASCEND_HOME_PATH": str(root), **values}

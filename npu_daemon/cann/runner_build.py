"""Builds our own device programs: the runner, and the kernel that cleans the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure
from npu_daemon.cache_folder import BuildStore
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.toolkit import Toolkit
from npu_daemon.sandbox import ResourceLimits, run_limited

SOURCES = Path(__file__).with_name("runner")
_LIMITS = ResourceLimits(wall_s=300.0, cpu_s=300.0, memory_bytes=1 << 46, file_bytes=1 << 30, processes=256)


@dataclass(frozen=True)
class DeviceTools:
    """Built device programs.

    Attributes:
        runner: program that calls operators.
        cleaner: library with ``asg_launch_l2_clean``.
    """

    runner: Path
    cleaner: Path


def runner_digest() -> str:
    """Return the digest of the sources of our programs."""
    return digest_of_tree(SOURCES, ["*"])


def build_tools(toolkit: Toolkit, settings: CannSettings, folder: Path) -> DeviceTools:
    """Return our programs, compiling them against the toolkit if necessary.

    Raises:
        InfrastructureError: they do not compile on this host.
    """
    key = digest_of("runner", toolkit.digest, settings.npu_arch, runner_digest())

    def make(target: Path) -> Failure | None:
        include, libraries = toolkit.root / "include", toolkit.root / "lib64"
        links = [f"-L{libraries}", "-lnnopbase", "-lascendcl", "-ldl", f"-Wl,-rpath-link,{libraries}"]
        runner = [toolkit.program("g++"), "-std=c++17", "-O2", f"-I{include}", str(SOURCES / "runner.cpp")]
        _compile([*runner, "-o", "runner", *links], target, toolkit)
        cleaner = [toolkit.program("bisheng"), "-shared", "-fPIC", "-O2", f"--npu-arch={settings.npu_arch}"]
        _compile([*cleaner, str(SOURCES / "l2_clean.asc"), "-o", "libasg_l2_clean.so"], target, toolkit)
        return None

    made = BuildStore(folder).obtain("runner", key, make)
    if isinstance(made, Failure):  # make() raises instead
        raise InfrastructureError(str(made.diagnostics))
    return DeviceTools(made[0] / "runner", made[0] / "libasg_l2_clean.so")


def _compile(command: Sequence[str], folder: Path, toolkit: Toolkit) -> None:
    outcome = run_limited(command, cwd=folder, limits=_LIMITS, reach=None, env=toolkit.environment)
    if outcome.returncode != 0:
        said = (outcome.stderr + outcome.stdout).decode("utf-8", "replace").strip()[-1500:]
        raise InfrastructureError(f"{Path(command[0]).name} cannot compile the runner on this host: {said}")

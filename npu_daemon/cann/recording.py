"""What a maintainer needs to know of a host with NPUs, collected into a folder without secrets.

Only what is listed here is collected: no variables of the environment, no other files. Names of the user
and the host, addresses and serial numbers are replaced in every text, and the processes of ``npu-smi``.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.remove_tree import scratch_folder
from npu_daemon.cann.devices import DevicePool
from npu_daemon.cann.execution import DeviceHost, DeviceSession
from npu_daemon.cann.instance import options_read
from npu_daemon.cann.measurement import ALL_KERNELS
from npu_daemon.cann.msprof_files import METRICS
from npu_daemon.cann.runner_build import build_tools
from npu_daemon.cann.toolkit import Toolkit, open_toolkit
from npu_daemon.sandbox import ResourceLimits, run_limited

if TYPE_CHECKING:
    from npu_daemon.settings import DaemonSettings

COMMANDS = (
    *(("cmake", "--version"), ("g++", "--version"), ("bisheng", "--version"), ("msopgen", "gen", "-h")),
    *(("msprof", "op", "--help"), ("npu-smi", "info"), ("npu-smi", "info", "-l"), ("npu-smi", "info", "-m")),
)
_PROTOTYPE = [
    {
        "op": "RecordedAdd",
        "language": "cpp",
        "input_desc": [
            {"name": name, "param_type": "required", "format": ["ND"], "type": ["float"]}
            for name in ("x", "y")
        ],
        "output_desc": [{"name": "z", "param_type": "required", "format": ["ND"], "type": ["float"]}],
    }
]
_LIMITS = ResourceLimits(wall_s=60.0, cpu_s=60.0, memory_bytes=1 << 46, file_bytes=64 << 20, processes=512)
_ORDINARY = frozenset({"", "root", "localhost"})
_ADDRESSES = (
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:])"), "<address>"),
    (re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,7}(?![\w:])"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<address>"),
    (re.compile(r"(?im)^(.*serial.*?[:=|]\s*)\S+"), r"\1<serial>"),
)
_PROCESS_ROW = re.compile(r"(?m)^(\|\s*\d+\s+\d+\s*\|\s*)\d+(\s*\|\s*)[^|]*?(\s*\|)")


def scrubbed(text: str, user: str, home: str, hosts: Sequence[str]) -> str:
    """Return ``text`` without the names of user and hosts, addresses, serial numbers and processes.

    Args:
        text: what a tool printed, or a file.
        user: name of the user.
        home: home folder; replaced by ``~``.
        hosts: names of this host.
    """
    if len(home) > 1:
        text = text.replace(home, "~")
    for names, instead in ((hosts, "<host>"), ((user,), "<user>")):
        for name in sorted(set(names) - _ORDINARY, key=len, reverse=True):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", instead, text, flags=re.I)
    for pattern, instead in _ADDRESSES:
        text = pattern.sub(instead, text)
    return _PROCESS_ROW.sub(r"\1<pid>\2<process>\3", text)


def record(settings: DaemonSettings, folder: Path, report: str) -> list[str]:
    """Write what a maintainer needs into ``folder``; return the names of the files.

    What fails is recorded as well. Nothing is installed, and a device runs our own kernels only.

    Args:
        settings: settings of the daemon, with the toolkit and the devices.
        folder: folder that does not exist or is empty.
        report: findings of the doctor.

    Raises:
        MisuseError: the folder has files, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder} is not empty: choose a new folder for the record")
    names = (getpass.getuser(), str(Path.home()), (platform.node(), socket.getfqdn()))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _texts(settings, report):
            target = folder / scrubbed(name, *names)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(scrubbed(text, *names), "utf-8")
            written.append(str(target.relative_to(folder)))
    except OSError as error:
        raise MisuseError(f"{folder} cannot be written: {error}") from error
    return written


def _texts(settings: DaemonSettings, report: str) -> Iterator[tuple[str, str]]:
    yield "doctor.txt", report + "\n"
    yield "system.txt", f"{platform.system()} {platform.release()} {platform.machine()}\n"
    try:
        kit = open_toolkit(settings.cann)
    except InfrastructureError as error:
        yield "toolkit.txt", f"{error}\n"
        return
    yield "toolkit.txt", f"{kit.root}\nversion {kit.version or 'unknown'}\n"
    with scratch_folder(prefix="ascend-gym-record-") as scratch:
        for command in COMMANDS:
            yield f"{'_'.join(command).replace('-', '')}.txt", _printed(kit, command, scratch)
        yield from _project(kit, settings, scratch)
        yield from _profile(kit, settings, scratch)


def _printed(kit: Toolkit, command: Sequence[str], folder: Path) -> str:
    path = kit.find(command[0])
    if path is None:
        return f"{command[0]} was not found\n"
    outcome = run_limited([path, *command[1:]], cwd=folder, limits=_LIMITS, reach=None, env=kit.environment)
    said = (outcome.stdout + outcome.stderr).decode("utf-8", "replace")
    return f"$ {' '.join(command)}\nexit status {outcome.returncode}\n{said}"


def _project(kit: Toolkit, settings: DaemonSettings, scratch: Path) -> Iterator[tuple[str, str]]:
    """Yield the build files of the project that this toolkit's msopgen generates."""
    prototype, project = scratch / "op.json", scratch / "project"
    prototype.write_text(json.dumps(_PROTOTYPE), "utf-8")
    unit = f"ai_core-{settings.cann.compute_unit}"
    command = ("msopgen", "gen", "-i", str(prototype), "-c", unit, "-lan", "cpp", "-out", str(project))
    scratch.chmod(0o755)
    yield "msopgen_project.txt", _printed(kit, command, scratch)
    yield "build_options.txt", " ".join(sorted(options_read(project, kit.root))) + "\n"
    for pattern in ("CMakeLists.txt", "CMakePresets.json", "build.sh"):
        for path in sorted(project.rglob(pattern)):
            yield f"project/{path.relative_to(project)}", path.read_text("utf-8", "replace")


def _profile(kit: Toolkit, settings: DaemonSettings, scratch: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that the profiler leaves of our own kernel on the first device that is free."""
    output = scratch / "profile"
    output.mkdir(mode=0o700)
    options = (
        "op",
        f"--output={output}",
        "--warm-up=0",
        ALL_KERNELS,
        "--launch-count=10",
        f"--aic-metrics={','.join(('BasicInfo', *METRICS))}",
    )
    try:
        folder = settings.cache_dir / "cann"
        host = DeviceHost(kit, partial(build_tools, kit, settings.cann, folder), settings.cann)
        with DevicePool(folder, settings.cann, settings.chip).lease() as device:
            session = DeviceSession(host, device, os.cpu_count() or 1, MeasureProtocol(chip=settings.chip))
            outcome = session.execute(None, scratch, profiler=[kit.program("msprof"), *options])
    except InfrastructureError as error:
        yield "msprof_run.txt", f"{error}\n"
        return
    said = (outcome.stdout + outcome.stderr).decode("utf-8", "replace")
    left = "".join(f"{path.relative_to(output)}\n" for path in sorted(output.rglob("*")) if path.is_file())
    yield "msprof_run.txt", f"exit status {outcome.returncode}\n{said}\nfiles:\n{left}"
    for path in sorted(output.rglob("*.csv")):
        yield f"profile/{path.relative_to(output)}", path.read_text("utf-8", "replace")

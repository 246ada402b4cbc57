"""Checks of ``npu-daemon doctor`` on a host with NPUs."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_gym.core.errors import InfrastructureError
from npu_daemon.cache_folder import RESULTS_NAME
from npu_daemon.cann.devices import DevicePool, query_devices
from npu_daemon.cann.runner_build import build_tools
from npu_daemon.cann.toolkit import (
    HEADERS,
    LIBRARIES,
    PROGRAMS,
    Finding,
    Toolkit,
    missing,
    ok,
    open_toolkit,
    warning,
)
from npu_daemon.sandbox import ResourceLimits, run_limited
from npu_daemon.store import recent_seconds

if TYPE_CHECKING:
    from npu_daemon.settings import DaemonSettings

OLDEST_CMAKE = (3, 19)  # of --preset
_CMAKE_VERSION = re.compile(r"cmake version (\d+)\.(\d+)")
_RECENT = 100  # evaluations by which the time of a candidate is estimated
_DRIVER_INFO = Path("/usr/local/Ascend/driver/version.info")
_DEVICE_NODES = Path("/dev")
_TAKEN_FOR_OPTION = "oom"  # in any option: asc-devkit 9.1.0, ascendc_gen_options.py
_QUERY_LIMITS = ResourceLimits(
    wall_s=30.0, cpu_s=30.0, memory_bytes=1 << 40, file_bytes=1 << 20, processes=256
)
_INSTALL = "install CANN 8.2 or newer (toolkit and the kernels package of the chip)"
_REMEDIES = {
    "cmake": "install cmake 3.19 or newer, the first with --preset (pip install cmake)",
    "msopgen": f"{_INSTALL}; msopgen belongs to the toolkit, later also to MindStudio's operator tools",
    "bisheng": f"{_INSTALL}; bisheng lies in compiler/ccec_compiler/bin",
    "msprof": f"{_INSTALL}; msprof lies in tools/profiler/bin",
    "npu-smi": "install the NPU driver; in a container, mount /usr/local/bin/npu-smi and /usr/local/dcmi",
    "g++": "install g++ 12 or newer",
}


def toolkit(settings: DaemonSettings) -> list[Finding]:
    """Check the toolkit and its version."""
    try:
        found = open_toolkit(settings.cann)
    except InfrastructureError as error:
        return [missing("toolkit", str(error), f"{_INSTALL}; docs/cann.md says what a host needs")]
    if not found.version:
        return [warning("toolkit", f"{found.root} does not say its version", "8.2 or newer is needed")]
    return [ok("toolkit", f"{found.root}, version {found.version}")]


def programs(settings: DaemonSettings) -> list[Finding]:
    """Check the programs that the backend starts."""
    kit = _toolkit(settings)
    if kit is None:
        return []
    findings = []
    for name in PROGRAMS:
        path = kit.find(name)
        findings.append(ok(name, path) if path else missing(name, "not found", _REMEDIES[name]))
    return [*findings, *_cmake_version(kit)]


def files(settings: DaemonSettings) -> list[Finding]:
    """Check headers and libraries of the runtime."""
    kit = _toolkit(settings)
    absent = [name for name in (*HEADERS, *LIBRARIES) if kit and not (kit.root / name).exists()]
    if absent:
        return [missing("runtime", f"{settings.cann.toolkit} has no {', '.join(absent)}", _INSTALL)]
    return [ok("runtime", "headers and libraries are there")] if kit else []


def driver(settings: DaemonSettings) -> list[Finding]:
    """Check the driver and the device nodes."""
    nodes = sorted(_DEVICE_NODES.glob("davinci[0-9]*"))
    if not nodes:
        remedy = (
            "install the driver; in a container, pass /dev/davinci*, davinci_manager, devmm_svm, hisi_hdc"
        )
        return [missing("device nodes", "there is no /dev/davinci*: no NPU is visible", remedy)]
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        remedy = "add this user to the group HwHiAiUser"
        return [missing("device nodes", f"no access to {', '.join(closed)}", remedy)]
    found = [ok("device nodes", ", ".join(str(node) for node in nodes))]
    if not _DRIVER_INFO.is_file():
        remedy = "in a container, mount /usr/local/Ascend/driver"
        return [*found, warning("driver", f"{_DRIVER_INFO} cannot be read", remedy)]
    return [*found, ok("driver", " ".join(_DRIVER_INFO.read_text("utf-8", "replace").split())[:80])]


def devices(settings: DaemonSettings) -> list[Finding]:
    """Check the health of the configured devices, and report excluded ones."""
    kit = _toolkit(settings)
    if kit is None or kit.find("npu-smi") is None:
        return []
    try:
        states = query_devices(kit)
    except InfrastructureError as error:
        return [missing("devices", str(error), "check the driver: npu-smi info has to list the devices")]
    pool = DevicePool(settings.cache_dir / "cann", settings.cann, settings.chip)
    findings = []
    for number in settings.cann.devices:
        complaint = pool.complaint(number, states)
        name = f"device {number}"
        if complaint:
            findings.append(missing(name, complaint, "choose others with --device, or repair it"))
        elif states[number].pids:
            users = ", ".join(str(pid) for pid in states[number].pids)
            findings.append(warning(name, f"processes {users} use it", "end them: they disturb measurements"))
        else:
            findings.append(ok(name, f"{states[number].name}, health {states[number].health}"))
    return findings


def opp_folder(settings: DaemonSettings) -> list[Finding]:
    """Check that operators can be installed."""
    if _toolkit(settings) is None:
        return []
    folder = settings.cache_dir / "cann"
    if _TAKEN_FOR_OPTION in str(folder.resolve()):
        message = f"{folder} has {_TAKEN_FOR_OPTION!r} in its path, which the toolkit's build takes for --oom"
        return [missing("operator folder", message, "choose another folder with --cache-dir")]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder):
        return [ok("operator folder", f"{folder} can be written")]


def runner(settings: DaemonSettings) -> list[Finding]:
    """Compile the program that runs operators, and the kernel that cleans the cache."""
    kit = _toolkit(settings)
    if kit is None or any(kit.find(name) is None for name in ("g++", "bisheng")):
        return []
    try:
        tools = build_tools(kit, settings.cann, settings.cache_dir / "cann")
    except InfrastructureError as error:
        return [missing("runner", str(error), "compare the toolkit's headers with docs/cann.md")]
    return [ok("runner", f"{tools.runner} compiles")]


def seconds(settings: DaemonSettings) -> list[Finding]:
    """Estimate how long a candidate takes, by the last ones on this host; else tell the limits."""
    cann = settings.cann
    subjects = 2 if cann.pair_with_baseline else 1
    limits = (
        f"at most {cann.build_timeout_s:g} s to build, and for each case {cann.start_timeout_s:g} s to start "
        f"and {cann.sampling_s:g} s of sampling, after which at most {subjects} runs of the profiler end, "
        f"each of {cann.rounds} calls"
    )
    try:
        known = recent_seconds(settings.cache_dir / RESULTS_NAME, "cann", _RECENT)
    except sqlite3.Error:  # another check tells
        known = []
    if not known:
        return [ok("time of a candidate", f"none was evaluated here yet; {limits}")]
    build, run, price, total = (
        statistics.median(getattr(each, phase) for each in known)
        for phase in ("build", "run", "price", "total")
    )
    nine_of_ten = sorted(each.total for each in known)[math.ceil(0.9 * len(known)) - 1]
    message = (
        f"about {total:.1f} s: {build:.1f} s to build, {run:.1f} s to run and {price:.1f} s to time; "
        f"nine of ten in {nine_of_ten:.1f} s (medians of the last {len(known)} that were right); {limits}"
    )
    return [ok("time of a candidate", message)]


CANN_CHECKS: tuple[Callable[[DaemonSettings], list[Finding]], ...] = (
    *(toolkit, programs, files, driver),
    *(devices, opp_folder, runner, seconds),
)


def _toolkit(settings: DaemonSettings) -> Toolkit | None:
    """Return the toolkit, or ``None``; ``toolkit`` reports its absence."""
    try:
        return open_toolkit(settings.cann)
    except InfrastructureError:
        return None


def _cmake_version(kit: Toolkit) -> list[Finding]:
    path = kit.find("cmake")
    if path is None:
        return []
    with tempfile.TemporaryDirectory(prefix="ascend-gym-doctor-") as folder:
        outcome = run_limited([path, "--version"], cwd=Path(folder), limits=_QUERY_LIMITS, reach=None)
    found = _CMAKE_VERSION.search(outcome.stdout.decode("utf-8", "replace"))
    version = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    if version < OLDEST_CMAKE:
        shown = found.group() if found else "no version"
        return [missing("cmake version", f"{path} says {shown}", _REMEDIES["cmake"])]
    return []

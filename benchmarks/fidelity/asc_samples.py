"""Runs the samples of an asc-devkit checkout that are made for this chip, unmodified: how far does each get?

A sample is verified when its own check (scripts/verify_result.py) passes on what it wrote, and ran when it
has none and its main returned 0. Macros and script arguments are those of its CMakeLists and README.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram
from npu_daemon.profiling.profiler import Profiler
from npu_daemon.sandbox import ResourceLimits, run_limited

EXAMPLES = "examples/01_simd_cpp_api"
ARCHITECTURE = "dav-2201"
DEFAULT_SCENARIO = "1"
SCRIPT_LIMITS = ResourceLimits(wall_s=120, cpu_s=60, memory_bytes=8 * 2**30, file_bytes=2 * 2**30)
_SETTING = re.compile(r'^\s*set\(\s*(\w+)\s+"?([^")\s]+)"?[^)]*\)', re.MULTILINE)
_DEFINITIONS = re.compile(r"(?:target_compile_definitions\(\s*\w+\s+PRIVATE|add_definitions\()\s*([^)]*)\)")
_SCRIPT = re.compile(r"^\s*python3? \.\./scripts/(gen_data|verify_result)\.py([^#\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How far a sample got: ``verified``, ``ran``, ``incorrect``, or the status that stopped it."""

    sample: str
    result: str
    reason: str = ""


def samples(examples: Path, only: str) -> Iterator[Path]:
    """Yield the programs of samples whose CMakeLists names the architecture first."""
    for lists in sorted(examples.rglob("CMakeLists.txt")):
        architecture = re.search(r'set\(CMAKE_ASC_ARCHITECTURES "([^"]*)"', lists.read_text("utf-8-sig"))
        if architecture is None or architecture[1] != ARCHITECTURE:
            continue
        for source in sorted(lists.parent.glob("*.asc")):
            if only in source.relative_to(examples).as_posix():
                yield source


def defines_of(lists: str) -> list[str]:
    """Return the macros that a CMakeLists gives the program by default."""
    settings = {"SCENARIO_NUM": DEFAULT_SCENARIO, "NPU_ARCH_ID": "2201"}
    for name, value in _SETTING.findall(lists):
        settings.setdefault(name, value)
    settings["NPU_ARCH_ID"] = "2201"
    words = [word for found in _DEFINITIONS.findall(lists) for word in found.split()]
    names = [word.removeprefix("-D") for word in words if "=" in word]
    return [
        re.sub(r"\$\{(\w+)\}", lambda use: settings.get(use[1], DEFAULT_SCENARIO), name) for name in names
    ]


def script_call(readme: str, name: str) -> list[str]:
    """Return the arguments that a README passes to one of the sample's scripts."""
    for script, arguments in _SCRIPT.findall(readme):
        if script == name:
            return shlex.split(re.sub(r"\$\{?\w+\}?", DEFAULT_SCENARIO, arguments))
    return ["output/output.bin", "output/golden.bin"] if name == "verify_result" else []


def run_script(sample: Path, name: str, folder: Path) -> str | None:
    """Run a script of a sample, if it has one, and return why it failed, or ``None``."""
    script = sample.parent / "scripts" / f"{name}.py"
    readme = (sample.parent / "README.md").read_text("utf-8-sig", errors="replace")
    command = [sys.executable, str(script), *script_call(readme, name)]
    ended = run_limited(command, cwd=folder, limits=SCRIPT_LIMITS, reach=None)
    if ended.returncode == 0:
        return None
    lines = (ended.stderr or ended.stdout).decode("utf-8", "replace").split("\n")
    return f"{name}.py: {[line for line in lines if line.strip()][-1:]}"


def run_sample(sample: Path, label: str, backend: SimulatorBackend, chip: str) -> Outcome:
    """Make a sample's data, run it, and check what it wrote."""
    lists = (sample.parent / "CMakeLists.txt").read_text("utf-8-sig")
    with tempfile.TemporaryDirectory(prefix="ascend-gym-sample-") as name:
        folder = Path(name)
        for part in ("input", "output"):
            (folder / part).mkdir()
        if (sample.parent / "scripts" / "gen_data.py").exists():
            failed = run_script(sample, "gen_data", folder)
            if failed:
                return Outcome(label, "no data", failed)
        profiler = Profiler(backend, chip, folder, None, timeout_s=120.0)
        try:
            profiled = profiler.profile_program(AscProgram(sample, tuple(defines_of(lists))), folder)
        except MisuseError as error:
            return Outcome(label, "unreadable", str(error))
        if isinstance(profiled, Failure):
            return Outcome(label, profiled.status.value, str(profiled.diagnostics[0]))
        if profiled.run.exit_status != 0 or not profiled.launches:
            return Outcome(label, "incorrect", f"main returned {profiled.run.exit_status}")
        if not (sample.parent / "scripts" / "verify_result.py").exists():
            return Outcome(label, "ran")
        failed = run_script(sample, "verify_result", folder)
        return Outcome(label, "incorrect", failed) if failed else Outcome(label, "verified")


def main() -> None:
    """Run the samples and print a line for each, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--asc-devkit", type=Path, required=True, help="checkout of asc-devkit")
    parser.add_argument("--only", default="", help="only samples whose path contains this")
    parser.add_argument("--chip", default="910B1")
    parser.add_argument("--json", type=Path, help="also write one JSON document to this file")
    arguments = parser.parse_args()
    backend = SimulatorBackend(cache_root(), arguments.chip)
    examples = arguments.asc_devkit / EXAMPLES
    outcomes = []
    for sample in samples(examples, arguments.only):
        label = sample.relative_to(examples).as_posix()
        outcomes.append(run_sample(sample, label, backend, arguments.chip))
        print(f"{outcomes[-1].result:<14} {label} {outcomes[-1].reason[:160]}", flush=True)
    print(dict(Counter(outcome.result for outcome in outcomes)))
    if arguments.json:
        document = [asdict(outcome) for outcome in outcomes]
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Programs for the simulator from kernel and host sources of a recorded session.

The kernel's and the host function's files stay as they are; session_host.h stands for PyTorch and the launch
macro. Where a host function uses more of PyTorch than that header has, the program does not compile, and the
result says ``no_program``: which of both is at fault is told by where the errors are.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath

from session_data import Outputs, argument, most_elements, outputs_agree, outputs_of

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.status import Status
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram
from npu_daemon.profiling.profiler import ProfiledProgram, Profiler

HOST_HEADER = Path(__file__).with_name("session_host.h")
TIMEOUT_S = 300.0
_KERNEL = re.compile(r"\b__global__\s+(?:__\w+__\s+)*void\s+(?P<name>\w+)\s*\(")
_LAUNCH = re.compile(r"\bEXEC_KERNEL_CMD\s*\(")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
_STOOD_FOR = re.compile(
    r"^(?:torch|torch_npu|ATen|c10|pybind11)/|(?:^|/)(?:torch_kernel_helper\.h|aclrtlaunch_\w+\.h)$"
)
_FUNCTION = re.compile(
    r"^[ \t]*(?:inline\s+|static\s+)*(?:at::Tensor|torch::Tensor|std::(?:tuple|vector)<[^;{}()]*>|void)\s+"
    r"(?P<name>\w+)\s*\([^;{}]*\)\s*\{",
    re.M,
)
_REGISTERED = re.compile(r"(?:TORCH_FN\s*\(\s*|&\s*)(?P<name>ascend_kernel::\w+)")
_STUB = """template <typename... Values>
void session_launch_{name}(uint64_t blocks, const Values &...values) {{
    {name}<<<blocks, nullptr, nullptr>>>(session::argument(values)...);
}}
"""


@dataclass(frozen=True)
class ProgramResult:
    """What the simulator says about a version.

    Attributes:
        status: ``no_program`` (with why), ``not_run`` (built, no case with known inputs), ``ran`` (what it
            computes is not judged: the reference is Python of the session), ``same`` or ``differs``
            (from a version that the device calls right), or the status of the simulator that stopped it.
        reason: the first diagnostic.
        times_us: of each case that ran, in microseconds: the second call, all its launches.
        outputs: of each case that ran.
    """

    status: str
    reason: str = ""
    times_us: dict[int, float] = field(default_factory=dict)
    outputs: dict[int, Outputs] = field(default_factory=dict, repr=False)

    def judged_by(self, reference: ProgramResult) -> ProgramResult:
        """Return the result with ``same`` or ``differs`` in the place of ``ran``, if that can be told."""
        both = sorted(self.outputs.keys() & reference.outputs.keys())
        if self.status != "ran" or not both:
            return self
        apart = [case for case in both if not outputs_agree(self.outputs[case], reference.outputs[case])]
        reason = f"case {apart[0]} differs from the version that the device calls right" if apart else ""
        return replace(self, status="differs" if apart else "same", reason=reason)


def program_texts(files: dict[str, str]) -> dict[str, str] | str:
    """Return the files of a program, ``program.asc`` first, or why there is none.

    Args:
        files: sources by their path in the session.
    """
    kernels = {
        path: text for path, text in files.items() if _KERNEL.search(text) and not _LAUNCH.search(text)
    }
    hosts = {path: text for path, text in files.items() if _LAUNCH.search(text)}
    if not kernels or not hosts:
        return "expected a file with __global__ kernels and one that calls EXEC_KERNEL_CMD"
    functions = _host_functions(files, hosts)
    if not functions:
        return "expected TORCH_FN(ascend_kernel::NAME), or a function in the file of EXEC_KERNEL_CMD"
    texts = {"session_host.h": HOST_HEADER.read_text(encoding="utf-8")}
    for path, text in files.items():
        name = _flat_name(path, kernels, hosts)
        if texts.setdefault(name, text) != text:
            return f"two files are called {name}"
    for header in {one for text in files.values() for one in _INCLUDE.findall(text)}:
        if _STOOD_FOR.search(header) and header not in texts:
            texts[header] = '#pragma once\n#include "session_host.h"\n'
    main = [
        f'#include "{name}"'
        for name in ("session_host.h", *(_flat_name(one, kernels, hosts) for one in kernels))
    ]
    names = dict.fromkeys(found["name"] for text in kernels.values() for found in _KERNEL.finditer(text))
    main += [_STUB.format(name=name) for name in names]
    main += [f'#include "{_flat_name(one, kernels, hosts)}"' for one in hosts]
    return {"program.asc": "\n".join([*main, _main_function(functions)]), **texts}


def _flat_name(path: str, kernels: dict[str, str], hosts: dict[str, str]) -> str:
    """Return the name of a file in the program's folder: headers keep theirs."""
    name = PurePosixPath(path).name
    if path in kernels and not name.endswith((".h", ".hpp")):
        return f"kernel_{name}.inc"
    return f"host_{name}.inc" if path in hosts and not name.endswith((".h", ".hpp")) else name


def _host_functions(files: dict[str, str], hosts: dict[str, str]) -> list[str]:
    """Return the functions that are registered with PyTorch; else those of the files that launch kernels."""
    registered = [found["name"] for text in files.values() for found in _REGISTERED.finditer(text)]
    if registered:
        return list(dict.fromkeys(registered))
    found = [one["name"] for text in hosts.values() for one in _FUNCTION.finditer(text)]
    space = "ascend_kernel::" if any("namespace ascend_kernel" in text for text in hosts.values()) else ""
    return list(dict.fromkeys(space + name for name in found[-1:]))


def _main_function(functions: list[str]) -> str:
    lines = ["int main(int argc, char **argv) {", '    const std::string name = argc > 1 ? argv[1] : "";']
    for function in functions:
        name = function.rpartition("::")[2]
        lines.append(f'    if (name == "{name}") return session::call({function}, argc, argv);')
    return "\n".join([*lines, '    c10::refuse("no host function ", name);', "}", ""])


def run_version(
    files: dict[str, str], inputs: dict[int, tuple[str, ...]], chip: str, limit: int
) -> ProgramResult:
    """Build a version's program and run its cases with random inputs, confined.

    Args:
        files: sources by their path in the session.
        inputs: words of each case, as ``Outcome.inputs``; a case with ``?`` is left out.
        chip: name of the chip.
        limit: elements of the largest tensor of a case; larger ones are left out.
    """
    texts = program_texts(files)
    if isinstance(texts, str):
        return ProgramResult("no_program", texts)
    functions = re.findall(r'name == "(\w+)"', texts["program.asc"])
    possible = {case: words for case, words in sorted(inputs.items()) if most_elements(words) <= limit}
    times: dict[int, float] = {}
    outputs: dict[int, Outputs] = {}
    for case, words in (possible or {-1: ()}).items():
        with tempfile.TemporaryDirectory(prefix="ascend-gym-session-") as name:
            ended = _run_case(texts, functions[0], words, chip, Path(name))
        if isinstance(ended, ProgramResult):
            built = not possible and ended.status not in ("build_error", "no_program")
            return ProgramResult("not_run", "no case with known inputs") if built else ended
        times[case], outputs[case] = ended
    return ProgramResult("ran", "", times, outputs)


def _run_case(
    texts: dict[str, str], function: str, words: tuple[str, ...], chip: str, folder: Path
) -> ProgramResult | tuple[float, Outputs]:
    """Return the microseconds of the second call of a host function and its outputs, or what stopped it."""
    source, work = folder / "source", folder / "work"
    work.mkdir()
    for name, text in texts.items():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    try:
        arguments = (function, *(argument(word, place, work) for place, word in enumerate(words)))
        program = AscProgram(source / "program.asc", (), arguments, confined=True)
        profiled = Profiler(_backend(chip), chip, work, None, TIMEOUT_S).profile_program(program, work)
        if isinstance(profiled, Failure):
            return _stopped(profiled)
        time_us = _second_call_us(profiled)
        if isinstance(time_us, ProgramResult):
            return time_us
        return time_us, outputs_of(profiled.run.stdout, work)
    except MisuseError as error:
        return ProgramResult("no_program", str(error))


def _stopped(failure: Failure) -> ProgramResult:
    """Return a failure: errors in host files or the header that stands for PyTorch are not the kernel's."""
    first = failure.diagnostics[0]
    file = Path(first.file or "").name
    ours = failure.status is Status.BUILD_ERROR and (file.startswith(("host_", "session_host")) or not file)
    return ProgramResult(
        "no_program" if ours else failure.status.value, f"{file}:{first.line}: {first.message}"
    )


def _second_call_us(profiled: ProfiledProgram) -> ProgramResult | float:
    launches = profiled.launches
    if profiled.run.exit_status != 0 or not launches or len(launches) % 2:
        said = (profiled.run.stderr or profiled.run.stdout).strip()[-300:]
        return ProgramResult("no_program", f"the host function ended with {profiled.run.exit_status}: {said}")
    return sum(launch.task_us for launch in launches[len(launches) // 2 :])


@cache
def _backend(chip: str) -> SimulatorBackend:
    return SimulatorBackend(cache_root(), chip)

"""Runs the example program of a cann-ops folder against a recording substitute for the ACL runtime.

Shapes, element types, attribute values and input data of an example are the arguments that its ``main.cpp``
passes to ``aclnn<Op>GetWorkspaceSize``. The program is compiled against ``acl_recorder.h``, which records
that call. It is untrusted code like ``gen_data.py``, and confined like it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError, OperatorFormatError
from ascend_gym.core.records import DType, Record
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.toml_file import reason_of
from ascend_gym.core.wheel import compiler_folder, compiler_program
from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited

_MEMORY_BYTES = 64 << 30  # of addresses: tensor libraries reserve far more than they use
_FILE_BYTES = 4 << 30
_FOLDER_BYTES = 16 << 30
_PROCESSES = 512
_PROCESSOR = (Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu"))

BUILD_TIMEOUT_S = 600.0
RUN_TIMEOUT_S = 60.0
_HEADER = Path(__file__).with_name("acl_recorder.h")
_LIBRARY_FOLDER = "c++"  # in the cache: what the wheel's compiler keeps there
_READ_FIRST_FOLDER = "precompiled"  # in the cache: the substitute's header as g++ has read it
_OPTIONS = ("-std=c++17", "-O0", "-w")
_GCC_OPTIONS = ("-fpermissive", "-fmax-errors=1", "-fno-diagnostics-show-caret")
_CLANG_OPTIONS = (
    *("-g0", "-fno-sanitize=all", "-Wno-c++11-narrowing", "-Wno-reserved-user-defined-literal"),
    *("-Wno-return-type", "-ferror-limit=1", "-fno-caret-diagnostics"),
)
_COLLECTIVE = re.compile(r"\bHcclComm\w*")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"[^"\n]*"|<(?:acl|hccl)[^>\n]*>)[^\n]*$', re.MULTILINE)
_FUNCTION = re.compile(r"\b(acl(?:nn)?[A-Z]\w*)GetWorkspaceSize\s*\(")
_MAIN = re.compile(r"\bint\s+main\s*\(")
_NAMESPACE = re.compile(r"^namespace\s+(\w+)\s*\{", re.MULTILINE)
_ERROR = re.compile(r"(\d+):(?:\d+:)? (?:fatal )?error: (.*)")
_RECORD = "record.json"
_RECORD_FOLDER = "ascend_gym_record"
_DTYPES = {
    0: DType.FLOAT32,
    1: DType.FLOAT16,
    2: DType.INT8,
    3: DType.INT32,
    4: DType.UINT8,
    6: DType.INT16,
    7: DType.UINT16,
    8: DType.UINT32,
    9: DType.INT64,
    10: DType.UINT64,
    11: DType.FLOAT64,
    12: DType.BOOL,
    16: DType.COMPLEX64,
    27: DType.BFLOAT16,
}
_UNCARRIED_NAMES = {17: "complex128", 29: "int4"}


def run_confined(
    argv: Sequence[str],
    *,
    cwd: Path,
    wall_s: float,
    readable: Sequence[Path] = (),
    programs: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> ProcessOutcome:
    """Run a program that may start programs of the system, and may only write below ``cwd``.

    Args:
        argv: program and arguments.
        cwd: working directory.
        wall_s: wall seconds after which it is killed.
        readable: files and folders that it may read, besides those of the system.
        programs: folders with programs that it may start, besides those of the system.
        env: variables on top of the few that are inherited.

    Raises:
        InfrastructureError: it cannot be executed, or could not be supervised.
    """
    limits = ResourceLimits(
        wall_s=wall_s,
        cpu_s=wall_s * 4,
        memory_bytes=_MEMORY_BYTES,
        file_bytes=_FILE_BYTES,
        processes=_PROCESSES,
        folder_bytes=_FOLDER_BYTES,
    )
    reach = Reach(_existing(readable), starts_programs=True, programs=_existing(programs))
    return run_limited(argv, cwd=cwd, limits=limits, reach=reach, env=env)


def python_folders() -> tuple[Path, ...]:
    """Return the folders that a Python program reads to import whatever this process can.

    They include processor information, from which numeric libraries select their code.
    """
    own = [Path(each) for each in (sys.prefix, sys.base_prefix, *sys.path) if each]
    return _existing([*own, *_PROCESSOR])


def _existing(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path for path in dict.fromkeys(paths) if path.exists())


class RecordedTensor(Record):
    """A tensor or scalar of the call; ``file`` has its bytes, ``number`` identifies copies from it."""

    acl_dtype: int
    shape: tuple[int, ...]
    contiguous: bool
    file: str = Field(pattern=r"^tensor\d+\.bin$")
    number: int = Field(ge=1)

    @property
    def dtype(self) -> DType:
        """Element type.

        Raises:
            OperatorFormatError: cases do not support the element type.
        """
        if self.acl_dtype not in _DTYPES:
            name = _UNCARRIED_NAMES.get(self.acl_dtype, f"ACL type {self.acl_dtype}")
            raise OperatorFormatError(f"main.cpp uses tensors of {name}, which cases cannot hold")
        return _DTYPES[self.acl_dtype]


class CallArgument(Record):
    """One argument of the call."""

    kind: Literal[
        "absent", "tensor", "list", "scalar", "scalars", "ints", "floats", "bools", "string", "bool", "float",
        "int", "result",
    ]  # fmt: skip
    tensors: tuple[RecordedTensor, ...] = ()
    value: Any = None


class RecordedCall(Record):
    """The aclnn call of an example: the function without GetWorkspaceSize, and its arguments in order."""

    function: str
    arguments: tuple[CallArgument, ...]


def recorder_program(main_cpp: Path) -> Path:
    """Return the compiled example program, from the cache if possible.

    Raises:
        OperatorFormatError: it does not compile with the substitute, or makes no aclnn call.
        InfrastructureError: the compiler's package is not installed.
    """
    source = recording_source(main_cpp.read_text(encoding="utf-8", errors="replace"), str(main_cpp))
    key = digest_of("example", source, _HEADER.read_bytes(), _compiler().options)
    program = cache_root() / "examples" / key[:2] / key
    if program.is_file():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        built = _compile(source, Path(scratch), main_cpp)
        built.replace(program)
    return program


def recording_source(text: str, where: str) -> str:
    """Return the example program with the substitute in place of the headers of the ACL runtime.

    Raises:
        OperatorFormatError: the program makes no aclnn call.
    """
    functions = dict.fromkeys(_FUNCTION.findall(text))
    if not functions:
        raise OperatorFormatError(f"{where}: no call of aclnn<Op>GetWorkspaceSize")
    declarations = "".join(f"ACL_RECORDED({function})\n" for function in functions)
    own = _INCLUDE.sub("", text)
    return f'#include "{_HEADER.name}"\n{declarations}#line 1 "main.cpp"\n{own}{_global_main(own)}'


def _global_main(text: str) -> str:
    """Return a main function that calls the one that a program defines in a namespace."""
    main = _MAIN.search(text)
    for namespace in _NAMESPACE.finditer(text, 0, main.start() if main else 0):
        inside = text[namespace.end() : main.start()] if main else ""
        if inside.count("}") <= inside.count("{"):
            return f"\nint main() {{ return {namespace.group(1)}::main(); }}\n"
    return ""


def record_call(program: Path, work: Path) -> RecordedCall:
    """Run an example program in ``work/output``; record and tensors are written to ``record_folder(work)``.

    Raises:
        OperatorFormatError: it fails before it makes the call.
    """
    record_folder(work).mkdir(parents=True)
    done = run_confined(
        [str(program)],
        cwd=work / "output",
        wall_s=RUN_TIMEOUT_S,
        readable=[work],
        env={"PATH": os.defpath, "ASCEND_GYM_RECORD": str(record_folder(work))},
    )
    if done.timed_out:
        raise OperatorFormatError(f"main.cpp did not finish within {RUN_TIMEOUT_S:g} s")
    try:
        return RecordedCall.model_validate_json((record_folder(work) / _RECORD).read_bytes())
    except FileNotFoundError:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        how = said[-1] if said else f"exit status {done.returncode}"
        raise OperatorFormatError(f"main.cpp ended before its aclnn call: {how}") from None
    except ValidationError as error:
        raise OperatorFormatError(f"main.cpp: unreadable record: {reason_of(error)}") from error


def record_folder(work: Path) -> Path:
    """Return the folder of the record in a copy of an example folder."""
    return work / "output" / _RECORD_FOLDER


class _Compiler(NamedTuple):
    """A compiler: its command, the files that it reads besides the system's, and its cache folder."""

    program: tuple[str, ...]
    options: tuple[str, ...]
    readable: tuple[Path, ...] = ()
    kept: Path | None = None
    headers: tuple[Path, ...] = ()


def _compiler() -> _Compiler:
    """Return the host's g++ or, if there is none, the wheel's compiler.

    The wheel's compiler first compiles a C++ library once, which takes a minute on two idle cores.
    """
    system = shutil.which("g++")
    if system is not None:
        own = (*_OPTIONS, *_GCC_OPTIONS)
        return _Compiler((system,), own, headers=_precompiled((system, *own)))
    kept = cache_root() / "examples" / _LIBRARY_FOLDER
    return _Compiler((compiler_program(), "c++"), (*_OPTIONS, *_CLANG_OPTIONS), (compiler_folder(),), kept)


def _precompiled(command: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the folder with the substitute's header as g++ has read it: most of the time of a program.

    It is made once for each version of header and compiler; without it programs compile as well.
    """
    version = subprocess.run(
        [command[0], "-dumpfullversion"], capture_output=True, check=False, timeout=RUN_TIMEOUT_S
    ).stdout
    key = digest_of("precompiled", command, version, _HEADER.read_bytes())
    place = cache_root() / "examples" / _READ_FIRST_FOLDER / key[:16]
    if place.is_dir():
        return (place,)
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=place.parent))
    try:
        header = scratch / f"{_HEADER.name}.gch"
        done = subprocess.run(
            [*command, "-x", "c++-header", str(_HEADER), "-o", str(header)],
            capture_output=True,
            check=False,
            timeout=BUILD_TIMEOUT_S,
        )
        if done.returncode != 0:
            return ()
        try:
            scratch.rename(place)
        except OSError:
            if not place.is_dir():  # otherwise another process was faster
                raise
        return (place,)
    finally:
        remove_tree(scratch)


def _compile(source: str, scratch: Path, main_cpp: Path) -> Path:
    """Compile a program in ``scratch``, or in a subfolder with the compiler's library."""
    compiler = _compiler()
    folder, name = compiler.kept or scratch, scratch.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.cpp").write_text(source, encoding="utf-8")
    done = run_confined(
        [
            *(*compiler.program, *compiler.options),
            *(f"-I{each}" for each in compiler.headers),
            f"-I{_HEADER.parent}",
            f"-I{main_cpp.parent.resolve()}",
            *(f"{name}.cpp", "-o", name),
        ],
        cwd=folder,
        wall_s=BUILD_TIMEOUT_S,
        readable=[_HEADER, main_cpp.parent.resolve(), *compiler.headers, *compiler.readable],
        env={"ZIG_GLOBAL_CACHE_DIR": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder)},
    )
    (folder / f"{name}.cpp").unlink()
    if done.returncode == 0:
        return folder / name
    if done.timed_out:
        raise InfrastructureError(f"{main_cpp}: compiling took longer than {BUILD_TIMEOUT_S:g} s")
    if _COLLECTIVE.search(source):
        raise OperatorFormatError(
            f"{main_cpp}: unsupported: collective communication (hccl) needs several devices"
        )
    said = done.stderr.decode("utf-8", "replace")
    found = _ERROR.search(said)
    reason = f"line {found[1]}: {found[2]}" if found else " ".join(said.split())[:200]
    raise OperatorFormatError(f"{main_cpp}: does not compile with the recording ACL runtime: {reason}")

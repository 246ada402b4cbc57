"""The C++ standard library that the simulator's programs and tiling programs are linked with.

It is libc++ out of the compiler's wheel, but only the parts that those programs use: all of it takes a minute
to compile. Threads, clocks, chance, file systems and regular expressions are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.wheel import compiler_folder
from npu_daemon.simulator.compiler import (
    archiver,
    call_tool,
    lld,
    system_libraries,
    system_loader,
)
from npu_daemon.simulator.object_store import ObjectStore, Part

_SUPPORT = Path(__file__).parent / "src" / "support"
_ARCHIVE = "libstandard.a"
_PROGRAM_START, _LIBRARY_START = "start.o", "library.o"
# Longest first, so that all processors have work to the end.
_CXX = (
    *(
        "locale",
        "ios.instantiations",
        "algorithm",
        "string",
        "ostream",
        "iostream",
        "fstream",
        "ios",
        "charconv",
    ),
    *("system_error", "functional", "vector", "hash", "stdexcept", "error_category", "bind", "valarray"),
    *("call_once", "ryu/d2fixed", "new_handler", "memory", "ryu/d2s", "ryu/f2s", "optional", "variant"),
    *("exception", "expected", "new", "any", "verbose_abort", "typeinfo", "new_helpers"),
)
_ABI = (
    *("stdlib_stdexcept", "cxa_guard", "cxa_exception", "cxa_default_handlers", "cxa_handlers"),
    *("private_typeinfo", "cxa_personality", "cxa_vector", "stdlib_new_delete", "fallback_malloc"),
    *("stdlib_exception", "cxa_exception_storage", "cxa_aux_runtime", "abort_message"),
    *("stdlib_typeinfo", "cxa_virtual", "cxa_thread_atexit"),
)
_UNWIND = (
    "libunwind.cpp",
    "UnwindLevel1.c",
    "UnwindLevel1-gcc-ext.c",
    "UnwindRegistersRestore.S",
    "UnwindRegistersSave.S",
)
# These define themselves what headers define where a program is compiled, so they are read before any header.
_BEFORE_HEADERS = ("iostream", "error_category", "memory")
# Much code for numbers and texts of streams, which nothing here spends its time with: not optimised.
_STREAMS = ("locale", "ios.instantiations", "ios", "ostream", "fstream")
_NOT_OPTIMISED = ("-Xclang", "-disable-llvm-passes")
_PREFIX = _SUPPORT / "library_headers.h"
_COMMON = ("-O1", "-fPIC", "-w", "-ffunction-sections", "-fdata-sections", "-DNDEBUG", "-c")
_CXX_DEFINES = (
    "-D_LIBCPP_BUILDING_LIBRARY",
    "-D_LIBCXXABI_BUILDING_LIBRARY",
    "-D_LIBCXXABI_HAS_NO_THREADS",
    "-DLIBCXX_BUILDING_LIBCXXABI",
    "-DLIBCXXABI_NON_DEMANGLING_TERMINATE",
    "-DHAVE___CXA_THREAD_ATEXIT_IMPL",
)
_UNWIND_DEFINES = ("-D_LIBUNWIND_HAS_NO_THREADS", "-D_LIBUNWIND_IS_NATIVE_ONLY")
_LINK = ("--eh-frame-hdr", "--gc-sections", "-z", "relro", "-z", "now", "--build-id=none", "--error-limit=5")


@dataclass(frozen=True)
class StandardLibrary:
    """What programs and libraries are linked with besides their own objects.

    Attributes:
        folder: holds the compiled parts; ``parts`` says which, ``archive`` puts them together.
    """

    folder: Path

    def parts(self) -> list[Part]:
        """Return what has to be compiled, into a folder that must exist."""
        library = compiler_folder() / "lib"
        cxx, abi, unwind = (library / name for name in ("libcxx", "libcxxabi", "libunwind"))
        inner = (f"-I{cxx / 'src'}", f"-I{cxx / 'libc'}", f"-I{abi / 'include'}", f"-I{abi / 'src'}")
        options = (*_COMMON, "-std=c++23", *_CXX_DEFINES, *inner, f"-I{unwind / 'include'}")
        parts = [self._library_part(options, cxx / "src" / f"{name}.cpp") for name in _CXX]
        parts += [self._library_part(options, abi / "src" / f"{name}.cpp") for name in _ABI]
        parts += [self._unwind_part(unwind, name) for name in _UNWIND]
        return [
            *parts,
            *(self._part(_COMMON, _SUPPORT / f"{name}.c") for name in ("start", "library", "half")),
        ]

    def archive(self) -> None:
        """Put the compiled parts together."""
        single = {self.folder / _PROGRAM_START, self.folder / _LIBRARY_START}
        members = [str(part.target) for part in self.parts() if part.target not in single]
        call_tool(archiver("rcs", str(self.folder / _ARCHIVE), *members))

    def link_program(self, output: Path, inputs: Sequence[str], options: Sequence[str] = ()) -> None:
        """Make a program of objects.

        Raises:
            InfrastructureError: something is missing.
        """
        start = ["-pie", "--dynamic-linker", system_loader(), str(self.folder / _PROGRAM_START)]
        call_tool(lld(*_LINK, *start, *options, *inputs, *self._libraries(), "-o", str(output)))

    def link_library(self, output: Path, inputs: Sequence[str], options: Sequence[str] = ()) -> None:
        """Make a shared library of objects, with a standard library of its own.

        Raises:
            InfrastructureError: something is missing.
        """
        start = ["-shared", "-z", "defs", str(self.folder / _LIBRARY_START)]
        call_tool(lld(*_LINK, *start, *options, *inputs, *self._libraries(), "-o", str(output)))

    def library_start(self) -> str:
        """Return the object that each shared library begins with."""
        return str(self.folder / _LIBRARY_START)

    def archive_file(self) -> str:
        """Return the archive of the compiled parts."""
        return str(self.folder / _ARCHIVE)

    def _libraries(self) -> tuple[str, ...]:
        return (str(self.folder / _ARCHIVE), *system_libraries())

    def _unwind_part(self, unwind: Path, name: str) -> Part:
        language = ("-std=c++17", "-fno-exceptions", "-fno-rtti") if name.endswith(".cpp") else ()
        places = (f"-I{unwind / 'include'}", f"-I{unwind / 'src'}")
        options = (*_COMMON, *language, *_UNWIND_DEFINES, "-funwind-tables", *places)
        return self._part(options, unwind / "src" / name)

    def _library_part(self, options: tuple[str, ...], source: Path) -> Part:
        prefix = None if source.stem in _BEFORE_HEADERS else _PREFIX
        code_options = _NOT_OPTIMISED if source.stem in _STREAMS else ()
        return self._part(options, source, prefix, code_options)

    def _part(
        self,
        options: tuple[str, ...],
        source: Path,
        prefix: Path | None = None,
        code_options: tuple[str, ...] = (),
    ) -> Part:
        folder = "" if source.parent == _SUPPORT else f"{source.parent.parent.name}-{source.parent.name}-"
        return Part(options, source, self.folder / f"{folder}{source.stem}.o", prefix, code_options)


def build_standard_library(folder: Path, store: ObjectStore) -> StandardLibrary:
    """Return the library, built into ``folder``, which must not exist."""
    folder.mkdir(parents=True)
    library = StandardLibrary(folder)
    store.compile_all(library.parts())
    library.archive()
    return library

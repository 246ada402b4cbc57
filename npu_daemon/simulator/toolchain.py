"""The simulator's programs and precompiled headers, built once per host and cached by digest."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.wheel import compiler_folder
from npu_daemon.own_files import MANIFEST_NAME, OWN_FILES
from npu_daemon.simulator.compiler import compiler_version, lld
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.host_toolchain import host_library, host_parts, link_host, precompile_host_header
from npu_daemon.simulator.kernel_ir.clang import precompile
from npu_daemon.simulator.kernel_ir.interface import constant_functions, interface_texts, modules_of
from npu_daemon.simulator.kernel_ir.toolchain import KernelToolchain, prepare_kernel_toolchain
from npu_daemon.simulator.object_store import DIGEST_SUFFIX, PRECOMPILED_SUFFIX, ObjectStore, Part
from npu_daemon.simulator.own_sources import (
    INCLUDE,
    SOURCES,
    cpu_flags,
    longest_first,
    own_part,
    own_parts,
)
from npu_daemon.simulator.program_compiler import PROGRAM_HEADER, program_options
from npu_daemon.simulator.standard_library import StandardLibrary
from npu_daemon.simulator.task_type import CoreKind

_SIMULATOR = Path(__file__).parent
_RUN, _LAUNCHER, _PRICE, _RACES, _HOST, _KERNEL, _LOCK = (
    "asim_run",
    "asim_launcher",
    "asim_price",
    "asim_races",
    "host",
    "kernel",
    "lock",
)
_PROGRAMS = (_RUN, _LAUNCHER, _PRICE, _RACES)
# What kernels may take from the run program: not its main function, nor where its data lie.
_INTERFACE = re.compile(r"^_ZN4asim")
# Pricing and the race check are each optimised as a whole: one source, and nothing of it for others. Headers
# are precompiled for the ordinary optimisation alone.
_WHOLE_OPTIONS = ("-O3", "-flto")
_WHOLE_LINK = ("--lto-O3",)
# The runtime's symbols are hidden but for what kernels may call (ASIM_API); the types of these are read from
# its LLVM IR. Its calls need no linkage table, nor do those of kernels (``kernel_ir.instrumenter``).
RUNTIME_OPTIONS = ("-fvisibility=hidden", "-fno-plt", "-Xclang", "-fembed-bitcode=all")
_EXPORTING = ("--export-dynamic", "--exclude-libs=ALL")
_PROGRAM_LINK = ("-shared", "--eh-frame-hdr")


@dataclass(frozen=True)
class Toolchain:
    """Where the built parts are.

    Attributes:
        folder: holds everything below.
        digest: identity of compiler, flags and simulator sources, on which builds depend.
        release: the same without the flags for this host's processor, on which results do not depend.
    """

    folder: Path
    digest: str
    release: str

    @property
    def run_program(self) -> Path:
        """Executes kernels (untrusted)."""
        return self.folder / _RUN

    @property
    def launcher_program(self) -> Path:
        """Runs programs that launch kernels themselves (untrusted)."""
        return self.folder / _LAUNCHER

    @property
    def price_program(self) -> Path:
        """Prices traces (trusted)."""
        return self.folder / _PRICE

    @property
    def races_program(self) -> Path:
        """Looks for races in traces (trusted)."""
        return self.folder / _RACES

    @property
    def host_folder(self) -> Path:
        """What ``npu_daemon.simulator.host_side`` needs."""
        return self.folder / _HOST

    @property
    def compiler_reads(self) -> tuple[Path, ...]:
        """Where the compiler finds the simulator's headers and libraries, and its own."""
        return (self.folder, INCLUDE, *self.compiler_programs)

    @property
    def compiler_programs(self) -> tuple[Path, ...]:
        """Where the compiler itself is."""
        return (compiler_folder(),)

    @property
    def kernel(self) -> KernelToolchain:
        """What building kernels needs."""
        return KernelToolchain(self.folder / _KERNEL)

    def ensure_whole(self) -> None:
        """Build damaged parts again, in silence.

        Raises:
            InfrastructureError: the simulator does not compile any more.
        """
        if not OWN_FILES.use(self.folder):
            _obtain_in(self.folder, object_store(self.folder.parents[1]), lambda _: None)

    def program_link_command(self, object_file: str, output: str) -> list[str]:
        """Return the linker call that makes a library of a program with launches and a main function."""
        return lld(*_PROGRAM_LINK, object_file, *host_library(self.host_folder), "-o", output)

    def program_header(self, kind: CoreKind, *, marked: bool) -> Path:
        """Return the precompiled form of what such programs read first; it is made when it is first needed.

        Args:
            kind: of the core that the program is compiled for.
            marked: whether kernels are marked.
        """
        precompiled = self.folder / f"program_{kind.value}{'_marked' if marked else ''}{PRECOMPILED_SUFFIX}"
        if not precompiled.exists():
            store = object_store(self.folder.parents[1])
            with contextlib.suppress(FileExistsError):
                os.link(store.precompile(program_options(kind, marked=marked), PROGRAM_HEADER), precompiled)
        return precompiled


def obtain_toolchain(cache_dir: Path, announce: Callable[[str], None]) -> Toolchain:
    """Return the toolchain for this host and these sources, building it if it is not cached or damaged.

    One that is damaged is made again beside it, and its files are replaced one by one: what runs goes on.

    Args:
        cache_dir: where built toolchains are kept.
        announce: told, once, when a build starts.

    Raises:
        InfrastructureError: the compiler is missing or the simulator does not compile.
    """
    toolchain = _located(cache_dir)
    _obtain_in(toolchain.folder, object_store(cache_dir), announce)
    return toolchain


def _obtain_in(folder: Path, store: ObjectStore, announce: Callable[[str], None]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _LOCK, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not OWN_FILES.use(folder):
            if (folder / MANIFEST_NAME).exists():
                OWN_FILES.note_repair("simulator")
            announce(f"building the simulator (once, {_build_time(store)})")
            building = Path(tempfile.mkdtemp(dir=folder.parent, prefix="building-"))
            try:
                _build(building, store)
                _install(building, folder)
            finally:
                remove_tree(building)


def toolchain_state(cache_dir: Path) -> str:
    """Return in words whether the toolchain is in a cache, or how long the first evaluation builds it.

    Raises:
        InfrastructureError: the compiler is missing.
    """
    folder = _located(cache_dir).folder
    problem = OWN_FILES.problem(folder)
    if problem is None:
        return "built"
    if (folder / MANIFEST_NAME).exists():
        return f"damaged ({problem}): the next evaluation builds it again"
    return f"not built yet: the first evaluation does that ({_build_time(object_store(cache_dir))})"


def _located(cache_dir: Path) -> Toolchain:
    """Return the toolchain of this host and these sources, whether or not it is built yet."""
    sources = digest_of_tree(_SIMULATOR, ("**/*.py", "include/**/*", "src/**/*"))
    release = digest_of("release", compiler_version(), sources)
    digest = digest_of("toolchain", compiler_version(), cpu_flags(), sources)
    # Precompiled headers name the headers in them by their paths.
    place = digest_of("place", digest, str(_SIMULATOR), str(compiler_folder()))
    return Toolchain((cache_dir / "toolchain").resolve() / place[:32], digest, release)


def current_digest() -> str:
    """Return the digest of the toolchain for this host and the sources as they are now."""
    return _located(Path()).digest


def _build_time(store: ObjectStore) -> str:
    """Return in words how long a build takes on two idle processors."""
    if all(map(store.is_shipped, toolchain_parts(Path()))):
        return "some seconds: the installation brought the compiled parts"
    return "about half a minute"


def object_store(cache_dir: Path) -> ObjectStore:
    """Return the store of everything compiled for the toolchains below ``cache_dir``."""
    return ObjectStore(cache_dir / "toolchain" / "objects")


def _install(building: Path, folder: Path) -> None:
    """Move what is needed of a finished build into a folder that others may be using, the manifest last."""
    wanted = [building / name for name in _PROGRAMS]
    for part in (_HOST, _KERNEL):
        compiled = {each.target for each in host_parts(building / _HOST)}
        wanted += sorted(set((building / part).iterdir()) - compiled)
        (folder / part).mkdir(exist_ok=True)
    names = [str(path.relative_to(building)) for path in wanted]
    for name in names:
        (building / name).replace(folder / name)
    OWN_FILES.seal(folder, names)


@dataclass(frozen=True)
class _Programs:
    """What is compiled of the simulator's own sources, by the program that it is for."""

    price: Part
    races: Part
    run: list[Part]
    launcher: list[Part]
    host: list[Part]

    @property
    def parts(self) -> tuple[list[Part], ...]:
        """All of them, those first that are waited for first."""
        return [self.price, self.races], self.run, longest_first([*self.launcher, *self.host])

    @classmethod
    def in_folder(cls, folder: Path) -> _Programs:
        """Return the parts with their targets in ``folder``."""
        return cls(
            price=_whole_part(folder, "price"),
            races=_whole_part(folder, "races"),
            run=own_parts(folder, "run", "runtime", code_options=RUNTIME_OPTIONS),
            launcher=own_parts(folder, "asc"),
            host=host_parts(folder / _HOST),
        )


def _whole_part(folder: Path, name: str) -> Part:
    """Return the one source of a program that is optimised as a whole."""
    return replace(own_part(SOURCES / f"{name}.cpp", folder / f"{name}.o", _WHOLE_OPTIONS), prefix=None)


def simulator_parts(folder: Path) -> list[Part]:
    """Return each of the simulator's own sources as what is compiled of it, with targets in ``folder``."""
    programs = _Programs.in_folder(folder)
    parts = [part for group in programs.parts for part in group]
    return [*parts, *own_parts(folder, "price", "races")]


def toolchain_parts(folder: Path) -> list[Part]:
    """Return all that is compiled for a toolchain, with targets in ``folder`` and below it."""
    groups = (StandardLibrary(folder).parts(), *_Programs.in_folder(folder).parts)
    return [part for group in groups for part in group]


def compile_for_wheel(store: Path) -> None:
    """Put everything that can be compiled ahead, for hosts like this one, into the folder ``store``.

    Programs that are optimised as a whole are so here, and not by each host that links them.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / _HOST).mkdir()
        standard, programs, objects = StandardLibrary(folder), _Programs.in_folder(folder), ObjectStore(store)
        groups = (standard.parts(), *programs.parts)
        objects.compile_all(part for group in groups for part in group)
        standard.archive()
        for part in (programs.price, programs.races):
            optimised = part.target.with_suffix(".optimised")
            options = (*_WHOLE_LINK, f"--lto-obj-path={optimised}")
            standard.link_program(part.target.with_suffix(""), [str(part.target)], options)
            objects.replace(part, optimised)
    for suffix in (PRECOMPILED_SUFFIX, DIGEST_SUFFIX):  # the former are good where they were made alone
        for path in store.glob(f"*{suffix}"):
            path.unlink()


def _build(folder: Path, store: ObjectStore) -> None:
    """Build everything into ``folder``; what takes long to link or to read is, while the rest is compiled."""
    standard, host, kernel = StandardLibrary(folder / "standard"), folder / _HOST, folder / _KERNEL
    for part in (standard.folder, host, kernel):
        part.mkdir()
    programs = _Programs.in_folder(folder)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:

        def started(parts: Iterable[Part]) -> list[Future[None]]:
            return [pool.submit(store.compile, part) for part in parts]

        first, *library_parts = standard.parts()
        whole_parts, (longest, *run_parts), other_parts = programs.parts
        # The first of the library and of the run program precompile the headers of the others, which are in
        # the queue behind what needs none: nobody waits for them.
        library, whole, run = started([first]), started(whole_parts), started([longest])
        library += started(library_parts)
        headers = [pool.submit(precompile, kernel), pool.submit(precompile_host_header, host, store)]
        run += started(run_parts)
        others = started(other_parts)
        _await([*library, *whole])
        standard.archive()
        for name, source in zip((_PRICE, _RACES), whole_parts, strict=True):
            standard.link_program(folder / name, [str(source.target)], _WHOLE_LINK)
        _await(run)
        _link_run_program(folder, standard, programs.run)
        _await([*headers, *others])
    link_host(host, standard)
    _link_launcher(folder, standard, programs)


def _await(started: Sequence[Future[None]]) -> None:
    for each in started:
        each.result()


def _link_run_program(folder: Path, standard: StandardLibrary, run: Sequence[Part]) -> None:
    """Make what kernels are loaded by, and note which functions of the simulator they take from it."""
    standard.link_program(folder / _RUN, _targets(run), _EXPORTING)
    exported = {name for name in dynamic_symbols(folder / _RUN).defined if _INTERFACE.search(name)}
    modules = list(modules_of(part.target for part in run))
    interface, constants = interface_texts(modules, exported), constant_functions(modules, exported)
    prepare_kernel_toolchain(KernelToolchain(folder / _KERNEL), interface, constants)


def _link_launcher(folder: Path, standard: StandardLibrary, programs: _Programs) -> None:
    runtime = [part for part in programs.run if part.source.name != "main.cpp"]
    objects = _targets([*runtime, *programs.launcher])
    standard.link_program(folder / _LAUNCHER, [*objects, *host_library(folder / _HOST, _HOST)], _EXPORTING)


def _targets(parts: Sequence[Part]) -> list[str]:
    return [str(part.target) for part in parts]

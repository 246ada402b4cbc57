"""Sources of operators: those beside a manifest, and those of a checkout of cann-ops.

``sources = "cann-ops:activation/swi_glu"`` in a manifest names ``src/activation/swi_glu`` of the imported
checkout. What its CMakeLists.txt builds and what these files include are taken.

Files outside the operator folder become part of the candidate, under ``shared/`` and their path in the
checkout, so that a candidate is complete and its digest covers them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.cpp_text import INCLUDE_DIRECTIVE
from ascend_gym.core.digest import digest_of_tree
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.domain_library import auto_sync as library_auto_sync
from ascend_gym.suite.domain_library import library_root, read_library_candidate, read_library_operator
from ascend_gym.suite.imported import IMPORTED_SUITE, read_index
from ascend_gym.suite.manifest import MANIFEST_NAME, OperatorSection
from ascend_gym.suite.sources import SOURCE_SUFFIXES, choose_main, read_candidate, read_source

SHARED = "shared"
COMMON_INCLUDES = "src/common/inc"
LOGGING = "src/common/inc/log"  # calls the operating system: like the rest of CANN, a backend brings its own

_COMMAND = r"{name}\s*\(\s*(?:{target})\s+(?:PRIVATE|PUBLIC)\s+([^)]*)\)"
_OP_NAME = re.compile(r"add_ops_compile_options\s*\(\s*OP_NAME\s+(\w+)")
_INCLUDE_OPTION = re.compile(r"-I\s*(\S+)")
_CMAKE_COMMENT = re.compile(r"#[^\n]*")
_TILING_FUNCTION = "TilingContext"
_REGISTERS_TILING = re.compile(r"\bIMPL_OP_OPTILING\b|\bSetTiling\s*\(")
_REGISTERS_OPERATOR = re.compile(r"\bOP_ADD\s*\(")
_ENTRY = re.compile(r"\b__global__\b")
_COMPILED = (".cpp", ".cc")
_SOURCE_FILES = ("CMakeLists.txt", "op_host/**/*", "op_kernel/**/*")


@dataclass(frozen=True)
class BuildFile:
    """What a CMakeLists.txt says about an operator.

    Attributes:
        op_type: OP_NAME of its compile options, if it has any.
        tiling: sources of the tiling library.
        definition: sources of the operator definition.
        include_dirs: existing folders that are searched for headers.
        auto_sync: whether the device compiler inserts synchronisation.
    """

    op_type: str | None
    tiling: tuple[Path, ...]
    definition: tuple[Path, ...]
    include_dirs: tuple[Path, ...]
    auto_sync: bool


def checkout_root(folder: Path) -> Path | None:
    """Return the checkout that an operator folder lies in: the nearest one above with shared headers."""
    return next((parent for parent in folder.parents if (parent / COMMON_INCLUDES).is_dir()), None)


def read_build_file(folder: Path) -> BuildFile:
    """Read the CMakeLists.txt of an operator folder; one that is missing says nothing."""
    path = folder / "CMakeLists.txt"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    text = _CMAKE_COMMENT.sub("", text)
    op_type = _OP_NAME.search(text)
    folders = [
        *_listed(text, "target_include_directories", r"\w+", folder),
        *(_resolve(option, folder) for option in _INCLUDE_OPTION.findall(text)),
    ]
    tiling = _existing(_listed(text, "target_sources", "optiling", folder))
    listed = _existing(_listed(text, "target_sources", r"op_host_aclnn\w*", folder))
    definition = listed or _with_definition(folder, tiling)
    return BuildFile(
        op_type=op_type.group(1) if op_type else None,
        tiling=tiling if _has_tiling((*tiling, *definition)) else _with_tiling(folder, tiling),
        definition=definition,
        include_dirs=tuple(dict.fromkeys(place for place in folders if place and place.is_dir())),
        auto_sync="--cce-auto-sync=off" not in text,
    )


def _has_tiling(paths: Iterable[Path]) -> bool:
    return any(_TILING_FUNCTION in read_source(path) for path in paths)


def _with_tiling(folder: Path, tiling: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return ``tiling`` and the sources of op_host with the tiling functions that the build file forgets."""
    sources = sorted(path for path in (folder / "op_host").glob("*") if path.suffix in _COMPILED)
    return (*tiling, *(path for path in sources if tiling and _has_tiling([path])))


def _with_definition(folder: Path, tiling: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the sources of op_host that register the operator, for a build file that names none."""
    sources = sorted(path for path in (folder / "op_host").glob("*") if path.suffix in _COMPILED)
    registering = [path for path in sources if _REGISTERS_OPERATOR.search(read_source(path))]
    return tuple(path for path in registering if tiling and path not in tiling)


def read_cann_candidate(folder: Path, build: BuildFile) -> Candidate:
    """Read the sources of an operator folder of a checkout.

    Raises:
        OperatorFormatError: a side has no sources, or its main file cannot be determined.
    """
    if not build.tiling:
        return read_candidate(folder, folder.name)
    root = checkout_root(folder)
    compiled = tuple(dict.fromkeys((*build.tiling, *build.definition)))
    host = _closure(folder, root, compiled, build.include_dirs, "op_host")
    kernels = sorted(path for path in (folder / "op_kernel").rglob("*") if path.suffix in SOURCE_SUFFIXES)
    device = _closure(folder, root, kernels, build.include_dirs, "op_kernel")
    tiling_files = [_virtual(path, folder, root) for path in build.tiling]
    return Candidate(
        host=Sources(files=tuple(host.values()), main=_tiling_main(folder, host, tiling_files)),
        kernel=Sources(files=tuple(device.values()), main=_kernel_main(folder, device)),
    )


def _tiling_main(folder: Path, files: dict[str, SourceFile], tiling: Sequence[str]) -> str:
    """Return the main tiling source: one named after the operator, one that registers, or the first."""
    named = [f"op_host/{folder.name}_tiling.cpp", f"op_host/{folder.name}.cpp"]
    own = [path for path in named if path in tiling and _TILING_FUNCTION in files[path].text]
    registering = [path for path in tiling if _REGISTERS_TILING.search(files[path].text)]
    declaring = [path for path in tiling if _TILING_FUNCTION in files[path].text]
    return [*own, *registering, *declaring, *tiling][0]


def _kernel_main(folder: Path, files: dict[str, SourceFile]) -> str:
    entries = [
        path
        for path, file in files.items()
        if path.startswith("op_kernel/") and path.endswith(_COMPILED) and _ENTRY.search(file.text)
    ]
    preferred = (f"op_kernel/{folder.name}.cpp",)
    return choose_main(folder, entries, preferred, "a __global__ kernel entry in op_kernel")


def _closure(
    folder: Path, root: Path | None, start: Sequence[Path], extra_dirs: Sequence[Path], side: str
) -> dict[str, SourceFile]:
    """Return the files in ``start`` and whatever they include from the checkout, by virtual path."""
    search = [folder / side, folder, *extra_dirs, *([root / COMMON_INCLUDES] if root else [])]
    found: dict[str, SourceFile] = {}
    waiting = [path.resolve() for path in start]
    seen = set(waiting)
    while waiting:
        path = waiting.pop(0)
        virtual = _virtual(path, folder, root)
        found[virtual] = SourceFile(path=virtual, text=read_source(path))
        for name in INCLUDE_DIRECTIVE.findall(found[virtual].text):
            included = _find(name, [path.parent, *search], root or folder)
            if included is None or included in seen or _is_logging(included, root):
                continue
            new = [included, *_definitions(included, folder, root)]
            waiting += [path for path in new if path not in seen]
            seen.update(new)
    return found


def _definitions(header: Path, folder: Path, root: Path | None) -> list[Path]:
    """Return the source with the functions of another operator's header: all are linked into one library."""
    shared = root is None or header.is_relative_to((root / "src" / "common").resolve())
    if shared or header.is_relative_to(folder.resolve()) or header.parent.name != "op_host":
        return []
    sources = (header.with_suffix(suffix) for suffix in _COMPILED)
    return [source for source in sources if source.is_file()]


def _is_logging(path: Path, root: Path | None) -> bool:
    return root is not None and path.is_relative_to((root / LOGGING).resolve())


def _find(name: str, folders: Sequence[Path], inside: Path) -> Path | None:
    for folder in folders:
        path = (folder / name).resolve()
        if path.is_file() and path.is_relative_to(inside.resolve()):
            return path
    return None


def _virtual(path: Path, folder: Path, root: Path | None) -> str:
    path = path.resolve()
    if path.is_relative_to(folder.resolve()):
        return path.relative_to(folder.resolve()).as_posix()
    if root is None or not path.is_relative_to(root.resolve()):
        raise OperatorFormatError(f"{folder}: {path} lies outside the checkout")
    return f"{SHARED}/{path.relative_to(root.resolve()).as_posix()}"


def _listed(text: str, command: str, target: str, folder: Path) -> list[Path | None]:
    calls = re.findall(_COMMAND.format(name=command, target=target), text)
    return [_resolve(word.strip('"'), folder) for call in calls for word in call.split()]


def _resolve(word: str, folder: Path) -> Path | None:
    """Return the path that a word of CMake stands for, or ``None`` when it uses other variables."""
    root = checkout_root(folder)
    if root is not None:
        word = word.replace("${OP_COMMON_DIR}", f"{root}/src/common").replace(
            "${CMAKE_SOURCE_DIR}", str(root)
        )
    word = word.replace("${CMAKE_CURRENT_SOURCE_DIR}", str(folder))
    return None if "$" in word else (folder / word).resolve()


def _existing(paths: Iterable[Path | None]) -> tuple[Path, ...]:
    return tuple(
        dict.fromkeys(path for path in paths if path and path.suffix in _COMPILED and path.is_file())
    )


def read_checkout_sources(place: Path) -> tuple[Candidate, bool]:
    """Return the sources of an operator folder of a checkout, and whether its compiler synchronises.

    Raises:
        OperatorFormatError: they cannot be understood.
    """
    root = library_root(place)
    if root is not None:
        return read_library_candidate(read_library_operator(place, root)), library_auto_sync(place)
    build = read_build_file(place)
    return read_cann_candidate(place, build), build.auto_sync


def read_sources(folder: Path, name: str, operator: OperatorSection) -> tuple[Candidate, bool]:
    """Return the sources that a manifest asks for, and whether its compiler synchronises.

    Args:
        folder: of the manifest.
        name: of the operator, in snake case.
        operator: what the manifest says.

    Raises:
        OperatorFormatError: there is no such checkout or folder, it cannot be understood, or its sources are
            not those that ``sources_digest`` names.
    """
    place = folder if operator.sources is None else source_folder(folder, operator.sources)
    auto_sync = operator.auto_sync
    in_checkout = checkout_root(place) is not None or library_root(place) is not None
    if not in_checkout or operator.tiling or operator.kernel:
        candidate = read_candidate(place, name, tiling=operator.tiling, kernel=operator.kernel)
    else:
        candidate, by_compiler = read_checkout_sources(place)
        auto_sync = auto_sync if "auto_sync" in operator.model_fields_set else by_compiler
    wanted = operator.sources_digest
    if wanted is not None and not candidate.digest.startswith(wanted):
        raise OperatorFormatError(
            f"{folder / MANIFEST_NAME}: the sources in {place} have the digest {candidate.digest[:16]}, "
            f"sources_digest says {wanted}: check out the version that the manifest was written for"
        )
    return candidate, auto_sync


def source_folder(folder: Path, sources: str) -> Path:
    """Return the folder in the imported checkout that ``sources`` of a manifest names.

    Raises:
        OperatorFormatError: no checkout was imported, or it has no such folder.
    """
    manifest = folder / MANIFEST_NAME
    suite, _, inside = sources.partition(":")
    root = read_index(suite).root
    if not root:
        option = "--cann-ops" if suite == IMPORTED_SUITE else "--cann-library"
        raise OperatorFormatError(
            f"{manifest}: operator.sources is {sources!r}, and no checkout of {suite} is known: "
            f"ascend-gym suite import {option} DIR"
        )
    place = Path(root) / ("src" if suite == IMPORTED_SUITE else "") / inside
    if not (place / "op_host").is_dir() or not (place / "op_kernel").is_dir():
        raise OperatorFormatError(f"{manifest}: operator.sources: {place} has no op_host and op_kernel")
    return place


def digest_of_sources_elsewhere(folder: Path) -> str | None:
    """Return the digest of the sources that the manifest of a folder finds elsewhere, ``None`` without any.

    Raises:
        OperatorFormatError: they are not there.
    """
    try:
        content = read_toml(folder / MANIFEST_NAME)
    except (OSError, ValueError):
        return None
    operator = content.get("operator")
    sources = operator.get("sources") if isinstance(operator, dict) else None
    if not isinstance(sources, str):
        return None
    place = source_folder(folder, sources)
    root = library_root(place)
    if root is not None:
        return read_library_candidate(read_library_operator(place, root)).digest
    return digest_of_tree(place, _SOURCE_FILES)

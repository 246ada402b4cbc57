"""Sources of operators in the libraries by domain: ops-math, ops-nn, ops-transformer and checkouts like them.

Such a checkout has operators at ``CATEGORY/OPERATOR`` and ``experimental/CATEGORY/OPERATOR``, and headers
shared by both sides in ``common``. Its build takes the sources of an operator by patterns: of ``op_host``
what is named ``*_tiling*.cpp`` and ``*_def*.cpp``, of the folder that ``SUPPORT_TILING_DIR`` names for the
chip the tiling sources, and all below ``op_tiling``; the kernel is named like the operator, or by
``opFile.value`` in its configuration for the chip.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ascend_gym.core.cpp_text import INCLUDE_DIRECTIVE, without_comments
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.suite.sources import read_source

CHIP = "ascend910b"
COMMON_FOLDERS = ("common/inc", "common/include")
LATER_CHIPS_ONLY = (
    "it is for Ascend 950 alone (vector registers, SIMT): this simulator has the chips of the 910B"
)

_BUILD_FILES = ("build.sh", "cmake")
_SHARED = "shared"
_COMPILED = (".cpp", ".cc")
_CALL = re.compile(r"\badd_(?:all_)?modules_sources\s*\(([^)]*)\)")
_CALL_BEGIN = re.compile(r"\badd_(?:all_)?modules_sources\s*\(")
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^)]*)\)")
_CMAKE_COMMENT = re.compile(r"#[^\n]*")
_KEYWORDS = frozenset(
    {"OPTYPE", "ACLNNTYPE", "DEPENDENCIES", "COMPUTE_UNIT", "TILING_DIR", "DIR", "DISABLE_IN_OPP"}
)
_CONFIG = re.compile(r'AddConfig\(\s*"(\w+)"\s*(?:,\s*(\w+))?')
_OP_FILE = re.compile(
    r'(\w+)?((?:\s*\.\s*\w+\((?:[^()]|\([^()]*\))*\))*?)\s*\.\s*ExtendCfgInfo\(\s*"opFile\.value"\s*,\s*"([^"]+)"'
)
_OP_TYPE = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
_SIBLING = re.compile(r"^(?:\.\./)+(\w+)/(.+)$")


@dataclass(frozen=True)
class LibraryOperator:
    """An operator folder of a library.

    Attributes:
        root: of the checkout.
        folder: of the operator.
        chips: for which it is configured, as ``ascend910b``.
        op_type: as in ``OP_ADD``.
        kernel: main kernel source, relative to the folder.
    """

    root: Path
    folder: Path
    chips: frozenset[str]
    op_type: str
    kernel: str

    @property
    def place(self) -> str:
        """Its folder relative to the checkout."""
        return self.folder.relative_to(self.root).as_posix()


def library_root(folder: Path) -> Path | None:
    """Return the checkout of a library by domain that a folder lies in, ``None`` for one in none."""
    return next((place for place in (folder, *folder.parents) if _is_root(place)), None)


def _is_root(place: Path) -> bool:
    return any((place / each).is_dir() for each in COMMON_FOLDERS) and all(
        (place / each).exists() for each in _BUILD_FILES
    )


def operator_folders(root: Path) -> dict[str, Path]:
    """Return the operator folders of a library by name, ``experimental.NAME`` for those below that.

    Raises:
        MisuseError: it is no such checkout.
    """
    if not _is_root(root):
        raise MisuseError(
            f"{root}: expected a checkout of ops-math, ops-nn, ops-transformer or the like, with build.sh, "
            f"cmake/ and {' or '.join(COMMON_FOLDERS)}"
        )
    found: dict[str, Path] = {}
    for host in sorted(
        {*root.glob("*/*/op_host"), *root.glob("experimental/*/*/op_host"), *root.glob("*/*/*/op_host")}
    ):
        folder = host.parent
        if not any(folder.glob("op_kernel/*.cpp")):
            continue
        parts = folder.relative_to(root).parts
        if parts[0] in ("scripts", "tests", "common", "build"):
            continue
        prefix = "experimental." if parts[0] == "experimental" else ""
        name = prefix + folder.name
        found[name if name not in found else f"{parts[-2]}.{folder.name}"] = folder
    if not found:
        raise MisuseError(f"{root}: no folder CATEGORY/OPERATOR with op_host and op_kernel")
    return found


def read_library_operator(folder: Path, root: Path) -> LibraryOperator:
    """Read what an operator folder says about chips, type and kernel.

    Raises:
        OperatorFormatError: there is no definition, none for the 910B, or no kernel source for it; or the
            folder is a link out of the checkout.
    """
    if not folder.resolve().is_relative_to(root.resolve()):
        raise OperatorFormatError(f"{folder}: it is a symbolic link out of the checkout {root}")
    folder = folder.resolve()
    definitions = sorted(path for path in (folder / "op_host").glob("*_def*") if path.suffix in _COMPILED)
    registering = [path for path in definitions if _OP_TYPE.search(without_comments(read_source(path)))]
    if not registering:
        raise OperatorFormatError(
            f"{folder / 'op_host'}: no *_def*.cpp with OP_ADD(...): nothing defines the operator"
        )
    text = without_comments(read_source(registering[0]))
    configs = dict(_CONFIG.findall(text))
    if CHIP not in configs:
        listed = ", ".join(sorted(configs)) or "no chip"
        reason = (
            LATER_CHIPS_ONLY
            if configs and all(each.startswith("ascend9") and each[6:9] == "950" for each in configs)
            else (f"it is configured for {listed} and not for {CHIP}")
        )
        raise OperatorFormatError(f"{registering[0]}: {reason}")
    op_type = _OP_TYPE.search(text)
    assert op_type is not None
    kernel = f"op_kernel/{_kernel_file(text, configs[CHIP]) or folder.name}.cpp"
    if not (folder / kernel).is_file():
        entries = [
            path for path in sorted((folder / "op_kernel").glob("*.cpp")) if "__global__" in read_source(path)
        ]
        usable = [path for path in entries if not path.stem.endswith("_apt")]
        if len(usable) != 1:
            raise OperatorFormatError(
                f"{folder}: no kernel source for {CHIP}: {kernel} is not there"
                + (f"; {LATER_CHIPS_ONLY}" if entries and not usable else "")
            )
        kernel = usable[0].relative_to(folder).as_posix()
    return LibraryOperator(root, folder, frozenset(configs), op_type[1], kernel)


def _kernel_file(text: str, config: str) -> str | None:
    """Return what ``opFile.value`` of a configuration variable says."""
    for statement in text.split(";"):
        found = re.search(r'"opFile\.value"\s*,\s*"([^"]+)"', statement)
        if found is not None and config and re.search(rf"\b{re.escape(config)}\b", statement):
            return found[1]
    return None


def tiling_sources(folder: Path) -> list[Path]:
    """Return the tiling sources that the library's build compiles for the 910B."""
    host = folder / "op_host"
    places = [host]
    settings = _settings(folder)
    units, dirs = settings.get("COMPUTE_UNIT", []), settings.get("TILING_DIR", [])
    tiling_dir = dict(zip(units, dirs, strict=False)).get(CHIP)
    if tiling_dir:
        places.append(host / tiling_dir)
    listed = [
        path for place in places for path in sorted(place.glob("*_tiling*")) if path.suffix in _COMPILED
    ]
    nested = [path for path in sorted((host / "op_tiling").rglob("*")) if path.suffix in _COMPILED]
    return list(dict.fromkeys([*listed, *nested]))


def _registered_elsewhere(operator: LibraryOperator) -> list[Path]:
    """Return the tiling sources of the sibling that registers an operator without one of its own."""
    registers = re.compile(rf"\bIMPL_OP_OPTILING\s*\(\s*{operator.op_type}\s*\)")
    sources = sorted(operator.folder.parent.glob("*/op_host/**/*tiling*.cpp"))
    found = [path for path in sources if "arch35" not in path.parts and registers.search(read_source(path))]
    return [found[0], *_built_with(found[0])] if found else []


def _built_with(source: Path) -> list[Path]:
    """Return the tiling sources of the operator folder of one: its build compiles them together."""
    host = next((place for place in source.parents if place.name == "op_host"), None)
    own = [] if host is None else tiling_sources(host.parent)
    return [path for path in own if path != source] if source in own else []


@lru_cache(maxsize=256)
def _shared_by(category: Path) -> tuple[str, ...]:
    """Return the folders of a category that its operators share: those with sources and no definition."""
    return tuple(
        sorted(
            path.name
            for path in category.iterdir()
            if path.is_dir() and not any(path.glob("op_host/*_def.cpp"))
        )
    )


def _settings(folder: Path) -> dict[str, list[str]]:
    """Return the lists that the CMake files of an operator pass to add_modules_sources, by keyword.

    Raises:
        OperatorFormatError: such a call is not closed.
    """
    lists: dict[str, list[str]] = {}
    for path in (folder / "CMakeLists.txt", folder / "op_host" / "CMakeLists.txt"):
        if not path.is_file():
            continue
        text = _CMAKE_COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
        variables = {name: value.split() for name, value in _SET.findall(text)}
        for begun in _CALL_BEGIN.finditer(text):
            if _CALL.match(text, begun.start()) is None:
                line = text.count("\n", 0, begun.start()) + 1
                raise OperatorFormatError(f"{path}:{line}: {begun[0]}...) is not closed")
        for call in _CALL.findall(text):
            keyword = ""
            for word in call.split():
                if word in _KEYWORDS:
                    keyword = word
                    lists.setdefault(keyword, [])
                elif keyword:
                    named = re.fullmatch(r"\$\{(\w+)\}", word)
                    lists[keyword] += [
                        each.strip('"') for each in (variables.get(named[1], []) if named else [word])
                    ]
    return lists


def auto_sync(folder: Path) -> bool:
    """Say whether the device compiler inserts synchronisation: unless one of its CMake files says off."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("**/CMakeLists.txt"))
    return not any("--cce-auto-sync=off" in _CMAKE_COMMENT.sub("", text) for text in texts)


def read_library_candidate(operator: LibraryOperator) -> Candidate:
    """Read the sources of an operator: what the build compiles, and what that includes from the checkout.

    Files of the operator folder have their paths there, others ``shared/`` and their path in the checkout.

    Raises:
        OperatorFormatError: there is no tiling source, or a file cannot be read.
    """
    folder, root = operator.folder, operator.root.resolve()
    tiling = tiling_sources(folder) or _registered_elsewhere(operator)
    definition = sorted(path for path in (folder / "op_host").glob("*_def*") if path.suffix in _COMPILED)
    if not tiling:
        raise OperatorFormatError(f"{folder / 'op_host'}: no tiling source (*_tiling*.cpp) for {CHIP}")
    host = _Closure(folder, root, "op_host").of([*definition, *tiling])
    kernel = _Closure(folder, root, "op_kernel").of([folder / operator.kernel])
    paths = [virtual_place(path, folder, root) for path in tiling]
    registering = [path for path in paths if "IMPL_OP_OPTILING" in host[path].text] or paths
    named = [path for path in registering if path.endswith(f"/{folder.name}_tiling.cpp")]
    return Candidate(
        host=Sources(files=tuple(host.values()), main=(named or registering)[0]),
        kernel=Sources(files=tuple(kernel.values()), main=operator.kernel),
    )


def shape_sources(operator: LibraryOperator) -> Sources | None:
    """Return definition and InferShape function of an operator, ``None`` for one without the latter.

    Raises:
        OperatorFormatError: a file cannot be read.
    """
    host, root = operator.folder / "op_host", operator.root.resolve()
    own = [path for path in sorted(host.glob("*infershape*")) if path.suffix in _COMPILED]
    if not own:
        return None
    definition = sorted(path for path in host.glob("*_def*") if path.suffix in _COMPILED)
    files = _Closure(operator.folder, root, "op_host").of([*definition, *own])
    return Sources(files=tuple(files.values()), main=virtual_place(own[0], operator.folder, root))


def virtual_place(path: Path, folder: Path, root: Path) -> str:
    """Return the path of a file of the checkout in the candidate of the operator in ``folder``."""
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return f"{_SHARED}/{path.relative_to(root).as_posix()}"


class _Closure:
    """What sources include from the checkout, transitively, by their paths in a candidate."""

    def __init__(self, folder: Path, root: Path, side: str) -> None:
        self._folder, self._root, self._side = folder, root, side
        common = [root / each for each in COMMON_FOLDERS if (root / each).is_dir()]
        self._search = [
            folder / side,
            folder,
            folder.parent,
            *common,
            *(place / side for place in common),
            root,
        ]
        beside = [*_settings(folder).get("DEPENDENCIES", []), *_shared_by(folder.parent)]
        self._search += [folder.parent / each / side for each in beside]
        self._found: dict[str, SourceFile] = {}

    def of(self, start: list[Path]) -> dict[str, SourceFile]:
        """Return the files, those in ``start`` among them."""
        waiting = [path.resolve() for path in start]
        seen = set(waiting)
        while waiting:
            path = waiting.pop(0)
            text = read_source(path)
            self._add(self._place(path), text)
            for name in INCLUDE_DIRECTIVE.findall(text):
                included = self._resolve(name, path)
                if included is None:
                    continue
                new = [included, *self._definitions(included)]
                waiting += [each for each in new if each not in seen]
                seen.update(new)
        return self._found

    def _add(self, place: str, text: str) -> None:
        self._found[place] = SourceFile(path=place, text=text)

    def _place(self, path: Path) -> str:
        return virtual_place(path, self._folder, self._root)

    def _resolve(self, name: str, path: Path) -> Path | None:
        """Return the file of the checkout that an include names; a header forwards where the path differs."""
        for place in [path.parent, *self._search]:
            found = (place / name).resolve()
            if not found.is_file():
                continue
            if not found.is_relative_to(self._root):
                raise OperatorFormatError(
                    f"{path}: it includes {name}, and {place / name} leads out of the checkout: "
                    "a candidate holds files of the checkout alone"
                )
            self._forward(name, path, found)
            return found
        sibling = _SIBLING.match(name)
        for found in self._installed(sibling[1], sibling[2]) if sibling else ():
            self._forward(name, path, found)
            return found
        return None

    def _forward(self, name: str, path: Path, found: Path) -> None:
        """Put a header that includes ``found`` where the compiler looks for ``name``, if it is not there."""
        place, wanted = self._place(found), name.lstrip("./")
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(self._place(path)), name))
        if meant == place or (not name.startswith(".") and f"/{place}".endswith(f"/{wanted}")):
            return
        self._add(f"{_SHARED}/{wanted}", f'#include "{place.removeprefix(f"{_SHARED}/")}"\n') if (
            f"{_SHARED}/{wanted}" != place
        ) else None

    def _installed(self, operator: str, rest: str) -> Iterator[Path]:
        """Yield a kernel header where the build installs it: ``OPERATOR/FILE`` beside the own folder."""
        for folder in _folders_named(self._root, operator, self._folder):
            found = (folder / self._side / rest).resolve()
            if found.is_file() and found.is_relative_to(self._root):
                yield found

    def _definitions(self, header: Path) -> list[Path]:
        """Return the source beside a host header of another folder, or of a shared one below common/src."""
        if self._side != "op_host" or header.suffix not in (".h", ".hpp"):
            return []
        if header.is_relative_to(self._folder):
            return []
        beside = [header.with_suffix(suffix) for suffix in _COMPILED]
        if header.parent.name == "op_host":
            beside += [path for path in tiling_sources(header.parents[1]) if path.stem == header.stem]
        common = [self._root / each for each in COMMON_FOLDERS if header.is_relative_to(self._root / each)]
        places = [Path("op_host"), *(header.relative_to(each).parent for each in common)]
        shared = [
            self._root / "common" / "src" / place / f"{header.stem}{suffix}"
            for place in places
            for suffix in _COMPILED
        ]
        found = [path for path in (*beside, *shared) if path.is_file() and "op_api" not in path.parts]
        together = [other for path in found for other in _built_with(path)]
        return list(dict.fromkeys(path.resolve() for path in (*found, *together)))


@lru_cache(maxsize=4096)
def _folders_named(root: Path, name: str, near: Path) -> tuple[Path, ...]:
    """Return the operator folders of a name, the nearest first: siblings, then those of other categories."""
    found = [
        path
        for pattern in (name, f"*/{name}", f"experimental/*/{name}", f"*/*/{name}")
        for path in root.glob(pattern)
    ]
    near_first = sorted(dict.fromkeys(found), key=lambda path: (path.parent != near.parent, path.as_posix()))
    return tuple(path for path in near_first if path.is_dir())

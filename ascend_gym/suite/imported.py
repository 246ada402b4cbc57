"""The index of an imported cann-ops checkout: which operators it has, where, and what each still needs.

The index is a small JSON file in the cache root. It points at the checkout; sources are never copied.
An aclnn example instead of an ``op.toml`` is read once by ``npu_daemon.importer``, in a confined process
of its own, which writes what it says as an ``op.toml`` with data files into the cache root.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError

from ascend_gym.core.append_log import write_whole
from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError, MisuseError, OperatorFormatError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.records import Record
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.toml_file import read_toml, reason_of
from ascend_gym.suite.domain_library import library_root, read_library_operator
from ascend_gym.suite.domain_library import operator_folders as library_folders
from ascend_gym.suite.manifest import MANIFEST_NAME

IMPORTED_SUITE = "cann-ops"
PAPER_SUITE = "cann-ops-101"  # of the imported operators those that AscendOptimizer is measured on
TODAY_SUITE = "cann-today"  # drawn from the libraries by domain, at the commits that its list names

_LIBRARIES = "libraries"  # in the cache root: an index of each library by domain

EXAMPLE_FOLDER = "examples/AclNNInvocationNaive"
EXIT_FORMAT = 4
_IMPORTER = "npu_daemon.importer.__main__"
_FOLDER = "imported"
_VERSION = 3  # of what the importer writes for the same example
_READ = ("CMakeLists.txt", "op_host/**/*", f"{EXAMPLE_FOLDER}/**/*")
_LIBRARY_VERSION = 7
_LIBRARY_READ = (
    "op_host/*_def*",
    "op_host/CMakeLists.txt",
    "tests/assets/*.py",
    "tests/st/**/*",
    "tests/ut/op_host/**/*tiling*.cpp",
    "examples/**/*.cpp",
    "CMakeLists.txt",
)
_PACKAGES = ("torch", "tensorflow")  # that a reference may need


class ImportedOperator(Record):
    """One operator of the checkout.

    Attributes:
        folder: relative to the checkout.
        needs: why it is not ready; empty when it is.
        key: of what it was imported from, for operators of libraries.
    """

    folder: str
    needs: str = ""
    key: str = Field(default="", exclude_if=lambda value: not value)


class ImportIndex(Record):
    """The imported operators of the checkout at ``root``, by name."""

    root: str = ""
    operators: dict[str, ImportedOperator] = Field(default={})

    def folder(self, name: str) -> Path:
        """Return the absolute folder of an imported operator."""
        return Path(self.root) / self.operators[name].folder

    def ready(self) -> list[str]:
        """Return the names of the operators that need nothing more."""
        return sorted(name for name, operator in self.operators.items() if not operator.needs)


@lru_cache(maxsize=1)
def paper_levels() -> Mapping[str, int]:
    """Return the level of each operator of ``cann-ops-101``, by name."""
    listed = read_toml(Path(__file__).with_name("cann_paper.toml"))
    return {name: level for level in (1, 2, 3) for name in listed[f"level_{level}"]}


class TodayOperator(Record):
    """An operator of ``cann-today``.

    Attributes:
        library: its suite, such as ``ops-nn``.
        name: its name there.
        level: by the length of its kernel.
        digest: of its sources, as the first digits of ``Candidate.digest``.
        commit: of the checkout that was read.
    """

    library: str
    name: str
    level: int
    digest: str
    commit: str


@lru_cache(maxsize=1)
def today_operators() -> Mapping[str, TodayOperator]:
    """Return the operators of ``cann-today`` by name; ``cann_today.toml`` lists them."""
    found = {}
    for library, table in read_toml(Path(__file__).with_name("cann_today.toml")).items():
        for name, (level, digest) in table["operators"].items():
            operator = TodayOperator(
                library=library, name=name, level=level, digest=digest, commit=table["commit"]
            )
            found[name.removeprefix("experimental.")] = operator
    return found


def today_index() -> ImportIndex:
    """Return those operators of ``cann-today`` whose libraries are imported, from the indexes of these."""
    found: dict[str, ImportedOperator] = {}
    for name, operator in today_operators().items():
        index = read_index(operator.library)
        if operator.name in index.operators:
            needs = index.operators[operator.name].needs
            found[name] = ImportedOperator(folder=str(index.folder(operator.name)), needs=needs)
    return ImportIndex(operators=found)


def operator_folders(checkout: Path) -> dict[str, Path]:
    """Return the operator folders of a checkout by name, as its own build finds them.

    Raises:
        MisuseError: it has none.
    """
    hosts = [*checkout.glob("src/*/*/op_host"), *checkout.glob("src/contrib/*/*/op_host")]
    common = checkout / "src" / "common"
    folders = {host.parent.name: host.parent for host in sorted(hosts) if not host.is_relative_to(common)}
    if not folders:
        raise MisuseError(
            f"{checkout}: expected a checkout of cann-ops with src/<category>/<operator>/op_host"
        )
    return folders


def select_operators(checkout: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the named operators of a checkout; of all when none is named.

    Raises:
        MisuseError: the checkout has no such operator.
    """
    folders = operator_folders(checkout)
    wanted = list(dict.fromkeys(names)) or list(folders)
    unknown = [name for name in wanted if name not in folders]
    if unknown:
        raise MisuseError(f"{checkout}: no operators {unknown} among its {len(folders)}")
    return {name: folders[name] for name in wanted}


def _index_path(suite: str) -> Path:
    return cache_root() / (
        f"{IMPORTED_SUITE}.json" if suite == IMPORTED_SUITE else f"{_LIBRARIES}/{suite}.json"
    )


def library_suites() -> list[str]:
    """Return the names of the imported libraries by domain, such as ``ops-math``."""
    return sorted(path.stem for path in (cache_root() / _LIBRARIES).glob("*.json"))


def read_index(suite: str = IMPORTED_SUITE) -> ImportIndex:
    """Return the index of a checkout in the cache root; an empty one when nothing was imported.

    Raises:
        MisuseError: the file is damaged.
    """
    path = _index_path(suite)
    try:
        return ImportIndex.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return ImportIndex()
    except ValidationError as error:
        raise MisuseError(f"{path}: {reason_of(error)}; import the checkout again") from error


def register(checkout: Path, needs: Mapping[str, str]) -> ImportIndex:
    """Add operators of a checkout to the index, and return it; another checkout replaces the present one.

    Args:
        checkout: its root.
        needs: for each operator what it still needs, empty when it is ready.

    Raises:
        MisuseError: an operator is not one of the checkout.
    """
    root = checkout.resolve()
    folders = select_operators(root, needs)
    present = read_index()
    kept = present.operators if present.root == str(root) else {}
    added = {
        name: ImportedOperator(folder=folders[name].relative_to(root).as_posix(), needs=reason)
        for name, reason in needs.items()
    }
    index = ImportIndex(root=str(root), operators={**kept, **added})
    write_whole(_index_path(IMPORTED_SUITE), index.model_dump_json(indent=1).encode())
    return index


def library_key(folder: Path) -> str:
    """Return what decides how an operator of a library is imported: its files, and the packages at hand."""
    at_hand = [name for name in _PACKAGES if importlib.util.find_spec(name) is not None]
    return digest_of(
        "library operator",
        _LIBRARY_VERSION,
        at_hand,
        folder.parts[-2:],
        digest_of_tree(folder, _LIBRARY_READ),
    )


def import_library(
    checkout: Path, names: Iterable[str], told: Callable[[str, str], None], processes: int
) -> tuple[str, ImportIndex]:
    """Import operators of a library by domain; return the name of its suite and its index.

    Args:
        checkout: its root.
        names: operators; all of them when none is named.
        told: called with each operator and why it cannot be imported, empty when it is ready.
        processes: how many operators to import at a time.

    Raises:
        MisuseError: it is no such checkout, or has no such operator.
    """
    root = checkout.resolve()
    folders = library_folders(root)
    unknown = [name for name in names if name not in folders]
    if unknown:
        raise MisuseError(f"{checkout}: no operators {unknown} among its {len(folders)}")
    chosen = list(dict.fromkeys(names)) or list(folders)
    suite = re.sub(r"[^a-z0-9-]+", "-", root.name.lower()).strip("-")
    present = read_index(suite)
    known = present.operators if present.root == str(root) else {}

    def imported(name: str) -> ImportedOperator:
        folder = folders[name]
        place = folder.relative_to(root).as_posix()
        try:
            key = library_key(folder)
            before = known.get(name)
            if (
                before is not None
                and before.key == key
                and (before.needs or (imported_place(folder) / MANIFEST_NAME).is_file())
            ):
                return before
            read_library_operator(folder, root)
            imported_example(folder)
            return ImportedOperator(folder=place, key=key)
        except (OperatorFormatError, InfrastructureError) as error:
            said = " ".join(str(error).removeprefix(f"{folder}: ").replace(f"{folder}/", "").split())
            return ImportedOperator(
                folder=place, needs=said, key=key if isinstance(error, OperatorFormatError) else ""
            )

    added = {}
    with ThreadPoolExecutor(processes) as pool:
        for name, operator in zip(chosen, pool.map(imported, chosen), strict=True):
            added[name] = operator
            told(name, operator.needs)
    index = ImportIndex(root=str(root), operators={**known, **added})
    path = _index_path(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, index.model_dump_json(indent=1).encode())
    return suite, index


def has_example(folder: Path) -> bool:
    """Say whether a folder has the two files that an operator without ``op.toml`` is imported from."""
    return all((folder / EXAMPLE_FOLDER / name).is_file() for name in ("gen_data.py", "main.cpp"))


def imported_place(folder: Path) -> Path:
    """Return where manifest and data of an example lie once it is imported."""
    if library_root(folder) is not None:
        return cache_root() / _FOLDER / f"{folder.name}-{library_key(folder)[:16]}"
    key = digest_of("imported example", _VERSION, folder.parts[-2:], digest_of_tree(folder, _READ))
    return cache_root() / _FOLDER / f"{folder.name}-{key[:16]}"


def imported_example(folder: Path) -> Path:
    """Return the folder with manifest and data of an example, which is imported if it was not before.

    Raises:
        OperatorFormatError: the example says something in a way that is not understood, or its programs fail.
        InfrastructureError: the importer cannot run.
    """
    place = imported_place(folder)
    if not (place / MANIFEST_NAME).is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        _import(folder, place)
    return place


def _import(folder: Path, place: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent))
    try:
        done = subprocess.run(
            [*own_python_command(_IMPORTER), str(folder), str(scratch)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == EXIT_FORMAT:
            raise OperatorFormatError(f"{folder}: {done.stdout.strip()}")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise InfrastructureError(f"{folder}: cannot be imported: {last}")
        try:
            scratch.rename(place)
        except OSError:
            if not (place / MANIFEST_NAME).is_file():  # otherwise another process was faster, with equal data
                raise
    finally:
        remove_tree(scratch)

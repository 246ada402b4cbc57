"""Finds operators by name or folder and reads them into ``OpSpec`` records."""

from __future__ import annotations

import difflib
import importlib.util
import logging
from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import MisuseError, OperatorFormatError, OperatorNotFoundError
from ascend_gym.core.records import OpSpec
from ascend_gym.suite.cann_cases import REFERENCE_NAME, own_case_folder, read_checkout_spec
from ascend_gym.suite.cann_sources import digest_of_sources_elsewhere, read_sources
from ascend_gym.suite.domain_library import library_root, read_library_candidate, read_library_operator
from ascend_gym.suite.imported import (
    IMPORTED_SUITE,
    PAPER_SUITE,
    TODAY_SUITE,
    ImportIndex,
    imported_place,
    library_suites,
    paper_levels,
    read_index,
    today_index,
    today_operators,
)
from ascend_gym.suite.manifest import MANIFEST_NAME, read_manifest
from ascend_gym.suite.specification import has_no_sources, read_specification

LOCAL_SUITE = "local"

ENTRY_POINTS = "ascend_gym.suites"
"""Group of entry points by which packages bring suites: ``NAME = "package.of.operator.folders"``."""

_OWN_SUITES = {
    "core": Path(__file__).parent / "ops",
    "generate": Path(__file__).parent / "generate",
}

_PAPER_CASES = Path(__file__).with_name("cann_ops_101")
_IMPORTED = (IMPORTED_SUITE, PAPER_SUITE)
_OUR_NAMES = frozenset({*_OWN_SUITES, *_IMPORTED, TODAY_SUITE, LOCAL_SUITE})

_LOG = logging.getLogger("ascend_gym")

_DIGESTED = (
    MANIFEST_NAME,
    REFERENCE_NAME,
    "CMakeLists.txt",
    "op_host/**/*",
    "op_kernel/**/*",
    "examples/AclNNInvocationNaive/*",
    "data/**/*",
)

SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": (
        *("broadcast", "comparison", "construction", "conversion", "elementwise", "foreach", "indexing"),
        *("matmul", "optimizer", "pooling", "reduction"),
    ),
    "validation": ("loss", "quantization", "resize", "scan"),
    "test": ("activation", "attention", "fused", "normalization", "sorting"),
}
"""Categories of the ``core`` suite that agents learn on, choose on, and are tested on; docs/benchmark.md.

Split by whole categories, so that no operator of the test part has a near relative in the others.
"""


def split_of(category: str) -> str | None:
    """Return the part that a category belongs to; ``None`` for one of no split."""
    return next((name for name, categories in SPLITS.items() if category in categories), None)


def load_operator(name: str, *, op_dir: Path | None = None) -> OpSpec:
    """Load one operator.

    Args:
        name: ``gelu``, ``core/gelu`` or, after an import, ``cann-ops/gelu``; with ``op_dir`` the operator's
            own name, bare or as ``local/name``.
        op_dir: folder of an operator outside the installed suites: either one with our ``op.toml`` and
            ``reference.py``, with its sources or for those of an imported checkout, or a cann-ops folder with
            an aclnn example.

    Raises:
        OperatorNotFoundError: no such operator or folder; the message lists near matches.
        OperatorFormatError: the folder cannot be understood; the message names the file and the reason.
        MisuseError: an installed suite was named together with ``op_dir``.
    """
    suite, _, bare_name = name.rpartition("/")
    if op_dir is not None:
        if suite not in ("", LOCAL_SUITE):
            raise MisuseError(
                f"{name!r} names an installed suite; with op_dir say '{LOCAL_SUITE}/{bare_name}'"
            )
        return _load_folder(Path(op_dir), LOCAL_SUITE, bare_name)
    if suite == LOCAL_SUITE:
        raise MisuseError(f"{name!r} is outside the installed suites: pass its folder as op_dir")
    for candidate_suite in [suite] if suite else [*_installed_suites(), IMPORTED_SUITE]:
        folder = _folders(candidate_suite).get(bare_name)
        if folder is not None:
            return _load_folder(folder, candidate_suite, bare_name)
    raise OperatorNotFoundError(_not_found_message(name, bare_name))


def list_operators(
    suite: str = "core", *, levels: Collection[int] = (), categories: Collection[str] = ()
) -> list[OpSpec]:
    """Return every operator of an installed suite, and every ready one of an imported suite, by name.

    Args:
        suite: its name.
        levels: only operators of these levels; empty for all.
        categories: only operators of these categories; empty for all.

    Raises:
        OperatorNotFoundError: there is no suite of that name, or no operator of such a level or category.
    """
    folders = _folders(suite)
    specs = [_load_folder(folders[name], suite, name) for name in ready_names(suite)]
    chosen = [
        spec
        for spec in specs
        if (not levels or spec.level in levels) and (not categories or spec.category in categories)
    ]
    if specs and not chosen:
        known = sorted({f"{spec.level} {spec.category}" for spec in specs})
        raise OperatorNotFoundError(
            f"suite {suite!r} has no operator of level {sorted(levels) or 'any'} and category "
            f"{sorted(categories) or 'any'}; it has {', '.join(known)}"
        )
    return chosen


def ready_names(suite: str) -> list[str]:
    """Return the names of the operators that ``list_operators`` loads, without loading them.

    Raises:
        OperatorNotFoundError: there is no suite of that name.
    """
    folders = _folders(suite)
    ready = set(_index_of(suite).ready()) if is_imported(suite) else set(folders)
    ours = {name for name, folder in folders.items() if folder.is_relative_to(_PAPER_CASES)}
    return sorted((ready | ours) & set(folders))


def left_out(suite: str) -> dict[str, str]:
    """Return the operators of an imported suite that ``list_operators`` leaves out, with the reason of each.

    Raises:
        OperatorNotFoundError: there is no suite of that name.
    """
    folders = _folders(suite)
    if not is_imported(suite):
        return {}
    index = _index_of(suite)
    ours = {name for name, folder in folders.items() if folder.is_relative_to(_PAPER_CASES)}
    missing = {name: f"needs {index.operators[name].needs}" for name in folders if name not in ours}
    reasons = {name: reason for name, reason in missing.items() if index.operators[name].needs}
    wanted = paper_levels() if suite == PAPER_SUITE else today_operators() if suite == TODAY_SUITE else {}
    reasons |= {name: "is not imported" for name in wanted if name not in folders}
    return dict(sorted(reasons.items()))


def is_suite(name: str) -> bool:
    """Say whether ``name`` is that of an installed or imported suite."""
    return name in _installed_suites() or is_imported(name)


def is_imported(name: str) -> bool:
    """Say whether ``name`` is that of a suite of operators of an imported checkout."""
    return name in _IMPORTED or name == TODAY_SUITE or name in library_suites()


def _index_of(suite: str) -> ImportIndex:
    if suite == TODAY_SUITE:
        return today_index()
    return read_index(IMPORTED_SUITE if suite == PAPER_SUITE else suite)


def suite_names() -> list[str]:
    """Return the names of the installed suites, and of the imported ones where there are any."""
    libraries = library_suites()
    today = [TODAY_SUITE] if libraries and today_index().operators else []
    return [*_installed_suites(), *(_IMPORTED if read_index().operators else []), *libraries, *today]


def operator_names() -> list[tuple[str, str]]:
    """Return suite and name of every operator without reading any; those not ready are among them."""
    return [(suite, name) for suite in suite_names() for name in sorted(_folders(suite))]


def missing_requirements(name: str, folder: Path) -> str:
    """Return in one line what keeps an operator folder from being loaded and checked, or nothing."""
    try:
        _load_folder(folder, IMPORTED_SUITE, name)
    except OperatorFormatError as error:
        said = str(error).removeprefix(f"{folder.resolve()}: ").replace(f"{folder.resolve()}/", "")
        return " ".join(said.split())
    return ""


def folder_digest(folder: Path) -> str:
    """Return the digest of everything of an operator folder that changes a verdict or a baseline."""
    own = digest_of_tree(folder, _DIGESTED)
    root = library_root(folder)
    if root is not None and not (folder / MANIFEST_NAME).is_file():
        sources = read_library_candidate(read_library_operator(folder, root))
        return digest_of("library operator", imported_place(folder).name, sources)
    elsewhere = digest_of_sources_elsewhere(folder)
    if elsewhere is not None:
        return digest_of("sources elsewhere", own, elsewhere)
    cases = own_case_folder(folder)
    if cases is None or cases == folder:
        return own
    return digest_of("own cases", own, digest_of_tree(cases, (MANIFEST_NAME, REFERENCE_NAME)))


def _installed_suites() -> list[str]:
    """Return the names of the installed suites: ours, then those that other packages bring."""
    return [*_OWN_SUITES, *_suites_of_packages()]


def _suites_of_packages() -> dict[str, str]:
    """Return which package holds the operator folders of each suite that other packages bring."""
    brought = list(entry_points(group=ENTRY_POINTS))
    for each in brought:
        if each.name in _OUR_NAMES:
            _warn(_clash(each))
    return {each.name: each.value for each in brought if each.name not in _OUR_NAMES}


def ignored_suites() -> list[str]:
    """Return what is wrong with each suite of another package that is ignored, and what to do."""
    return [_clash(each) for each in entry_points(group=ENTRY_POINTS) if each.name in _OUR_NAMES]


def _clash(brought: EntryPoint) -> str:
    package = brought.dist.name if brought.dist is not None else brought.value
    return (
        f"the suite {brought.name!r} of the installed package {package!r} is ignored, because one of ours "
        "has that name: rename it in that package, or uninstall the package"
    )


@lru_cache
def _warn(message: str) -> None:
    """Log a warning once per process."""
    _LOG.warning(message)


def _suite_folder(suite: str) -> Path:
    return _OWN_SUITES.get(suite) or _package_folder(suite, _suites_of_packages()[suite])


@lru_cache
def _package_folder(suite: str, package: str) -> Path:
    """Return the folder of a package, without importing it where its parent packages allow that."""
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise MisuseError(
            f"suite {suite!r}: an entry point of {ENTRY_POINTS} names the package {package!r}, and there is "
            "no such package: install the one that brings the suite again"
        )
    return Path(spec.submodule_search_locations[0])


def _folders(suite: str) -> dict[str, Path]:
    """Return the operator folders of a suite by name."""
    if is_imported(suite):
        index = _index_of(suite)
        if suite != PAPER_SUITE:
            return {name: index.folder(name) for name in index.operators}
        known = {name for name in index.operators if name in paper_levels()}
        return {name: _paper_folder(name) or index.folder(name) for name in known}
    if suite not in _installed_suites():
        suites = [*_installed_suites(), *_IMPORTED, *library_suites(), TODAY_SUITE]
        raise OperatorNotFoundError(f"no suite {suite!r}; installed suites: {suites}")
    return {path.parent.name: path.parent for path in _suite_folder(suite).glob(f"*/{MANIFEST_NAME}")}


def _paper_folder(name: str) -> Path | None:
    """Return our folder with larger cases for an operator of the paper's suite, if there is one."""
    folder = _PAPER_CASES / name
    return folder if (folder / MANIFEST_NAME).is_file() else None


def _not_found_message(name: str, bare_name: str) -> str:
    installed = sorted(_folders("core"))
    known = list(dict.fromkeys([*installed, *_folders("generate"), *_folders(IMPORTED_SUITE)]))
    near = difflib.get_close_matches(bare_name, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known operators: {', '.join(installed)}"
    return f"no operator {name!r}; {hint} (--op-dir, or op_dir, names a folder of your own)"


def _load_folder(folder: Path, suite: str, name: str) -> OpSpec:
    spec = _read_folder(folder, suite, name)
    if suite == TODAY_SUITE:
        chosen = today_operators()[name]
        if not spec.baseline.digest.startswith(chosen.digest):
            raise OperatorFormatError(
                f"{folder}: its sources have the digest {spec.baseline.digest[:16]}, {TODAY_SUITE} was drawn "
                f"with {chosen.digest}: check out commit {chosen.commit} of {chosen.library}"
            )
        return spec.model_copy(update={"level": chosen.level})
    level = paper_levels().get(name) if suite in _IMPORTED else None  # libraries have no levels
    return spec if level is None else spec.model_copy(update={"level": level})


def _read_folder(folder: Path, suite: str, name: str) -> OpSpec:
    folder = folder.resolve()
    if not folder.is_dir():
        raise OperatorNotFoundError(f"no operator folder {folder}")
    op_id = f"{suite}/{name}"
    if (folder / MANIFEST_NAME).is_file():
        return _load_manifest_folder(folder, op_id, name)
    return read_checkout_spec(folder, op_id, folder_digest(folder))


def _load_manifest_folder(folder: Path, op_id: str, name: str) -> OpSpec:
    specified = has_no_sources(folder / MANIFEST_NAME)
    manifest = None if specified else read_manifest(folder / MANIFEST_NAME)
    complete = manifest is not None and (manifest.has_all_outputs or manifest.operator.reference is not None)
    if not (folder / REFERENCE_NAME).is_file() and not complete:
        raise OperatorFormatError(
            f"{folder}: reference.py is missing (it defines reference(inputs, attributes)), and not every "
            f"output has a data file"
        )
    if manifest is None:
        return read_specification(folder, op_id, name, folder_digest(folder))
    operator = manifest.operator
    baseline, auto_sync = read_sources(folder, name, operator)
    return OpSpec(
        op_id=op_id,
        op_type=operator.type,
        folder=str(folder),
        level=operator.level,
        category=operator.category,
        description=operator.description,
        auto_sync=auto_sync,
        reads_all_inputs=operator.reads_all_inputs,
        latency_depends_on_values=operator.latency_depends_on_values,
        shared_inputs=operator.shared_inputs,
        cases=manifest.cases(),
        baseline=baseline,
        reference=operator.reference,
        folder_digest=folder_digest(folder),
        domain=manifest.domain,
    )

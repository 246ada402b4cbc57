"""Finds operators by name or folder and reads them into ``OpSpec`` records."""

from __future__ import annotations

import difflib
from pathlib import Path

from ascend_gym.core.digest import digest_of_tree
from ascend_gym.core.errors import MisuseError, OperatorFormatError, OperatorNotFoundError
from ascend_gym.core.records import OpSpec
from ascend_gym.suite.cann_examples import has_example, read_example_spec
from ascend_gym.suite.manifest import MANIFEST_NAME, read_manifest
from ascend_gym.suite.sources import read_candidate

LOCAL_SUITE = "local"

_SUITE_FOLDERS = {"core": Path(__file__).parent / "ops"}

_DIGESTED = (
    MANIFEST_NAME,
    "reference.py",
    "CMakeLists.txt",
    "op_host/**/*",
    "op_kernel/**/*",
    "examples/AclNNInvocationNaive/*",
)


def load_operator(name: str, *, op_dir: Path | None = None) -> OpSpec:
    """Load one operator.

    Args:
        name: ``gelu`` or ``core/gelu``; with ``op_dir`` the operator's own name, bare or as ``local/name``.
        op_dir: folder of an operator outside the installed suites: either one with our ``op.toml`` and
            ``reference.py``, or a cann-ops folder with an aclnn example.

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
    for candidate_suite in [suite] if suite else list(_SUITE_FOLDERS):
        if bare_name in _names(candidate_suite):
            return _load_folder(_SUITE_FOLDERS[candidate_suite] / bare_name, candidate_suite, bare_name)
    raise OperatorNotFoundError(_not_found_message(name, bare_name))


def list_operators(suite: str = "core") -> list[OpSpec]:
    """Return every operator of an installed suite, by name.

    Raises:
        OperatorNotFoundError: there is no suite of that name.
    """
    return [_load_folder(_SUITE_FOLDERS[suite] / name, suite, name) for name in _names(suite)]


def folder_digest(folder: Path) -> str:
    """Return the digest of everything in an operator folder that changes a verdict or a baseline."""
    return digest_of_tree(folder, _DIGESTED)


def _names(suite: str) -> list[str]:
    if suite not in _SUITE_FOLDERS:
        raise OperatorNotFoundError(f"no suite {suite!r}; installed suites: {sorted(_SUITE_FOLDERS)}")
    return sorted(path.parent.name for path in _SUITE_FOLDERS[suite].glob(f"*/{MANIFEST_NAME}"))


def _not_found_message(name: str, bare_name: str) -> str:
    known = [operator for suite in _SUITE_FOLDERS for operator in _names(suite)]
    near = difflib.get_close_matches(bare_name, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known operators: {', '.join(known)}"
    return f"no operator {name!r}; {hint} (pass op_dir for a folder of your own)"


def _load_folder(folder: Path, suite: str, name: str) -> OpSpec:
    folder = folder.resolve()
    if not folder.is_dir():
        raise OperatorNotFoundError(f"no operator folder {folder}")
    op_id = f"{suite}/{name}"
    if (folder / MANIFEST_NAME).is_file():
        return _load_manifest_folder(folder, op_id, name)
    if has_example(folder):
        return read_example_spec(folder, op_id, folder_digest(folder))
    raise OperatorFormatError(
        f"{folder}: needs {MANIFEST_NAME} and reference.py, or examples/AclNNInvocationNaive with "
        f"gen_data.py and main.cpp"
    )


def _load_manifest_folder(folder: Path, op_id: str, name: str) -> OpSpec:
    manifest = read_manifest(folder / MANIFEST_NAME)
    if not (folder / "reference.py").is_file():
        raise OperatorFormatError(
            f"{folder}: reference.py is missing (it defines reference(inputs, attributes))"
        )
    operator = manifest.operator
    return OpSpec(
        op_id=op_id,
        op_type=operator.type,
        folder=str(folder),
        level=operator.level,
        category=operator.category,
        description=operator.description,
        auto_sync=operator.auto_sync,
        reads_all_inputs=operator.reads_all_inputs,
        cases=manifest.cases(),
        baseline=read_candidate(folder, name, tiling=operator.tiling, kernel=operator.kernel),
        folder_digest=folder_digest(folder),
    )

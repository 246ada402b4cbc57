"""Where the sources of an operator lie: beside its manifest, or in the user's checkout of cann-ops.

``sources = "cann-ops:activation/swi_glu"`` names ``src/activation/swi_glu`` of the imported checkout.
What its CMakeLists.txt builds and what these files include are taken, as for any operator of a checkout.
"""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.digest import digest_of_tree
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Candidate
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.cann_sources import checkout_root, read_build_file, read_cann_candidate
from ascend_gym.suite.imported import read_index
from ascend_gym.suite.manifest import MANIFEST_NAME, OperatorSection
from ascend_gym.suite.sources import read_candidate

_SCHEME = "cann-ops:"
_SOURCE_FILES = ("CMakeLists.txt", "op_host/**/*", "op_kernel/**/*")


def read_sources(folder: Path, name: str, operator: OperatorSection) -> tuple[Candidate, bool]:
    """Return the sources that a manifest asks for, and whether the compiler synchronises by itself.

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
    if checkout_root(place) is None or operator.tiling or operator.kernel:
        candidate = read_candidate(place, name, tiling=operator.tiling, kernel=operator.kernel)
    else:
        build = read_build_file(place)
        candidate = read_cann_candidate(place, build)
        auto_sync = auto_sync if "auto_sync" in operator.model_fields_set else build.auto_sync
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
    root = read_index().root
    if not root:
        raise OperatorFormatError(
            f"{manifest}: operator.sources is {sources!r}, and no checkout of cann-ops is known: "
            "ascend-gym suite import --cann-ops DIR"
        )
    place = Path(root) / "src" / sources.removeprefix(_SCHEME)
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
    return digest_of_tree(source_folder(folder, sources), _SOURCE_FILES)

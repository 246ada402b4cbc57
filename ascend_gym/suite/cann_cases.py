"""Cases of our own for operators of cann-ops whose examples are missing or cannot be used.

``cann_ops/<operator>`` holds an ``op.toml`` and a ``reference.py`` for each of them, as the folder of an
operator of ours does; the sources stay in the checkout. The description in the ``op.toml`` says why the
example of the checkout does not serve.
"""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.records import OpSpec
from ascend_gym.suite.cann_sources import checkout_root, read_build_file, read_cann_candidate
from ascend_gym.suite.manifest import MANIFEST_NAME, read_manifest

REFERENCE_NAME = "reference.py"

_OWN = Path(__file__).with_name("cann_ops")


def case_folder(folder: Path) -> Path | None:
    """Return where the ``op.toml`` of an operator folder lies: in it, or with us for one of a checkout."""
    if (folder / MANIFEST_NAME).is_file():
        return folder
    own = _OWN / folder.name
    return own if (own / MANIFEST_NAME).is_file() and checkout_root(folder) is not None else None


def read_own_case_spec(folder: Path, op_id: str, folder_digest: str) -> OpSpec:
    """Load a folder of a checkout with the cases that we have for it.

    Raises:
        OperatorFormatError: its sources say something in a way that is not understood.
    """
    manifest = read_manifest(_OWN / folder.name / MANIFEST_NAME)
    build = read_build_file(folder)
    return OpSpec(
        op_id=op_id,
        op_type=manifest.operator.type,
        folder=str(folder),
        level=manifest.operator.level,
        category=manifest.operator.category,
        description=manifest.operator.description,
        auto_sync=build.auto_sync,
        reads_all_inputs=manifest.operator.reads_all_inputs,
        cases=manifest.cases(),
        baseline=read_cann_candidate(folder, build),
        folder_digest=folder_digest,
    )

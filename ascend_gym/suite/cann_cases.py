"""Where the manifest of an operator folder lies: in it, with us, or where its example was imported to.

``cann_ops/<operator>`` holds an ``op.toml`` and a ``reference.py`` of ours for operators of cann-ops whose
examples are missing or cannot be used. The description in the ``op.toml`` says why the example of the
checkout does not serve. All others are imported (``imported_example``). The sources stay in the checkout.
"""

from __future__ import annotations

from pathlib import Path

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import OpSpec
from ascend_gym.suite.cann_sources import checkout_root, read_checkout_sources
from ascend_gym.suite.domain_library import library_root
from ascend_gym.suite.imported import has_example, imported_example
from ascend_gym.suite.manifest import MANIFEST_NAME, read_manifest

REFERENCE_NAME = "reference.py"

_OWN = Path(__file__).with_name("cann_ops")


def own_case_folder(folder: Path) -> Path | None:
    """Return where the ``op.toml`` of an operator folder lies: in it, or with us for one of a checkout."""
    if (folder / MANIFEST_NAME).is_file():
        return folder
    own = _OWN / folder.name
    return own if (own / MANIFEST_NAME).is_file() and checkout_root(folder) is not None else None


def case_folder(folder: Path) -> Path:
    """Return where the ``op.toml`` of an operator folder lies, after importing its example if need be.

    Raises:
        OperatorFormatError: there is none, and no example that can be imported.
        InfrastructureError: the importer cannot run.
    """
    own = own_case_folder(folder)
    if own is None and library_root(folder) is None and not has_example(folder):
        raise OperatorFormatError(
            f"{folder}: needs {MANIFEST_NAME} and reference.py, or examples/AclNNInvocationNaive with "
            f"gen_data.py and main.cpp"
        )
    return own or imported_example(folder)


def read_checkout_spec(folder: Path, op_id: str, folder_digest: str) -> OpSpec:
    """Load a folder of a checkout with the cases that we have for it, or with those of its example.

    Raises:
        OperatorFormatError: its sources or its example say something in a way that is not understood.
        InfrastructureError: the importer cannot run.
    """
    return spec_with_cases(folder, case_folder(folder), op_id, folder_digest)


def spec_with_cases(folder: Path, cases: Path, op_id: str, folder_digest: str) -> OpSpec:
    """Return the operator of a folder of a checkout with the cases of the ``op.toml`` in another.

    Args:
        folder: folder of the operator in the checkout.
        cases: folder of the ``op.toml``.
        op_id: id of the operator.
        folder_digest: digest of what the operator is made of.

    Raises:
        OperatorFormatError: its sources say something in a way that is not understood.
    """
    manifest = read_manifest(cases / MANIFEST_NAME)
    candidate, auto_sync = read_checkout_sources(folder)
    return OpSpec(
        op_id=op_id,
        op_type=manifest.operator.type,
        folder=str(folder),
        level=manifest.operator.level,
        category=manifest.operator.category,
        description=manifest.operator.description,
        auto_sync=auto_sync,
        reads_all_inputs=manifest.operator.reads_all_inputs,
        latency_depends_on_values=manifest.operator.latency_depends_on_values,
        shared_inputs=manifest.operator.shared_inputs,
        cases=manifest.cases(),
        reference=manifest.operator.reference,
        baseline=candidate,
        folder_digest=folder_digest,
    )

"""Manifests of operators of cann-ops that have an aclnn example instead of an ``op.toml``.

The importer (``npu_daemon.importer``) reads an example once, in a process of its own and confined, and writes
what it says as an ``op.toml`` with data files into the cache root. Everything else knows these files alone.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of, digest_of_tree
from ascend_gym.core.errors import InfrastructureError, OperatorFormatError
from ascend_gym.core.own_python import own_python_command
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.manifest import MANIFEST_NAME

EXAMPLE_FOLDER = "examples/AclNNInvocationNaive"
EXIT_FORMAT = 4

_IMPORTER = "npu_daemon.importer.__main__"
_FOLDER = "imported"
_VERSION = 1  # of what the importer writes for the same example
_READ = ("CMakeLists.txt", "op_host/**/*", f"{EXAMPLE_FOLDER}/**/*")


def has_example(folder: Path) -> bool:
    """Say whether a folder has the two files that an operator without ``op.toml`` is imported from."""
    return all((folder / EXAMPLE_FOLDER / name).is_file() for name in ("gen_data.py", "main.cpp"))


def imported_place(folder: Path) -> Path:
    """Return where manifest and data of an example lie once it is imported."""
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
            raise OperatorFormatError(done.stdout.strip())
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

"""Child interpreters that import the same installation as this process, from any working directory."""

from __future__ import annotations

import sys
from pathlib import Path

from ascend_gym.core import shared_names

_PACKAGES_FOLDER = str(Path(__file__).resolve().parents[2])


def own_python_command(module: str) -> list[str]:
    """Return the command that calls ``main()`` of ``module`` in a new interpreter; append its arguments.

    The child imports from the same folders as this process. Unlike with ``python -m module``, the working
    directory is not among them, unless it was named in ``PYTHONPATH`` or contains the running script.
    """
    steps = (
        f"import sys; sys.path[:] = {_import_folders()!r}",
        f"from {shared_names.__name__} import find_in_own_folders; find_in_own_folders()",
        f"from {module} import main; main()",
    )
    return [sys.executable, "-c", "; ".join(steps)]


def _import_folders() -> list[str]:
    """Return the import path with our packages and without ``""``, the working directory."""
    folders = [folder for folder in sys.path if isinstance(folder, str) and folder]
    known = any(Path(folder).resolve() == Path(_PACKAGES_FOLDER) for folder in folders)
    return folders if known else [_PACKAGES_FOLDER, *folders]

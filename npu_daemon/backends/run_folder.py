"""The folder of a run: kept for the files of what succeeded, removed after everything else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ascend_gym.core.protocols import Failure, RunOutput
from ascend_gym.core.remove_tree import remove_tree


def run_in_folder(prefix: str, run: Callable[[Path], RunOutput | Failure]) -> RunOutput | Failure:
    """Return what ``run`` makes of a new folder, which is kept for a ``RunOutput`` until ``cleanup``.

    Args:
        prefix: prefix of the folder's name.
        run: called once with the folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    outcome = None
    try:
        outcome = run(folder)
    finally:
        if not isinstance(outcome, RunOutput):
            remove_tree(folder)
    return outcome

"""Identity of the code that generates inputs, judges outputs and scores, whatever the backend."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np

from ascend_gym import core, suite
from ascend_gym.core.digest import digest_of

HARNESS_VERSION = 2
"""Raise it whenever inputs, verdicts, floors or scores can change.

Stored results of other versions are not used. A change that can change none of them leaves it alone.
``tests/unit/test_harness.py`` fails until one of the two is said of each change to ``harness_sources``.
"""

_HARNESS_FILES = (
    "case_data.py",
    "case_runner.py",
    "floor.py",
    "own_values.py",
    "pipeline.py",
    "second_look.py",
)


def harness_sources() -> list[Path]:
    """Return the sources that inputs, verdicts, floors and scores depend on."""
    shared = [path for package in (core, suite) for path in Path(package.__path__[0]).glob("*.py")]
    return sorted([*shared, *(Path(__file__).parent / name for name in _HARNESS_FILES)])


def harness_text() -> str:
    """Return what ``harness_identity`` is made of, for journals and their readers."""
    return f"{HARNESS_VERSION}, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"


@lru_cache(maxsize=1)
def harness_identity() -> str:
    """Return the digest of the harness version and of the packages that its arithmetic depends on."""
    return digest_of("harness", HARNESS_VERSION, np.__version__, ml_dtypes.__version__)

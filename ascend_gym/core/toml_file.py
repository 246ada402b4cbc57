"""Reading TOML on every supported Python."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

# tomllib came with Python 3.11; tomli is the same code for 3.10
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        ValueError: the file is not UTF-8 or not TOML; the message says where.
        OSError: the file cannot be read.
    """
    content: dict[str, Any] = _toml.loads(path.read_text(encoding="utf-8"))
    return content

"""Reading TOML on every supported Python, and what to say of keys that are not known."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from ascend_gym.core.text import nearest

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


def unknown_key(model: type[BaseModel], where: Sequence[str | int]) -> str:
    """Return what to say of a key that its table does not have: the nearest one that it has, and all.

    Args:
        model: what the whole file is read as.
        where: the key with what leads to it, as pydantic's errors tell it.
    """
    table = model
    for part in where[:-1]:
        field = table.model_fields.get(str(part))
        table = (_table_in(field.annotation) if field is not None else None) or table
    known = list(table.model_fields)
    return f"unknown key{nearest(str(where[-1]), known)}; known are {', '.join(known)}"


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation is about, such as ``tuple[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_table_in(argument) for argument in get_args(annotation))
    return next((found for found in inner if found is not None), None)

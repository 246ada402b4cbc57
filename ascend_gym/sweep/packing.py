"""Compression of JSON values, for columns that are only read row by row."""

from __future__ import annotations

import zlib
from typing import Any

from pydantic_core import from_json, to_json

_FASTEST = 1


def packed(value: dict[str, Any]) -> bytes:
    """Return ``value`` as compressed JSON."""
    return zlib.compress(to_json(value), _FASTEST)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return the value that was given to ``packed``."""
    value: dict[str, Any] = from_json(zlib.decompress(data))
    return value

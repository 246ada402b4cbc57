"""JSON values as compressed bytes, for the columns that are read one at a time."""

from __future__ import annotations

import json
import zlib
from typing import Any

from ascend_gym.core.append_log import canonical_json

_FASTEST = 1


def packed(value: dict[str, Any]) -> bytes:
    """Return ``value`` as compressed JSON; equal values give equal bytes."""
    return zlib.compress(canonical_json(value).encode(), _FASTEST)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return the value that ``packed`` was given."""
    value: dict[str, Any] = json.loads(zlib.decompress(data))
    return value

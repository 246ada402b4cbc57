"""The one digest function of the project.

Every part is written with its type and length before its bytes, so that ``("ab", "c")`` and
``("a", "bc")`` cannot collide and a field that moves changes the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Any

from pydantic import BaseModel

_HEADER = Struct(">cQ").pack  # a tag and the length of what follows


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 hex digest of ``parts``.

    Args:
        parts: ``None``, bool, int, float, str, bytes, pydantic models, and sequences or mappings of
            these. Mappings are taken in key order.

    Raises:
        TypeError: a part is of any other type.
    """
    return hashlib.sha256(_encode_sequence(parts)).hexdigest()


@dataclass(frozen=True)
class Encoded:
    """The encoding of a value, kept to be a part of several digests: it counts as the value does."""

    data: bytes


def encoded(value: Any) -> Encoded:
    """Return what stands for a value in ``digest_of``.

    Raises:
        TypeError: see there.
    """
    return Encoded(_encode(value))


def digest_of_tree(root: Path, patterns: Iterable[str]) -> str:
    """Return the digest of the files below ``root`` that match any of the glob ``patterns``."""
    files = sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})
    return digest_of([(path.relative_to(root).as_posix(), path.read_bytes()) for path in files])


def _frame(tag: bytes, payload: bytes) -> bytes:
    return _HEADER(tag, len(payload)) + payload


def _encode(value: Any) -> bytes:
    return (_ENCODERS.get(type(value)) or _encode_other)(value)


def _encode_sequence(items: Iterable[Any]) -> bytes:
    return _frame(b"L", b"".join([(_ENCODERS.get(type(item)) or _encode_other)(item) for item in items]))


def _encode_mapping(value: Mapping[Any, Any]) -> bytes:
    chunks = []
    for key in sorted(value):
        chunks.append(_encode_field_name(key) if type(key) is str else _encode(key))
        chunks.append(_encode(value[key]))
    return _frame(b"M", b"".join(chunks))


def _encode_text(value: str) -> bytes:
    return _frame(b"S", value.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1024)
def _encode_field_name(name: str) -> bytes:
    """Encode a key of a mapping; cached, because few different field names occur."""
    return _encode_text(name)


def _encode_other(value: Any) -> bytes:
    """Encode values of other types: models, enumeration members, further mappings and sequences."""
    if isinstance(value, BaseModel):
        return _frame(b"R", _encode_sequence([type(value).__name__, value.model_dump(mode="json")]))
    for plain in (bytes, bool, int, float, str):
        if isinstance(value, plain):
            return _ENCODERS[plain](value)
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    if isinstance(value, Iterable):
        return _encode_sequence(value)
    raise TypeError(f"cannot digest a {type(value).__name__}: use plain values or pydantic models")


_ENCODERS: Mapping[type, Callable[[Any], bytes]] = {
    type(None): lambda value: _frame(b"N", b""),
    bytes: lambda value: _frame(b"B", value),
    bool: lambda value: _frame(b"T", b"1" if value else b"0"),
    int: lambda value: _frame(b"I", b"%d" % value),
    float: lambda value: _frame(b"F", value.hex().encode()),
    str: _encode_text,
    dict: _encode_mapping,
    list: _encode_sequence,
    tuple: _encode_sequence,
    Encoded: lambda value: value.data,
}
"""How a value of exactly this type is encoded; a table, because every request is digested."""

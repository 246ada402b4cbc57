"""The one digest function of the project.

Every part is written with its type and length before its bytes, so that ``("ab", "c")`` and
``("a", "bc")`` cannot collide and a field that moves changes the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 hex digest of ``parts``.

    Args:
        parts: ``None``, bool, int, float, str, bytes, pydantic models, and sequences or mappings of
            these. Mappings are taken in key order.

    Raises:
        TypeError: a part is of any other type.
    """
    hasher = hashlib.sha256()
    for chunk in _encode_sequence(parts):
        hasher.update(chunk)
    return hasher.hexdigest()


def digest_of_tree(root: Path, patterns: Iterable[str]) -> str:
    """Return the digest of the files below ``root`` that match any of the glob ``patterns``."""
    files = sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})
    return digest_of([(path.relative_to(root).as_posix(), path.read_bytes()) for path in files])


def _frame(tag: bytes, payload: bytes) -> bytes:
    return tag + len(payload).to_bytes(8, "big") + payload


def _encode_sequence(items: Iterable[Any]) -> Iterable[bytes]:
    chunks = [_encode(item) for item in items]
    yield _frame(b"L", b"".join(chunks))


def _encode(value: Any) -> bytes:
    encoder = _ENCODERS.get(type(value))
    return encoder(value) if encoder is not None else _encode_other(value)


def _encode_other(value: Any) -> bytes:
    """Encode what is of no plain type itself: a model, an enumeration member, another mapping or sequence."""
    if isinstance(value, BaseModel):
        return _frame(b"R", _encode([type(value).__name__, value.model_dump(mode="json")]))
    for plain in (bytes, bool, int, float, str):
        if isinstance(value, plain):
            return _ENCODERS[plain](value)
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    if isinstance(value, Iterable):
        return b"".join(_encode_sequence(value))
    raise TypeError(f"cannot digest a {type(value).__name__}: use plain values or pydantic models")


def _encode_mapping(value: Mapping[Any, Any]) -> bytes:
    return _frame(b"M", b"".join(_encode(key) + _encode(item) for key, item in sorted(value.items())))


_ENCODERS: Mapping[type, Callable[[Any], bytes]] = {
    type(None): lambda value: _frame(b"N", b""),
    bytes: lambda value: _frame(b"B", value),
    bool: lambda value: _frame(b"T", b"1" if value else b"0"),
    int: lambda value: _frame(b"I", str(int(value)).encode()),
    float: lambda value: _frame(b"F", value.hex().encode()),
    str: lambda value: _frame(b"S", value.encode("utf-8", "surrogatepass")),
    dict: _encode_mapping,
    list: lambda value: b"".join(_encode_sequence(value)),
    tuple: lambda value: b"".join(_encode_sequence(value)),
}
"""How a value of exactly this type is encoded; a table, because every request is digested."""

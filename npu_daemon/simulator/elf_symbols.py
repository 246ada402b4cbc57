"""The names that a shared library or program offers and asks for when it is loaded."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
_UNDEFINED = 0  # SHN_UNDEF


@dataclass(frozen=True)
class DynamicSymbols:
    """Symbols of a file that the loader sees."""

    defined: frozenset[str]
    undefined: frozenset[str]


def dynamic_symbols(path: Path) -> DynamicSymbols:
    """Return the dynamic symbols of a file that our own linker made.

    Raises:
        ValueError: it is no such file.
    """
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise ValueError(f"expected a 64-bit ELF file, got {path}")
    header = _HEADER.unpack_from(data)
    offset, size, count = header[5], header[10], header[11]
    sections = [_SECTION.unpack_from(data, offset + index * size) for index in range(count)]
    table = next((each for each in sections if each[1] == _DYNAMIC_SYMBOLS), None)
    if table is None:
        return DynamicSymbols(frozenset(), frozenset())
    names = sections[table[6]]
    texts = data[names[4] : names[4] + names[5]]
    defined: set[str] = set()
    undefined: set[str] = set()
    for name, _, _, section, _, _ in _SYMBOL.iter_unpack(data[table[4] : table[4] + table[5]]):
        text = texts[name : texts.index(b"\0", name)].decode()
        (undefined if section == _UNDEFINED else defined).add(text)
    return DynamicSymbols(frozenset(defined - {""}), frozenset(undefined - {""}))

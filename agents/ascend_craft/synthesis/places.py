"""Where values are: in buffers, as expressions, as bits; and the buffers of a program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

LANES = {"f32": 8, "i32": 8, "f16": 16, "u8": 32}
"""Elements of a block of 32 bytes, at which rows of a copy begin."""


@dataclass(frozen=True)
class Vector:
    """A value with the vector axis: the buffer that has it."""

    buffer: str


@dataclass(frozen=True)
class ScalarPlace:
    """A value without it: the expression that gives it."""

    text: str


@dataclass(frozen=True)
class Mask:
    """The outcome of a comparison of vectors."""

    buffer: str


Place = Vector | ScalarPlace | Mask


@dataclass
class Buffers:
    """Buffers of a program: what is allocated, and what of that is free.

    Attributes:
        sizes: size and type of each buffer, by name.
        free: names of temporaries that nothing uses now, by kind (see ``take``).
    """

    sizes: dict[str, tuple[str, str]] = field(default_factory=dict)
    free: dict[str, list[str]] = field(default_factory=lambda: {"t": [], "m": [], "s": []})
    _count: Counter[str] = field(default_factory=Counter)

    def take(self, kind: str = "t") -> str:
        """Return a free buffer: ``t`` of a tile, ``m`` of its bits, ``s`` of eight elements."""
        if self.free[kind]:
            return self.free[kind].pop()
        name = f"{kind}{self._count[kind]}"
        self._count[kind] += 1
        self.declare(name, *{"t": ("tile", "f32"), "m": ("tile // 8", "u8"), "s": ("8", "f32")}[kind])
        return name

    def give(self, name: str) -> None:
        """Take a buffer back."""
        kind = name[0]
        if name[1:].isdigit() and name not in self.free[kind]:
            self.free[kind].append(name)
            self.free[kind].sort(reverse=True)

    def declare(self, name: str, size: str, dtype: str) -> str:
        """Note a buffer with a name of its own."""
        self.sizes.setdefault(name, (size, dtype))
        return name

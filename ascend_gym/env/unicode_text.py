"""A space of texts with any Unicode characters, cheap to copy and safe in shared memory."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

_FIRST_SURROGATE = 0xD800
_SURROGATE_COUNT = 0x800
_CHARACTER_COUNT = 0x110000 - _SURROGATE_COUNT


class UnicodeCharacters(Sequence[str]):
    """All 1,112,064 Unicode characters in code point order, computed instead of stored.

    Surrogates are excluded: they are no characters and cannot be encoded as UTF-8.
    """

    def __len__(self) -> int:
        return _CHARACTER_COUNT

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(_all_characters()[index])
        index = int(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"character number {index} of {len(self)}")
        index %= len(self)
        return chr(index if index < _FIRST_SURROGATE else index + _SURROGATE_COUNT)

    def __iter__(self) -> Iterator[str]:
        return iter(_all_characters())

    def __contains__(self, char: object) -> bool:
        return isinstance(char, str) and len(char) == 1 and is_unicode(char)

    def index(self, char: str, start: int = 0, stop: int | None = None) -> int:
        """Return the number of ``char``.

        Raises:
            ValueError: it is not a single character, is a surrogate, or is outside ``start:stop``.
        """
        if char not in self:
            raise ValueError(f"{char!r} is not one Unicode character")
        point = ord(char)
        number = point if point < _FIRST_SURROGATE else point - _SURROGATE_COUNT
        if number not in range(len(self))[start:stop]:
            raise ValueError(f"{char!r} is not between {start} and {stop}")
        return number

    def count(self, value: object) -> int:
        """Return 1 for a character, else 0."""
        return int(value in self)


UNICODE = UnicodeCharacters()


def is_unicode(text: str) -> bool:
    """Whether ``text`` has no lone surrogates, so that it can be encoded as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _all_characters() -> str:
    return _text_of(np.arange(_CHARACTER_COUNT))


def _text_of(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> str:
    """Return the characters with these numbers as one string."""
    points = numbers + _SURROGATE_COUNT * (numbers >= _FIRST_SURROGATE)
    return points.astype("<u4").tobytes().decode("utf-32-le")


class UnicodeText(spaces.Text):
    """Strings of any Unicode characters.

    ``gymnasium.spaces.Text`` stores its characters in a list, which for all of Unicode would take
    hundreds of megabytes and slow down every copy of the space; here they are computed.

    Args:
        max_length: maximum number of characters.
        min_length: minimum number of characters.
        seed: seed of ``sample``.
    """

    def __init__(
        self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(max_length, min_length=min_length, charset="", seed=seed)

    @property
    def character_set(self) -> UnicodeCharacters:  # type: ignore[override]
        """All Unicode characters."""
        return UNICODE

    @property
    def character_list(self) -> UnicodeCharacters:  # type: ignore[override]
        """All Unicode characters by number."""
        return UNICODE

    @property
    def characters(self) -> str:
        """All Unicode characters as one string (1.1 million long)."""
        return _all_characters()

    def character_index(self, char: str) -> np.int32:
        """Return the number of a character in ``character_list``."""
        number: np.int32 = np.int32(UNICODE.index(char))
        return number

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of an allowed length without surrogates."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_unicode(x)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a length and then the characters, both uniformly.

        Raises:
            ValueError: a mask or probabilities are given, which this space does not support.
        """
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText draws without mask and probability, got one of them")
        length = int(self.np_random.integers(self.min_length, self.max_length + 1))
        return _text_of(self.np_random.integers(0, _CHARACTER_COUNT, size=length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and (self.min_length, self.max_length) == (
            other.min_length,
            other.max_length,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length}, min_length={self.min_length})"


class SharedTexts(Sequence[str]):
    """A live view of the texts of several processes; a deep copy is a plain tuple of strings.

    Args:
        rows: uint32 of shape ``(processes, 1 + max_length)``: the length, then the code points.
    """

    def __init__(self, rows: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        row = self._rows[index]
        return row[1 : 1 + int(row[0])].tobytes().decode("utf-32-le")

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def write(self, index: int, text: str) -> None:
        """Store the text of process ``index``."""
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        self._rows[index, 0] = len(points)
        self._rows[index, 1 : 1 + len(points)] = points


# gymnasium reads a Text out of shared memory once, when a vector environment is made, and never again:
# every observation of AsyncVectorEnv would show that first text.


@create_shared_memory.register(UnicodeText)
def _create_shared_texts(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.Array(ctypes.c_uint32, n * (1 + space.max_length))


@read_from_shared_memory.register(UnicodeText)
def _read_shared_texts(space: UnicodeText, shared_memory: Any, n: int = 1) -> SharedTexts:
    rows = np.frombuffer(shared_memory.get_obj(), np.uint32)
    return SharedTexts(rows.reshape(-1, 1 + space.max_length))


@write_to_shared_memory.register(UnicodeText)
def _write_shared_text(space: UnicodeText, index: int, value: str, shared_memory: Any) -> None:
    _read_shared_texts(space, shared_memory).write(index, value)

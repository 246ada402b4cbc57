"""Types of LLVM IR as it is printed: which of them kernels may use, and how many bytes they take."""

from __future__ import annotations

import re

from npu_daemon.simulator.kernel_ir.refusal import RefusedIr

POINTER = "ptr"
MAX_INTEGER_BITS = 64
MAX_TYPE_DEPTH = 64
MAX_BYTES = 2**40
_FLOAT_BYTES = {"half": 2, "float": 4, "double": 8}
_POINTER_BYTES = 8
_INTEGER = re.compile(r"i(\d{1,8})")
_TOKEN = re.compile(r" ?(?:(<\{)|(\{)|\[(\d{1,19}) x |(%[\w.$-]+)|([a-z]\w*))")
_REFUSED_WORDS = {
    "x86_fp80": "long double: use float or double",
    "fp128": "a float of 128 bits: use float or double",
    "ppc_fp128": "a float of 128 bits: use float or double",
    "bfloat": "the compiler's own bfloat type: use bfloat16_t",
    "x86_amx": "registers of the host",
    "label": "addresses of labels: use branches",
    "opaque": "a type without content",
    "target": "types of other machines",
}

Layout = tuple[int, int]  # size without padding at the end, and alignment, in bytes


class TypeTable:
    """Reads types, each text once, with the named structures of one module.

    Args:
        structures: body of each named structure, by its name with ``%``.
    """

    def __init__(self, structures: dict[str, str]) -> None:
        self._structures = structures
        self._layouts: dict[str, Layout] = {}
        self._open: set[str] = set()

    def check(self, text: str) -> None:
        """Raise ``RefusedIr`` unless ``text`` is a type that kernels may use."""
        if text not in self._layouts:
            self._layouts[text] = self._whole(text)

    def stored_bytes(self, text: str) -> int:
        """Return how many bytes a load or store of the type touches."""
        self.check(text)
        return self._layouts[text][0]

    def occupied_bytes(self, text: str) -> int:
        """Return how many bytes an object of the type takes, padding at its end included."""
        self.check(text)
        size, alignment = self._layouts[text]
        return _rounded(size, alignment)

    def _whole(self, text: str) -> Layout:
        layout, end = self._read(text, 0, 0)
        if end != len(text):
            raise _unknown(text)
        return layout

    def _read(self, text: str, position: int, depth: int) -> tuple[Layout, int]:
        found = _TOKEN.match(text, position)
        if found is None or depth > MAX_TYPE_DEPTH:
            raise _unknown(text)
        packed, _, count, name, word = found.groups()
        if word:
            return _scalar(word, text), found.end()
        if name:
            return self._named(name), found.end()
        if count:
            return self._array(text, int(count), found.end(), depth)
        return self._structure(text, found.end(), "}>" if packed else "}", depth)

    def _named(self, name: str) -> Layout:
        if name not in self._layouts:
            body = self._structures.get(name)
            if body is None or name in self._open:
                raise _unknown(name)
            self._open.add(name)
            self._layouts[name] = self._whole(body)
            self._open.discard(name)
        return self._layouts[name]

    def _array(self, text: str, count: int, position: int, depth: int) -> tuple[Layout, int]:
        (size, alignment), end = self._read(text, position, depth + 1)
        if not text.startswith("]", end):
            raise _unknown(text)
        return _limited(_rounded(size, alignment) * count, alignment), end + 1

    def _structure(self, text: str, position: int, closing: str, depth: int) -> tuple[Layout, int]:
        offset, largest = 0, 1
        while not text.startswith(closing, position + text.startswith(" ", position)):
            (size, alignment), position = self._read(text, position, depth + 1)
            taken = _rounded(size, alignment)
            alignment = 1 if closing == "}>" else alignment
            offset = _rounded(offset, alignment) + taken
            largest = max(largest, alignment)
            position += text.startswith(",", position)
        end = position + text.startswith(" ", position) + len(closing)
        return _limited(_rounded(offset, largest), largest), end


def _scalar(word: str, text: str) -> Layout:
    if word == POINTER:
        return _POINTER_BYTES, _POINTER_BYTES
    if word in _FLOAT_BYTES:
        return _FLOAT_BYTES[word], _FLOAT_BYTES[word]
    integer = _INTEGER.fullmatch(word)
    if integer is None:
        raise (
            RefusedIr(f"the kernel uses {_REFUSED_WORDS[word]}") if word in _REFUSED_WORDS else _unknown(text)
        )
    bits = int(integer[1])
    if not 1 <= bits <= MAX_INTEGER_BITS:
        raise RefusedIr(f"the kernel uses integers of {bits} bits: use at most {MAX_INTEGER_BITS}")
    size = (bits + 7) // 8
    return size, 1 << (size - 1).bit_length()


def _limited(size: int, alignment: int) -> Layout:
    if size > MAX_BYTES:
        raise RefusedIr(f"the kernel declares an object of {size} bytes: use global memory or UB")
    return size, alignment


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _unknown(text: str) -> RefusedIr:
    if text.startswith("<"):
        return RefusedIr(f"the kernel uses vectors of the host ({text[:60]}): use vector instructions")
    return RefusedIr(f"the kernel uses a type that is not known here: {text[:60]}")

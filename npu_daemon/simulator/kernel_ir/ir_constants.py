"""Constants of LLVM IR as they are printed: initial values of variables, and constant expressions."""

from __future__ import annotations

import re

from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr

MAX_CONSTANT_DEPTH = 64
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?|[+-]?(?:inf|qnan|nan)|0x[HRKLM]?[0-9A-F]+"
SYMBOL = r"@[\w.$-]+"
_SIMPLE = re.compile(
    rf"(?:{NUMBER}|true|false|null|undef|poison|zeroinitializer|(?P<symbol>{SYMBOL})|c\"[^\"]*\")(?=[,\s\]}}>)]|\Z)"
)
_EXPRESSION = re.compile(
    r"(?:(?P<index>getelementptr)(?: inbounds| nusw| nuw| inrange\(-?\d+, -?\d+\))*"
    r"|(?P<cast>ptrtoint|ptrtoaddr|inttoptr|bitcast|trunc)"
    r"|(?P<binary>add|sub|xor)(?: nuw| nsw)*) \("
)
_TYPE = re.compile(
    r"(?:\[\d+ x )*(?:[a-z]\w*|%[\w.$-]+|<?\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}>?)\]*"
)


class ConstantReader:
    """Reads constants and notes the symbols in them.

    Args:
        types: of the module.
    """

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self._symbols: set[str] = set()

    def symbols_of(self, text: str) -> frozenset[str]:
        """Return the symbols, with ``@``, in a constant without its type.

        Raises:
            RefusedIr: it is not a constant that kernels may use.
        """
        self._symbols = set()
        if self._value(text, 0, 0) != len(text):
            raise _unknown(text)
        return frozenset(self._symbols)

    def _value(self, text: str, position: int, depth: int) -> int:
        """Read a value without its type from ``position``; return where it ends."""
        simple = _SIMPLE.match(text, position)
        if simple:
            if simple["symbol"]:
                self._symbols.add(simple["symbol"])
            return simple.end()
        if depth > MAX_CONSTANT_DEPTH:
            raise _unknown(text)
        for opening, closing in (("<{", "}>"), ("{", "}"), ("[", "]")):
            if text.startswith(opening, position):
                return self._list(text, position + len(opening), closing, depth)
        expression = _EXPRESSION.match(text, position)
        if expression is None:
            raise _unknown(text[position:])
        return self._expression(text, expression, depth)

    def _list(self, text: str, position: int, closing: str, depth: int) -> int:
        """Read ``type value, type value`` up to ``closing``; return where that ends."""
        position += text.startswith(" ", position)
        while not text.startswith(closing, position):
            position = self._typed(text, position, depth)
            if text.startswith(", ", position):
                position += 2
            else:
                position += text.startswith(" ", position)
                if not text.startswith(closing, position):
                    raise _unknown(text[position:])
        return position + len(closing)

    def _typed(self, text: str, position: int, depth: int) -> int:
        end = self._type(text, position)
        if not text.startswith(" ", end):
            raise _unknown(text[position:])
        return self._value(text, end + 1, depth + 1)

    def _type(self, text: str, position: int) -> int:
        found = _TYPE.match(text, position)
        if found is None:
            raise _unknown(text[position:])
        self._types.check(found[0])
        return found.end()

    def _expression(self, text: str, opening: re.Match[str], depth: int) -> int:
        position = opening.end()
        if opening["index"]:
            position = self._type(text, position)
            if not text.startswith(", ", position):
                raise _unknown(text[position:])
            return self._list(text, position + 2, ")", depth)
        if opening["binary"]:
            return self._list(text, position, ")", depth)
        position = self._typed(text, position, depth)
        if not text.startswith(" to ", position):
            raise _unknown(text[position:])
        position = self._type(text, position + 4)
        if not text.startswith(")", position):
            raise _unknown(text[position:])
        return position + 1


def _unknown(text: str) -> RefusedIr:
    return RefusedIr(f"the kernel uses a constant that is not known here: {text[:80]}")

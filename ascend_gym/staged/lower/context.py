"""What the passes share: names and types in C++."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from ascend_gym.staged.scalars import cpp, is_float
from ascend_gym.staged.syntax import GENERIC, Share, names_in, walk
from ascend_gym.staged.verify import Verified

CPP_TYPES = {"f32": "float", "f16": "half", "i32": "int32_t", "u8": "uint8_t", GENERIC: "T"}

_RESERVED_TEXT = """
alignas alignof and asm auto bool break case catch char class const continue default
delete do double else enum explicit export extern false float for friend goto half if
inline int long mutable namespace new not operator or pipe platform private protected
public register return shape short signed sizeof static struct switch template this throw
tiling true try typedef typeid typename union unsigned using virtual void volatile while
workspace xor context written data std ge gert optiling size_t int64_t int32_t uint32_t event_t
"""
_RESERVED = frozenset(_RESERVED_TEXT.split())


class Context:
    """A verified program and how its parts are called in C++.

    Attributes:
        verified: the program with all that the verifier found.
        program: the program.
        interface: the operator.
        padded: whether copies move what they should, and not whole blocks.
    """

    def __init__(self, verified: Verified, *, padded: bool = True) -> None:
        self.verified, self.padded = verified, padded
        self.program, self.interface = verified.program, verified.interface

    @cached_property
    def generic(self) -> bool:
        """Whether the kernel is a template over its element type."""
        dtypes = [
            *(each.dtype for each in self.program.tensors),
            *(each.dtype for each in self.program.allocs),
        ]
        return GENERIC in dtypes

    @cached_property
    def names(self) -> dict[str, str]:
        """Names of the kernel that differ in C++."""
        scalars = {*self.verified.types, *(each.name for each in self.program.scalars)}
        names = {name: name_of(name) for name in scalars}
        return {
            **names,
            **{alloc.name: f"{alloc.name}Local" for alloc in self.program.allocs},
            "core": "static_cast<int64_t>(AscendC::GetBlockIdx())",
            "cores": "static_cast<int64_t>(AscendC::GetBlockNum())",
        }

    @cached_property
    def shares(self) -> list[Share]:
        """The shares that the host can compute: of what it hands over alone."""
        given = {each.name for each in self.program.scalars}
        found = [each for each in walk(self.program.body) if isinstance(each, Share)]
        return [each for each in found if all(_is_given(e, given) for e in (each.total, each.grain) if e)]

    @cached_property
    def parts(self) -> dict[int, str]:
        """Field of the tiling data that has the size of a share, by the identity of its statement."""
        return {id(each): f"sharePart{number}" for number, each in enumerate(self.shares, 1)}

    def expression(self, node: ast.expr) -> str:
        """Return a scalar expression of the kernel in C++."""
        return cpp(node, self.verified.types, self.verified.program.float_buffers, self.names)

    def is_float(self, node: ast.expr) -> bool:
        """Say whether a scalar expression of the kernel is a float."""
        return is_float(node, self.verified.types, self.verified.program.float_buffers)

    def element(self, buffer: str) -> str:
        """Return the C++ type of a buffer's elements."""
        return CPP_TYPES[self.program.alloc(buffer).dtype]

    def bytes_of(self, dtype: str) -> str:
        """Return the size of an element type in C++."""
        return f"sizeof({CPP_TYPES[dtype]})"


def _is_given(node: ast.expr, given: set[str]) -> bool:
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    own = {"core", "cores", "read"}
    return names_in(node) <= given and not any(ast.unparse(each.func) in own for each in calls)


def share_part(context: Context, share: Share, text: Callable[[ast.expr], str], cores: str) -> str:
    """Return what a core gets at most: whole grains, equally many for all but the last cores.

    Args:
        context: the program.
        share: the statement.
        text: turns its expressions into C++.
        cores: how many cores there are.
    """
    total, grain = text(share.total), "1" if share.grain is None else text(share.grain)
    if grain == "1":
        return f"CeilDiv({total}, {cores})"
    return f"CeilDiv(CeilDiv({total}, {grain}), {cores}) * ({grain})"


def name_of(name: str) -> str:
    """Return a scalar's name in C++."""
    return f"{name}Value" if name in _RESERVED else name


def scalar_type(*, is_float: bool) -> str:
    """Return the C++ type of a scalar."""
    return "float" if is_float else "int64_t"


HELPERS = {
    "MinOf": "template <typename T>\n{inline} T MinOf(T a, T b)\n{{\n    return a < b ? a : b;\n}}\n",
    "MaxOf": "template <typename T>\n{inline} T MaxOf(T a, T b)\n{{\n    return a > b ? a : b;\n}}\n",
    "CeilDiv": "{inline} int64_t CeilDiv(uint64_t a, uint64_t b)\n{{\n    return (a + b - 1) / b;\n}}\n",
    "AlignUp": "{inline} int64_t AlignUp(uint64_t a, uint64_t b)\n{{\n    return (a + b - 1) / b * b;\n}}\n",
}


def helpers_for(text: str, inline: str) -> str:
    """Return the definitions of the helper functions that a text calls."""
    used = [
        source.format(inline=inline)
        for name, source in HELPERS.items()
        if f"{name}<" in text or f"{name}(" in text
    ]
    return "\n".join([*used, ""]) if used else ""

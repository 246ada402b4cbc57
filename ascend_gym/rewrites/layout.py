"""Rules about the positions of buffers in UB: the banks that one vector instruction accesses."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from ascend_gym.rewrites.rule import Choice, Effect, Family, File, Pipe, Rule, Side, Site, View, rule
from ascend_gym.rewrites.syntax import Call, Edit

_PADDING_BYTES = 256  # half of the 16 bank groups of 32 bytes
_INIT_ARITIES = (2, 3)  # of a TBuf, of a queue
_SIMPLE = (
    "binary_expression",
    "call_expression",
    "field_expression",
    "identifier",
    "number_literal",
    "parenthesized_expression",
)
_LOOSE = frozenset({"<<", ">>", "&", "|", "^", "<", ">", "==", "&&", "||"})


@rule(
    Family.MEMORY,
    Side.KERNEL,
    Effect((Pipe.VECTOR,), "operands in different bank groups: no cycles lost to conflicts"),
    inverse="bank_padding",
)
def bank_padding(view: View) -> Iterator[Site]:
    """``InitBuffer`` gives a queue or TBuf a number of bytes; 256 more shift every later buffer.

    Buffers of one vector instruction that begin at equal addresses modulo 512 bytes share bank groups.
    Assumption: UB has enough room.
    """
    for file in view.kernel:
        for call in file.source.calls:
            if call.name == "InitBuffer" and call.is_method and len(call.arguments) in _INIT_ARITIES:
                yield from _padding_site(file, call)


RULES: tuple[Rule, ...] = (bank_padding,)
REWINDS: tuple[Rule, ...] = ()


def _padding_site(file: File, call: Call) -> Iterator[Site]:
    size = call.arguments[-1]
    label = file.label(call.node.start_byte, f"{call.values[0]} of {file.source.text_of(size)} bytes")
    padded = _padded_operand(file, size)
    if padded is not None:
        edit = file.edit(Edit(padded.end_byte, size.end_byte, ""))
        yield Site(label, (Choice("no padding", (edit,), forward=False),))
    elif size.type in _SIMPLE and not _is_loose(file, size):
        edit = file.edit(Edit(size.end_byte, size.end_byte, f" + {_PADDING_BYTES}"))
        yield Site(label, (Choice(f"{_PADDING_BYTES} bytes of padding", (edit,)),))


def _padded_operand(file: File, size: Node) -> Node | None:
    """Return n if the size is ``n + 256``."""
    operator, right = size.child_by_field_name("operator"), size.child_by_field_name("right")
    if size.type != "binary_expression" or operator is None or right is None:
        return None
    added = (file.source.text_of(operator), file.source.text_of(right))
    return size.child_by_field_name("left") if added == ("+", str(_PADDING_BYTES)) else None


def _is_loose(file: File, size: Node) -> bool:
    """Return whether an operator in the size has lower precedence than addition."""
    operator = size.child_by_field_name("operator")
    return operator is not None and file.source.text_of(operator) in _LOOSE

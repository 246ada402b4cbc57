"""Named integers, classified by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from tree_sitter import Node

from ascend_gym.rewrites.rule import Choice, File, FileEdit
from ascend_gym.rewrites.syntax import Edit, ancestor

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
_FIXED = re.compile(rb"\bconst(?:expr)?\b")
_FACTORS = ("2", "4", "8")
_WRITTEN_AS_ONE = {"corenum": ("core", "num"), "blockdim": ("block", "dim"), "blocknum": ("block", "num")}
_DERIVED = re.compile(r"\b(?:\w*tile\w*|\w*chunk\w*|ubPart\w*)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"[\dxXa-fA-FuUlL\s()*/+-]*\d[\dxXa-fA-FuUlL\s()*/+-]*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SIZE_WORDS = _words(
    "len length size num number count elem elems element elements rows row cols data factor bytes block "
    "limit max batch chunk part share split"
)
_LENGTH_WORDS = _words("len length size data block elem elems rows factor part bytes")
_COUNT_WORDS = _words("num nums number count depth")
_OF_DATA_WORDS = _words("elem elems element elements data bytes len length size")
_RESERVE_WORDS = _words("reserve reserved reserves rsv rsvd")
_NEVER_A_SIZE = _words("key align dim dims type mode id version stride") | _RESERVE_WORDS
_NOT_OF_CORES = _words("data loop tail least per process single handle calc former last slide split")


@dataclass(frozen=True)
class Constant:
    """A named integer with its definition: constexpr, const, #define, local variable or setter argument.

    Attributes:
        file: source file.
        name: its name.
        value_node: syntax node of the value.
        value_text: text of the value.
        is_fixed: whether the program cannot change it (constexpr, const or #define).
        type_text: declared type; empty for #define and setters.
    """

    file: File
    name: str
    value_node: Node
    value_text: str
    is_fixed: bool
    type_text: str

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the name in lower case: ``TILE_LENGTH`` and ``tileLength`` both give tile, length.

        So do those of cores and blocks that are written as one: ``CORENUM`` gives core, num.
        """
        words = (word.lower() for word in _WORD.findall(self.name))
        return tuple(part for word in words for part in _WRITTEN_AS_ONE.get(word, (word,)))

    @property
    def literal(self) -> int | None:
        """The value if it is an integer literal, else ``None``."""
        match = _INTEGER.fullmatch(self.value_text)
        return int(match[1], 0 if match[1][:2].lower() == "0x" else 10) if match else None

    @property
    def is_arithmetic(self) -> bool:
        """Whether the value consists of integer literals only: ``2048`` or ``8 * 1024``."""
        return _ARITHMETIC.fullmatch(self.value_text) is not None

    @property
    def label(self) -> str:
        """File, line and definition."""
        return self.file.label(self.value_node.start_byte, f"{self.name} = {self.value_text}")

    def replaced(self, text: str) -> FileEdit:
        """Return the edit that changes the value."""
        end_byte = self.value_node.start_byte + len(self.value_text.encode())
        return self.file.edit(Edit(self.value_node.start_byte, end_byte, text))

    def with_literal(self, value: int) -> str:
        """Return ``value`` in the notation of the present literal, with its suffix."""
        match = _INTEGER.fullmatch(self.value_text)
        return f"{value}{match[2] if match else ''}"


@lru_cache(maxsize=256)
def constants_of(file: File) -> tuple[Constant, ...]:
    """Return every named integer of a file, in source order."""
    found = [*_definitions(file), *_members(file), *_macros(file), *_setter_arguments(file)]
    return tuple(sorted(found, key=lambda constant: constant.value_node.start_byte))


def names_tile(constant: Constant) -> bool:
    """Return whether a name means the amount of data per UB pass, or the number of parts of UB.

    A computed value only counts if its name is that of a length, not of a number of tiles, and if it
    is not computed from another such value, which is then the one to change.
    """
    words = set(constant.words)
    tiled = bool(words & {"tile", "tiles", "chunk"})
    if words & _NEVER_A_SIZE or constant.literal in (0, 1) or (words & {"idx", "index"} and not tiled):
        return False
    if not constant.is_arithmetic:
        derived = _DERIVED.search(constant.value_text) is not None
        return (tiled or words >= {"ub", "part"}) and bool(words & _LENGTH_WORDS) and not derived
    if tiled:
        return True
    if words & {"ub", "buffer", "buf"} and not _named_like_a_buffer_count(constant):
        return bool(words & _SIZE_WORDS)
    return bool(words & {"compute", "process", "proc", "batch", "per"}) and bool(
        words & {"len", "length", "count"}
    )


def names_parts(constant: Constant) -> bool:
    """Return whether a name means a number of parts, so that a larger one makes tiles smaller.

    ``tileNum`` and ``ubDataNumber`` do; ``tileDataNum`` and ``MAX_ELEM_NUM`` are sizes of a part.
    """
    words = set(constant.words)
    of_elements = words & {"elem", "elems", "element", "elements", "per", "max"}
    of_one_part = words & {"data", "block"} and words & {"tile", "part"}
    return bool(words & _COUNT_WORDS) and not of_elements and not of_one_part


def names_buffer_count(constant: Constant) -> bool:
    """Return whether a name and value mean the number of buffers of a queue: ``BUFFER_NUM = 1``."""
    return _named_like_a_buffer_count(constant) and constant.literal in range(1, 5)


def _named_like_a_buffer_count(constant: Constant) -> bool:
    words = set(constant.words)
    counts = bool(words & _COUNT_WORDS) and not words & _OF_DATA_WORDS
    return counts and bool(words & {"buffer", "buf", "queue", "que", "db"})


def names_core_count(constant: Constant) -> bool:
    """Return whether a name and value mean a number of cores: ``BLOCK_DIM = 20``, ``coreNum = 8``.

    A variable initialised with 1 is a default, not a choice.
    """
    words = constant.words
    if set(words) & _NOT_OF_CORES or constant.literal not in range(1 if constant.is_fixed else 2, 129):
        return False
    pairs = set(pairwise(words))
    return ("block", "dim") in pairs or ("core" in words and bool(set(words) & _COUNT_WORDS))


def names_alignment(constant: Constant) -> bool:
    """Return whether a name means the unit in which work is divided: ``BLOCK_SIZE``, ``ALIGN_ELEMS``."""
    words = set(constant.words)
    if "align" in words:
        return not words & {"type", "mode", "flag", "is"}
    return "block" in words and words <= {"block", "size", "byte", "bytes", "data", "one", "per", "len"}


def names_reserve(constant: Constant) -> bool:
    """Return whether a name means bytes of UB that are kept free: ``UB_RESERVED_BYTE``."""
    words = set(constant.words)
    return bool(words & _RESERVE_WORDS) and constant.literal is not None and "workspace" not in words


def scaled_choices(constants: list[Constant], factors: tuple[Fraction, ...]) -> Iterator[Choice]:
    """Yield a choice for each factor by which the tile that ``constants`` (of equal value) define can change.

    A fixed tile is expected to gain by growing. One that already fills UB (a share of it, or computed
    from it) can only gain by shrinking, so that more tiles overlap.
    """
    first = constants[0]
    fills_ub = not first.is_arithmetic or (names_parts(first) and "ub" in first.words)
    for factor in (1 / factor for factor in factors) if fills_ub else factors:
        text = _scaled(first, 1 / factor if names_parts(first) else factor)
        if text is not None and (factor < 1 or first.is_arithmetic):
            yield replacement(constants, text, forward=(factor > 1) != fills_ub)
    present = _present_factor(first)
    if present is not None:
        text, factor = present
        grows = (factor < 1) != names_parts(first)
        yield replacement(constants, text, forward=grows != fills_ub)


def replacement(constants: list[Constant], text: str, *, forward: bool) -> Choice:
    """Return the choice that sets all of ``constants`` (of equal value) to ``text``."""
    first = constants[0]
    edits = tuple(constant.replaced(text) for constant in constants)
    return Choice(f"{first.name}: {first.value_text} -> {text}", edits, forward)


def _scaled(constant: Constant, factor: Fraction) -> str | None:
    if constant.literal is not None:
        value = constant.literal * factor
        return constant.with_literal(int(value)) if value >= 1 and value.denominator == 1 else None
    simple = constant.value_node.type in ("identifier", "call_expression")
    value_text = constant.value_text if simple else f"({constant.value_text})"
    return f"{value_text} * {factor}" if factor > 1 else f"{value_text} / {factor.denominator}"


def _present_factor(constant: Constant) -> tuple[str, Fraction] | None:
    """Return a and n, or 1 / n, if the value has the form ``(a) * n`` or ``(a) / n`` of ``_scaled``."""
    fields = [constant.value_node.child_by_field_name(name) for name in ("left", "operator", "right")]
    left, operator, right = fields
    if left is None or operator is None or right is None or constant.value_node.type != "binary_expression":
        return None
    sign, factor = constant.file.source.text_of(operator), constant.file.source.text_of(right)
    if sign not in ("*", "/") or factor not in _FACTORS:
        return None
    inner = left.named_children[0] if left.type == "parenthesized_expression" else left
    return constant.file.source.text_of(inner), Fraction(1, int(factor)) if sign == "/" else Fraction(factor)


def _definitions(file: File) -> Iterator[Constant]:
    for node in file.source.nodes("init_declarator"):
        name, value, parent = (
            node.child_by_field_name("declarator"),
            node.child_by_field_name("value"),
            node.parent,
        )
        if name is None or value is None or parent is None or name.type != "identifier":
            continue
        type_node = parent.child_by_field_name("type")
        line_start = file.source.data.rfind(b"\n", 0, name.start_byte) + 1
        # Textual, because a preceding macro without a semicolon hides the qualifier from the parser.
        fixed = _FIXED.search(file.source.data[line_start : name.start_byte]) is not None
        type_text = file.source.text_of(type_node) if type_node else ""
        if "float" in type_text or "double" in type_text or value.type == "initializer_list":
            continue
        yield Constant(file, file.source.text_of(name), value, file.source.text_of(value), fixed, type_text)


def _members(file: File) -> Iterator[Constant]:
    for node in file.source.nodes("field_declaration"):
        name, value = node.child_by_field_name("declarator"), node.child_by_field_name("default_value")
        qualifiers = {file.source.text_of(child) for child in node.children if child.type == "type_qualifier"}
        type_node = node.child_by_field_name("type")
        if name is None or value is None or type_node is None or not qualifiers & {"const", "constexpr"}:
            continue
        yield Constant(
            file,
            file.source.text_of(name),
            value,
            file.source.text_of(value),
            True,
            file.source.text_of(type_node),
        )


def _macros(file: File) -> Iterator[Constant]:
    for node in file.source.nodes("preproc_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            continue
        text = file.source.text_of(value).split("//")[0].split("/*")[0].strip()
        if _INTEGER.fullmatch(text):
            yield Constant(file, file.source.text_of(name), value, text, True, "")


def _setter_arguments(file: File) -> Iterator[Constant]:
    for call in file.source.calls:
        if call.is_method and call.name.startswith("set_") and len(call.arguments) == 1:
            value = file.source.text_of(call.arguments[0])
            if _INTEGER.fullmatch(value) and ancestor(call.node, "function_definition") is not None:
                yield Constant(file, call.name.removeprefix("set_"), call.arguments[0], value, False, "")

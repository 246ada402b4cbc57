"""Larger, unaligned shapes for the example of a cann-ops operator.

The examples use tiny, mostly aligned tensors. Shapes are literals in ``main.cpp`` and
``gen_data.py``; both files are rewritten consistently, extent by extent.
A rule determines the new extents of the tensors of the call:

* ``odd``: the last extent e becomes 2 e + 1, the others 3 e;
* ``ratio``: likewise, but a last extent that is a multiple of a smaller one keeps that ratio, for
  operators that halve the last axis or split it into groups;
* ``double``: every extent becomes 2 e.

An extent of 1 is kept. Lists of literals that equal the shape of a tensor become its larger shape. Other
literals of 16 and more are replaced wherever they equal an extent or the number of elements of a tensor.
Smaller ones, which may mean anything, are only replaced in assignments or lists in a line that names a shape,
a dimension or a length, and no window, padding or group. Literal data with one number for each
element of a tensor is repeated until it fills the larger one.

If no rule fits, ``resize_example`` gives the tensors shapes that were chosen by hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ascend_gym.core.errors import MisuseError

Shape = tuple[int, ...]

RULES = ("odd", "ratio", "double")

_SOURCES = ("gen_data.py", "main.cpp")

_UNMISTAKABLE = 16
_LIST = re.compile(r"(?:(?<=\W\[)|(?<=[({]))\s*\d+(?:\s*,\s*\d+)*(?=\s*,?\s*[\])}])")
_LITERAL = re.compile(r"(?<![\w.])\d+(?![\w.])")
_ASSIGNED = re.compile(r"[=,{]\s*$")
_SHAPE_LINE = re.compile(r"shape|\bdim\w*\b|\w*(?:length|size)\s*=|\b[A-Za-z]\s*=\s*\d", re.IGNORECASE)
_WINDOW_LINE = re.compile(r"kernel|stride|pad|dilation|group", re.IGNORECASE)  # sizes that stay
_DATA = re.compile(r"(HostData\w*\s*=\s*\{|(?:np\.array|torch\.tensor)\(\s*\[)([^][{}()]*)(?=[]}])")
_KEPT = "\0"  # placeholder for a list of data while the rest of the text is rewritten
_COMMENT = re.compile(r"^\s*(?:#(?!define)|//|/?\*)")


def enlarged_extents(shapes: Iterable[Shape], rule: str) -> dict[int, int]:
    """Return the new value of each extent, and of each number of elements, of the given shapes.

    An extent that is the last one of some tensor is treated as such everywhere.

    Raises:
        MisuseError: the rule does not exist.
    """
    if rule not in RULES:
        raise MisuseError(f"no rule {rule!r} for larger shapes: there are {', '.join(RULES)}")
    known = list(shapes)
    extents = {extent: 2 * extent if rule == "double" else 3 * extent for shape in known for extent in shape}
    if rule != "double":
        extents |= _grown_last({shape[-1] for shape in known if shape}, keep_ratios=rule == "ratio")
    extents |= {0: 0, 1: 1}
    for shape in known:
        extents.setdefault(math.prod(shape), math.prod(extents[extent] for extent in shape))
    return {extent: grown for extent, grown in extents.items() if extent > 1}


def _grown_last(last: Iterable[int], *, keep_ratios: bool) -> dict[int, int]:
    grown: dict[int, int] = {}
    for extent in sorted(last):
        base = max((known for known in grown if known > 1 and extent % known == 0), default=0)
        grown[extent] = extent // base * grown[base] if keep_ratios and base else 2 * extent + 1
    return grown


def enlarge_text(text: str, shapes: Iterable[Shape], rule: str) -> str:
    """Return the text of a source file with the literals of shapes replaced.

    Raises:
        MisuseError: the rule does not exist.
    """
    known = set(shapes)
    extents = enlarged_extents(known, rule)
    counts = {count: extents[count] for count in map(math.prod, known) if count in extents}
    return _rewritten(text, counts, lambda line: _enlarge_line(line, known, extents))


def resize_text(text: str, shapes: Mapping[Shape, Shape]) -> str:
    """Return the text of a source file with lists of literals that equal a shape replaced by a new shape.

    Args:
        text: source file.
        shapes: new shape by old shape. Literal data with as many elements is resized, too.
    """

    def resized(listed: re.Match[str]) -> str:
        shape = tuple(int(value) for value in listed.group().split(","))
        return ", ".join(map(str, shapes[shape])) if shape in shapes else listed.group()

    counts = {math.prod(old): math.prod(new) for old, new in shapes.items()}
    return _rewritten(text, counts, lambda line: _LIST.sub(resized, line))


def _rewritten(text: str, counts: Mapping[int, int], rewrite: Callable[[str], str]) -> str:
    """Return the text with every line rewritten, except data, which is repeated to its new length."""
    data: list[str] = []

    def keep(found: re.Match[str]) -> str:
        literals = [literal.strip() for literal in found[2].split(",") if literal.strip()]
        if len(literals) not in counts:
            return found.group()
        repeated = (literals[index % len(literals)] for index in range(counts[len(literals)]))
        data.append(", ".join(repeated))
        return found[1] + _KEPT

    lines = _DATA.sub(keep, text).splitlines(keepends=True)
    return re.sub(_KEPT, lambda _: data.pop(0), "".join(rewrite(line) for line in lines))


def enlarge_example(example: Path, shapes: Collection[Shape], rule: str) -> None:
    """Rewrite ``gen_data.py`` and ``main.cpp`` in the folder ``example``, in place.

    Args:
        example: copy of the example folder of an operator.
        shapes: original shapes of all tensors of the aclnn call.
        rule: name of a rule of this module.

    Raises:
        MisuseError: the rule does not exist.
    """
    texts = _read_sources(example)
    _write_sources(example, [enlarge_text(text, shapes, rule) for text in texts])


def resize_example(example: Path, shapes: Mapping[Shape, Shape], edits: Iterable[Sequence[str]]) -> None:
    """Rewrite ``gen_data.py`` and ``main.cpp`` in the folder ``example``, in place.

    Args:
        example: copy of the example folder of an operator.
        shapes: new shape by old shape.
        edits: pairs of a text and its replacement, applied to all occurrences before the shapes.

    Raises:
        MisuseError: a text occurs in neither file.
    """
    texts = _read_sources(example)
    for old, new in edits:
        if not any(old in text for text in texts):
            raise MisuseError(
                f"{example}: neither gen_data.py nor main.cpp has {old!r}: is it another version?"
            )
        texts = [text.replace(old, new) for text in texts]
    _write_sources(example, [resize_text(text, shapes) for text in texts])


def _read_sources(example: Path) -> list[str]:
    return [(example / name).read_text(encoding="utf-8", errors="replace") for name in _SOURCES]


def _write_sources(example: Path, texts: Iterable[str]) -> None:
    for name, text in zip(_SOURCES, texts, strict=True):
        (example / name).write_text(text, encoding="utf-8")


def _enlarge_line(line: str, shapes: Collection[Shape], extents: Mapping[int, int]) -> str:
    if _COMMENT.match(line):
        return line
    names_shape = bool(_SHAPE_LINE.search(line)) and not _WINDOW_LINE.search(line)

    def grown(literal: re.Match[str]) -> str:
        value = int(literal.group())
        before = literal.string[: literal.start()]
        meant = value >= _UNMISTAKABLE or (names_shape and _ASSIGNED.search(before) is not None)
        return str(extents[value]) if meant and value in extents else literal.group()

    pieces = []
    done = 0
    for listed in _LIST.finditer(line):
        values = tuple(int(value) for value in listed.group().split(","))
        if values in shapes:
            larger = ", ".join(str(extents.get(value, value)) for value in values)
            pieces += [_LITERAL.sub(grown, line[done : listed.start()]), larger]
            done = listed.end()
    return "".join([*pieces, _LITERAL.sub(grown, line[done:])])

"""Larger, unaligned shapes for the example of a cann-ops operator.

The examples work on tiny, mostly aligned tensors. The shapes stand as literals in ``main.cpp`` and
``gen_data.py``; both are rewritten alike, extent by extent, so that what belonged together still does.
A rule says what becomes of the extents of the tensors of the call:

* ``odd``: the last extent e becomes 2 e + 1, the others 3 e;
* ``ratio``: likewise, but a last extent that is a multiple of a smaller one stays that multiple of it: for
  operators that halve the last axis or split it into groups;
* ``double``: every extent becomes 2 e.

An extent of 1 stays. Lists of literals that are the shape of a tensor become its larger shape. Other
literals of 16 and more are rewritten wherever they equal an extent or the number of elements of a tensor;
smaller ones, which may be anything, only where they are assigned or listed in a line that names a shape, a
dimension or a length, and no window, padding or group.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ascend_gym.core.errors import MisuseError

Shape = tuple[int, ...]

RULES = ("odd", "ratio", "double")

_UNMISTAKABLE = 16
_LIST = re.compile(r"(?:(?<=\W\[)|(?<=[({]))\s*\d+(?:\s*,\s*\d+)*(?=\s*,?\s*[\])}])")
_LITERAL = re.compile(r"(?<![\w.])\d+(?![\w.])")
_ASSIGNED = re.compile(r"[=,{]\s*$")
_SHAPE_LINE = re.compile(r"shape|\bdim\w*\b|\w*(?:length|size)\s*=|\b[A-Za-z]\s*=\s*\d", re.IGNORECASE)
_WINDOW_LINE = re.compile(r"kernel|stride|pad|dilation|group", re.IGNORECASE)  # sizes that stay
_COMMENT = re.compile(r"^\s*(?:#(?!define)|//|/?\*)")


def enlarged_extents(shapes: Iterable[Shape], rule: str) -> dict[int, int]:
    """Return what becomes of each extent, and of each number of elements, of the given shapes.

    An extent that is the last one of some tensor counts as such everywhere.

    Raises:
        MisuseError: there is no rule of this name.
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
        MisuseError: there is no rule of this name.
    """
    known = set(shapes)
    extents = enlarged_extents(known, rule)
    return "".join(_enlarge_line(line, known, extents) for line in text.splitlines(keepends=True))


def enlarge_example(example: Path, shapes: Collection[Shape], rule: str) -> None:
    """Rewrite ``gen_data.py`` and ``main.cpp`` in the folder ``example``, in place.

    Args:
        example: a copy of the example folder of an operator.
        shapes: the shapes of all tensors of the aclnn call, as the example has them.
        rule: name of a rule, see above.

    Raises:
        MisuseError: there is no rule of this name.
    """
    for name in ("gen_data.py", "main.cpp"):
        path = example / name
        text = path.read_text(encoding="utf-8", errors="replace")
        path.write_text(enlarge_text(text, shapes, rule), encoding="utf-8")


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

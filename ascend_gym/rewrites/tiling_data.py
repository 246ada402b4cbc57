"""Rules about the tiling data of a kernel: read where they lie in global memory, or copied first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ascend_gym.rewrites.rule import (
    Choice,
    Effect,
    Family,
    File,
    FileEdit,
    Pipe,
    Rule,
    Side,
    Site,
    View,
    rule,
)
from ascend_gym.rewrites.syntax import Edit

_REGISTERED = re.compile(rb"REGISTER_TILING_DATA_CLASS\(\s*\w+\s*,\s*(\w+)\s*\)")
_DEFINED = rb"BEGIN_TILING_DATA_DEF\(\s*%b\s*\)(.*?)END_TILING_DATA_DEF"
_ARRAY = re.compile(rb"TILING_DATA_FIELD_DEF_ARR\(\s*(\w+)\s*,\s*\w+\s*,\s*(\w+)\s*\)")
_PART = b"TILING_DATA_FIELD_DEF_STRUCT"  # library objects take its address, and not one in global memory
_COPIED = re.compile(rb"\bGET_TILING_DATA\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_IN_PLACE = re.compile(rb"\bauto (\w+) = reinterpret_cast<const __gm__ (\w+) \*>\((\w+)\)")
_WHERE_THEY_LIE = Effect(
    (Pipe.SCALAR,), "a block fetches the lines of the tiling data that it uses, and copies none of them"
)


@dataclass(frozen=True)
class _Structure:
    """Tiling data with arrays, of which a block uses some elements.

    Attributes:
        name: its type.
        arrays: fields that are arrays, by name, with the type of an element.
    """

    name: bytes
    arrays: dict[bytes, bytes]


@rule(Family.PIPELINING, Side.KERNEL, _WHERE_THEY_LIE, inverse="tiling_data_copy")
def tiling_data_in_place(view: View) -> Iterator[Site]:
    """``GET_TILING_DATA`` copies tiling data with arrays; functions get pointers to constants.

    The pointers lead to global memory instead, as do those that are set to one of the arrays. Assumption: the
    kernel changes none of the tiling data, and reads little of the arrays in each block.
    """
    entries = [(file, match) for file in view.kernel for match in _COPIED.finditer(file.source.data)]
    structure = _structure_of(view)
    if structure is None or len(entries) != 1:
        return
    file, entry = entries[0]
    name = entry[1]
    if _spans(file, rb"(?<![\w.>&])(%b)\s*[,)]" % name, entry.end()):
        return  # the structure itself is handed on
    taken = b"auto %b = reinterpret_cast<const __gm__ %b *>(%b)" % (name, structure.name, entry[2])
    edits = [_edit(file, entry.span(), taken)]
    edits += [_edit(file, span, b"") for span in _spans(file, rb"(&)%b(?=\s*[,)])" % name, entry.end())]
    edits += [_edit(file, span, b"->") for span in _spans(file, rb"(?<![\w.>])%b(\.)" % name, entry.end())]
    for pattern in _pointers(view, file, structure, b"%b." % name, qualifier=b""):
        edits += [_edit(each, span, b"__gm__ ") for each in view.kernel for span in _spans(each, pattern)]
    label = file.label(entry.start(), entry[0].decode())
    yield Site(label, (Choice("read in place", tuple(edits)),))


@rule(Family.PIPELINING, Side.KERNEL, _WHERE_THEY_LIE)
def tiling_data_copy(view: View) -> Iterator[Site]:
    """The kernel reads its tiling data in global memory, as ``tiling_data_in_place`` writes it."""
    entries = [(file, match) for file in view.kernel for match in _IN_PLACE.finditer(file.source.data)]
    structure = _structure_of(view)
    if structure is None or len(entries) != 1 or entries[0][1][2] != structure.name:
        return
    file, entry = entries[0]
    name = entry[1]
    edits = [_edit(file, entry.span(), b"GET_TILING_DATA(%b, %b)" % (name, entry[3]))]
    edits += [_edit(file, span, b"&") for span in _spans(file, rb"[(,]\s*()%b\s*[,)]" % name, entry.end())]
    edits += [_edit(file, span, b".") for span in _spans(file, rb"\b%b(->)" % name, entry.end())]
    for pattern in _pointers(view, file, structure, b"%b->" % name, qualifier=b"__gm__ "):
        edits += [_edit(each, span, b"") for each in view.kernel for span in _spans(each, pattern)]
    label = file.label(entry.start(), entry[0].decode())
    yield Site(label, (Choice("copy first", tuple(edits), forward=False),))


RULES: tuple[Rule, ...] = (tiling_data_in_place,)
REWINDS: tuple[Rule, ...] = (tiling_data_copy,)


def _structure_of(view: View) -> _Structure | None:
    """Return the registered structure with arrays: the one that the kernel names, or the only one."""
    host = b"\n".join(file.source.data for file in view.host)
    kernel = b"\n".join(file.source.data for file in view.kernel)
    found = []
    for name in dict.fromkeys(match[1] for match in _REGISTERED.finditer(host)):
        defined = re.search(_DEFINED % name, host, re.DOTALL)
        arrays = {match[2]: match[1] for match in _ARRAY.finditer(defined[1])} if defined else {}
        if defined and arrays and _PART not in defined[1]:
            found.append(_Structure(name, arrays))
    named = [each for each in found if re.search(rb"\b%b\b" % each.name, kernel)] or found
    return named[0] if len(named) == 1 else None


def _pointers(
    view: View, file: File, structure: _Structure, prefix: bytes, *, qualifier: bytes
) -> list[bytes]:
    """Return patterns of the pointers to tiling data and to arrays of them; the qualifier is the first group.

    Args:
        view: the kernel.
        file: the file of the entry.
        structure: the tiling data.
        prefix: what stands before a field in the entry, ``data.`` or ``data->``.
        qualifier: what stands before the type of a pointer, nothing or ``__gm__``.
    """
    const = rb"(?<!reinterpret_cast<)\bconst (%b)" % qualifier
    found = [const + rb"%b\s*\*" % structure.name]
    for array, element in structure.arrays.items():
        names = _pointers_to(view.kernel, array) | _parameters_of(file, prefix + array)
        found += [const + rb"%b\s*\*\s*(?:__restrict\s+)?%b\b" % (element, name) for name in sorted(names)]
    return found


def _pointers_to(files: Iterable[File], array: bytes) -> set[bytes]:
    """Return the names that the kernel sets to an array of the tiling data or to an element's address."""
    field = rb"\w+(?:->|\.)%b" % array
    assigned = re.compile(rb"\b(\w+)\s*=\s*(?:%b|&%b\[[^;]*\])\s*;" % (field, field))
    return {match[1] for file in files for match in assigned.finditer(file.source.data)}


def _parameters_of(file: File, array: bytes) -> set[bytes]:
    """Return the names of this file's parameters that get an array or the address of an element."""
    passed = re.compile(r"%s|&%s\[.*\]" % ((re.escape(array.decode()),) * 2), re.DOTALL)
    places = {
        (call.name, at)
        for call in file.source.calls
        for at, value in enumerate(call.values)
        if passed.fullmatch(value)
    }
    found = set()
    for function in file.source.nodes("function_declarator"):
        name, listed = function.child_by_field_name("declarator"), function.child_by_field_name("parameters")
        parameters = listed.named_children if listed is not None else []
        for called, at in places:
            if name is not None and file.source.text_of(name) == called and at < len(parameters):
                found.add(re.split(r"\W+", file.source.text_of(parameters[at]).strip())[-1].encode())
    return found


def _spans(file: File, pattern: bytes, begin: int = 0) -> list[tuple[int, int]]:
    """Return where the first group of a pattern is, from a byte on."""
    return [match.span(1) for match in re.compile(pattern).finditer(file.source.data, begin)]


def _edit(file: File, span: tuple[int, int], text: bytes) -> FileEdit:
    return file.edit(Edit(*span, text.decode()))

"""What the compiler of devices refuses and that of hosts takes, found in a module that is not optimised yet.

An explicit cast between a float and an unsigned integer is "not allowed in aicore function" (bisheng of CANN
8.5, as generated kernels and published notes of several projects show). Conversions that no cast spells are
taken: published operators multiply floats by unsigned integers, and cast through signed ones where they cast.
Optimisation hides which is which: a signed value that cannot be negative is converted as an unsigned one.
Constants are no variables: the compiler has converted them before there is an instruction. Truth values are
left alone, since nothing published says what becomes of them.

Conversions from and to double are refused with or without a cast ("cast to/from double precision floating
variable": published notes of three projects; no kernel of cann-ops has one).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ascend_gym.core.cpp_text import code_only
from npu_daemon.simulator.kernel_ir.debug_info import Place, column_of, places_of
from npu_daemon.simulator.kernel_ir.intrinsics import is_library_function

MARK = "asim_aicore"  # section of the functions of kernels, where programs are compiled to be looked at
LOOK, LOOK_AT_MARKED = "--look", "--look-at-marked"  # what emit.py is asked to do

_CAST = re.compile(r"  %\S+ = (uitofp|fptoui) (?!i1 )\S+ .+ to \S+, !dbg !(\d+)")
_CONVERSION = r"  %\S+ = (?:fpext|fptrunc|[su]itofp|fpto[su]i)(?: [a-z]+)* "
_DOUBLE = re.compile(rf"{_CONVERSION}(?:\w+ \S+ to double|double \S+ to \w+), !dbg !(\d+)")
_CALL = re.compile(r"  (?:%\S+ = )?(?:tail )?call [^@]*@([\w.$-]+)\(.*, !dbg !(\d+)")
_HIDDEN = re.compile(r"= (?:uitofp|fptoui) | to double\b|= fp\w+ double ")
_DECLARED = re.compile(r"^declare [^@]*@(?:llvm\.)?(\w+)[.\w]*\(", re.MULTILINE)
_DEFINED = re.compile(r"^define [^@]*@([\w.$-]+)\(", re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = (.+)", re.MULTILINE)
_STANDARD = re.compile(r"_ZNSt(?:3__1)?(?:6__math)?(\d{1,2})(?=[a-z])")
_CAST_MESSAGE = (
    "cast between floating and unsigned integer variable, which kernels do not have: "
    "cast through a signed one, static_cast<float>(static_cast<int32_t>(n))"
)
_DEPENDENT = r"(?:typename\s+)?[A-Z]\w*(?:::\w+)*"  # a type that a template or a macro names
_FLOATING = r"float|half|bfloat16_t"
_SPELT = re.compile(  # in front of what is cast
    rf"(?:static_cast\s*<\s*(?:const\s+)?(?:{_FLOATING}|{_DEPENDENT})\s*>\s*\("
    rf"|\(\s*(?:const\s+)?(?:{_FLOATING}|{_DEPENDENT})\s*\)"
    rf"|\b(?:{_FLOATING}|T)\s*[({{])\s*\Z"
)
_LONGEST_CAST = 400  # characters, with blanks
_DOUBLE_MESSAGE = (
    "conversion from or to double, which kernels do not have: use float, and literals that end with f"
)


class Offence(NamedTuple):
    """Something that the compiler of devices refuses.

    Attributes:
        message: what it is and what to write in its place.
        place: file and line.
        column: where what is converted begins, counted from 1 on; 0 where it is not known.
        if_spelt: whether it counts only where the source spells a cast to a float.
    """

    message: str
    place: Place
    column: int = 0
    if_spelt: bool = False


def spells_cast(text: str, line: int, column: int) -> bool:
    """Whether a source spells a cast to a float in front of what is converted.

    Args:
        text: of the source.
        line: where what is converted begins, counted from 1 on.
        column: in bytes, counted from 1 on.
    """
    lines = text.split("\n")[:line]
    if len(lines) < line:
        return False
    characters = len(lines[-1].encode()[: column - 1].decode(errors="ignore"))
    end = sum(len(each) + 1 for each in lines[:-1]) + characters
    return _SPELT.search(code_only(text)[max(0, end - _LONGEST_CAST) : end]) is not None


def may_offend(text: str, *, with_host_code: bool) -> bool:
    """Whether an optimised module has to be looked at before optimisation, too.

    Args:
        text: as LLVM prints the optimised module.
        with_host_code: whether a program's main function is in it, which may call the C library.
    """
    if _HIDDEN.search(text):
        return True
    return with_host_code and any(map(is_library_function, _DECLARED.findall(text)))


def offences(text: str, *, marked_only: bool) -> Iterator[Offence]:
    """Find what the compiler of devices refuses.

    Args:
        text: of a module that is not optimised.
        marked_only: whether only the functions in the section ``MARK`` are of kernels.
    """
    nodes = dict(_NODE.findall(text))
    own = set(_DEFINED.findall(text))
    looked_at = False
    for line in text.split("\n"):
        if line.startswith("define "):
            looked_at = not marked_only or f'section "{MARK}"' in line
        elif looked_at and (found := _in_line(line, own, library_too=marked_only)):
            message, number, if_spelt = found
            column = column_of(nodes, number)
            yield from (Offence(message, place, column, if_spelt) for place in places_of(nodes, number)[:1])


def _in_line(line: str, own: set[str], *, library_too: bool) -> tuple[str, str, bool] | None:
    """Return what is refused, the number of its place, and whether a cast must be spelt."""
    cast = _CAST.match(line)
    if cast is not None:
        return _CAST_MESSAGE, cast[2], cast[1] == "uitofp"
    double = _DOUBLE.match(line)
    if double is not None:
        return _DOUBLE_MESSAGE, double[1], False
    call = _CALL.match(line) if library_too else None
    name = _host_function(call[1], own) if call is not None else None
    if call is None or name is None:
        return None
    message = f"the kernel calls {name} of the C library, which kernels do not have: use vector instructions"
    return message, call[2], False


def _host_function(symbol: str, own: set[str]) -> str | None:
    """Return the name of the function of the C library that is called, be it by its name in C++."""
    standard = _STANDARD.match(symbol)
    if standard is not None:
        begin = standard.end()
        name = symbol[begin : begin + int(standard[1])]
    elif symbol in own:
        return None
    else:
        name = symbol
    return name if is_library_function(name) else None

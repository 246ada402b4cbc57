"""The text of a module, as LLVM prints it, taken apart into its top-level entities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from npu_daemon.simulator.kernel_ir.refusal import RefusedIr

_QUOTED = re.compile(r'([%@$]?)("[^"]*")')
_TYPE_LINE = re.compile(r"(%[\w.$-]+) = type (.+)")
_NODE_LINE = re.compile(r"!(\d+) = (.+)")
_IGNORED = (";", "$", "source_filename", "attributes #", "!")
_DATA_LAYOUT, _TRIPLE = "target datalayout = ", "target triple = "


@dataclass
class FunctionText:
    """A definition: its ``define`` line without the brace, and the lines between the braces."""

    header: str
    lines: list[str]


@dataclass
class ModuleText:
    """What a module consists of; names that had quotation marks are replaced by plain ones.

    Attributes:
        data_layout: with its quotation marks.
        triple: with its quotation marks.
        types: bodies of named structures.
        variables: lines of global variables and constants, and of aliases.
        functions: definitions.
        declarations: ``declare`` lines.
        nodes: metadata nodes by number.
    """

    data_layout: str = ""
    triple: str = ""
    types: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    functions: list[FunctionText] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)


def with_plain_names(text: str, *, symbols_too: bool = True) -> str:
    """Return the text with structures named ``%asim.type.N`` where their names had quotation marks.

    Args:
        text: of a module.
        symbols_too: whether functions and variables must have plain names.

    Raises:
        RefusedIr: a function or variable has a name that needs quotation marks.
    """
    numbers: dict[str, str] = {}

    def plain(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind == "%":
            return numbers.setdefault(name, f"%asim.type.{len(numbers)}")
        if kind and symbols_too:
            raise RefusedIr(f"the kernel names a function or variable {name[:80]}: use letters and digits")
        return found[0]

    return _QUOTED.sub(plain, text)


def split_module(text: str) -> ModuleText:
    """Take the text of a module apart.

    Raises:
        RefusedIr: a line begins in no way that is known here.
    """
    module = ModuleText()
    lines = iter(with_plain_names(text).split("\n"))
    for line in lines:
        _take(module, line, lines)
    return module


def _take(module: ModuleText, line: str, rest: Iterator[str]) -> None:
    if line.startswith("define "):
        module.functions.append(_function(line, rest))
    elif line.startswith("@"):
        module.variables.append(line)
    elif line.startswith("declare "):
        module.declarations.append(line)
    elif node := _NODE_LINE.fullmatch(line):
        module.nodes[node[1]] = node[2]
    elif structure := _TYPE_LINE.fullmatch(line):
        module.types[structure[1]] = structure[2]
    elif line.startswith(_DATA_LAYOUT):
        module.data_layout = line.removeprefix(_DATA_LAYOUT)
    elif line.startswith(_TRIPLE):
        module.triple = line.removeprefix(_TRIPLE)
    elif line.startswith("module asm"):
        raise RefusedIr("the kernel contains assembly outside functions: use Ascend C only")
    elif line and not line.startswith(_IGNORED):
        raise RefusedIr(f"the kernel contains what is not known here: {line[:80]}")


def _function(header: str, rest: Iterator[str]) -> FunctionText:
    if not header.endswith(" {"):
        raise RefusedIr(f"the kernel contains what is not known here: {header[:80]}")
    lines: list[str] = []
    for line in rest:
        if line == "}":
            return FunctionText(header[:-2], lines)
        if line:
            lines.append(line)
    raise RefusedIr("the kernel contains a function without an end")

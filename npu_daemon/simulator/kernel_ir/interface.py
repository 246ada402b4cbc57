"""The kernel interface: the functions that the run program exports, with their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from npu_daemon.simulator.kernel_ir.ir_text import with_plain_names
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.signatures import FunctionParameter, Signature
from npu_daemon.simulator.kernel_ir.symbols import read_definition

_TYPE_LINE = re.compile(r"^(%[\w.$-]+) = type (.+)$", re.MULTILINE)
_DEFINITION = re.compile(r"^define .*? @([\w.$-]+)\(.*$", re.MULTILINE)
_GROUP = re.compile(r" #(\d+)(?= |$)")
_ATTRIBUTES = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)
_NO_MEMORY = " memory(none) "
_OUTSIDE = re.compile(r"^(?:define|attributes|%).*$", re.MULTILINE)  # the insides of functions are indented
_BITCODE_SECTION = b".llvmbc"  # -fembed-bitcode


def modules_of(objects: Iterable[Path]) -> Iterator[str]:
    """Yield what object files were made of, from those that have it with them.

    Of the LLVM IR these are types, attributes and the first line of each function: a hundredth of it.
    """
    import llvmlite.binding as llvm  # loads a large library, for the build of the toolchain alone

    for file in objects:
        sections = llvm.object_file.ObjectFileRef.from_data(file.read_bytes()).sections()
        for section in sections:
            if section.name() == _BITCODE_SECTION:
                text = str(llvm.parse_bitcode(section.data(), llvm.create_context()))
                yield "\n".join(_OUTSIDE.findall(text))


def interface_texts(modules: Iterable[str], exported: Set[str]) -> dict[str, str]:
    """Return the type of each exported function, as ``Interface.of_texts`` reads it.

    Args:
        modules: LLVM IR of the sources of the runtime, as text.
        exported: symbols that kernels may link to.

    Sizes of objects stand in the place of their types, whose names mean nothing in other modules.
    """
    texts = {}
    for text in modules:
        plain = with_plain_names(text, symbols_too=False)
        types = TypeTable(dict(_TYPE_LINE.findall(plain)))
        for found in _DEFINITION.finditer(plain):
            if found[1] in exported:
                definition = read_definition(found[0])
                texts[found[1]] = _text(definition, types)
    return dict(sorted(texts.items()))


def constant_functions(modules: Iterable[str], exported: Set[str]) -> list[str]:
    """Return the exported functions that touch no memory: each call of a block gets the same answer.

    The optimiser moves such calls out of loops, and with them their places.
    """
    names = set()
    for text in modules:
        plain = with_plain_names(text, symbols_too=False)
        groups = {found[1] for found in _ATTRIBUTES.finditer(plain) if _NO_MEMORY in found[2]}
        for found in _DEFINITION.finditer(plain):
            if found[1] in exported and groups & set(_GROUP.findall(found[0].removesuffix(" {"))):
                names.add(found[1])
    return sorted(names)


def _text(signature: Signature, types: TypeTable) -> str:
    parameters = [_parameter(parameter, types) for parameter in signature.parameters]
    dots = ["..."] if signature.variadic else []
    result = f"{signature.result_extension} {signature.result}".lstrip()
    return f"{result} ({', '.join([*parameters, *dots])})"


def _parameter(parameter: FunctionParameter, types: TypeTable) -> str:
    marks = [parameter.type, parameter.extension]
    marks += [f"byval({types.occupied_bytes(parameter.copied)})"] if parameter.copied else []
    marks += [f"sret({types.occupied_bytes(parameter.result_of)})"] if parameter.result_of else []
    marks += [f"dereferenceable({parameter.readable_bytes})"] if parameter.readable_bytes else []
    return " ".join(filter(None, marks))

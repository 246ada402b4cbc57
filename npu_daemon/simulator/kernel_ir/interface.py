"""The kernel interface: the functions that the run program exports, with their types as the compiler has them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from npu_daemon.simulator.kernel_ir.ir_text import split_module
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.signatures import Parameter, Signature
from npu_daemon.simulator.kernel_ir.symbols import read_definition


def interface_texts(modules: Iterable[str], exported: Set[str]) -> dict[str, str]:
    """Return the type of each exported function, as ``Interface.of_texts`` reads it.

    Args:
        modules: LLVM IR of the sources of the runtime, as text.
        exported: symbols that kernels may link to.

    Sizes of objects stand in the place of their types, whose names mean nothing in other modules.
    """
    texts = {}
    for text in modules:
        module = split_module(text)
        types = TypeTable(module.types)
        for function in module.functions:
            definition = read_definition(function.header)
            if definition is not None and definition[0] in exported:
                texts[definition[0]] = _text(definition[1], types)
    return dict(sorted(texts.items()))


def _text(signature: Signature, types: TypeTable) -> str:
    parameters = [_parameter(parameter, types) for parameter in signature.parameters]
    dots = ["..."] if signature.variadic else []
    result = f"{signature.result_extension} {signature.result}".lstrip()
    return f"{result} ({', '.join([*parameters, *dots])})"


def _parameter(parameter: Parameter, types: TypeTable) -> str:
    marks = [parameter.type, parameter.extension]
    marks += [f"byval({types.occupied_bytes(parameter.copied)})"] if parameter.copied else []
    marks += [f"sret({types.occupied_bytes(parameter.result_of)})"] if parameter.result_of else []
    marks += [f"dereferenceable({parameter.readable_bytes})"] if parameter.readable_bytes else []
    return " ".join(filter(None, marks))

"""Types of functions: how declarations and calls print them, and what the kernel interface says they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from npu_daemon.simulator.kernel_ir.instructions import TYPE, VALUE
from npu_daemon.simulator.kernel_ir.ir_types import TypeTable
from npu_daemon.simulator.kernel_ir.refusal import RefusedIr

# What says something about values, for the optimiser: dropped, because callers could say what is not so.
_DROPPED = (
    r"noundef|nonnull|readonly|readnone|writeonly|noalias|nocapture|nofree|returned|immarg|noext|writable"
    r"|dead_on_unwind|dead_on_return(?:\(\d+\))?|captures\([^()]*\)|dereferenceable(?:_or_null)?\(\d+\)"
    r"|range\([^()]*\)|nofpclass\([^()]*\)|initializes\((?:\([^()]*\)(?:, )?)*\)|align \d+|zeroext|signext"
)
_BY_COPY = rf"(?:byval|sret)\((?:{TYPE}|\d+)\)"
_ATTRIBUTES = rf"(?: (?:{_DROPPED}|{_BY_COPY}))*"
RESULT = rf"(?P<marks>(?:(?:{_DROPPED}) )*)(?P<type>void|{TYPE})"
_PARAMETER = re.compile(
    rf"(?:(?P<dots>\.\.\.)|(?P<type>{TYPE})(?P<marks>{_ATTRIBUTES})(?: (?P<value>{VALUE}))?)(?:, |\Z)"
)
_COPIED = re.compile(r"\b(byval|sret)\(([^()]*)\)")
_EXTENSION = re.compile(r"\b(zeroext|signext)\b")
_READ = re.compile(r"\bdereferenceable\((\d+)\)")
_SIGNATURE = re.compile(rf"{RESULT} \((?P<parameters>.*)\)")
_REFUSED_MARK = re.compile(r"\b(inreg|nest|inalloca|preallocated|swift\w+|byref|elementtype|metadata)\b")


class FunctionParameter(NamedTuple):
    """A parameter, or an argument with its value.

    Attributes:
        type: as printed.
        extension: ``zeroext``, ``signext`` or nothing.
        copied: type of the object that the callee gets a copy of (``byval``), or nothing.
        result_of: type of the object that the callee makes (``sret``), or nothing.
        readable_bytes: how much behind a pointer is said to be readable.
        value: of an argument.
    """

    type: str
    extension: str = ""
    copied: str = ""
    result_of: str = ""
    readable_bytes: int = 0
    value: str = ""


class Signature(NamedTuple):
    """What a function takes and returns."""

    result: str
    result_extension: str
    parameters: tuple[FunctionParameter, ...]
    variadic: bool

    @property
    def plain(self) -> tuple[str, tuple[str, ...]]:
        """The types alone: what calls by a pointer are told apart by."""
        return self.result, tuple(parameter.type for parameter in self.parameters)


@dataclass(frozen=True)
class KernelInterface:
    """The functions that a kernel may take from the run program.

    Attributes:
        functions: by symbol.
        headers: files whose functions may call them, and which each may (``origins.Headers``); ``None``: any,
            for modules that were written by hand.
        constants: symbols of functions that any function may call: they do no work.
    """

    functions: Mapping[str, Signature]
    headers: Mapping[str, Set[str]] | None = None
    constants: Set[str] = frozenset()

    @classmethod
    def of_texts(
        cls,
        texts: Mapping[str, str],
        headers: Mapping[str, Set[str]] | None = None,
        constants: Iterable[str] = (),
    ) -> KernelInterface:
        """Return the interface of function types as text, ``RESULT (TYPE attributes, ...)``, by symbol."""
        return cls(_ReadWhenUsed(texts), headers, frozenset(constants))


class _ReadWhenUsed(Mapping[str, Signature]):
    """Signatures by symbol, each read from its text when it is first asked for: a kernel uses a few."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._read: dict[str, Signature] = {}

    def __getitem__(self, symbol: str) -> Signature:
        if symbol not in self._read:
            self._read[symbol] = read_signature(self._texts[symbol])
        return self._read[symbol]

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def read_signature(text: str) -> Signature:
    """Return the signature in ``RESULT (PARAMETERS)``."""
    found = _SIGNATURE.fullmatch(text)
    if found is None:
        raise RefusedIr(f"the kernel has a function of a type that is not known here: {text[:80]}")
    return signature_of(found["marks"], found["type"], found["parameters"])


def signature_of(result_marks: str, result: str, parameters: str) -> Signature:
    """Return the signature of a printed result and printed parameters."""
    read, variadic = read_parameters(parameters)
    return Signature(result, _extension(result_marks), read, variadic)


def read_parameters(text: str) -> tuple[tuple[FunctionParameter, ...], bool]:
    """Return printed parameters or arguments, and whether dots follow them."""
    parameters: list[FunctionParameter] = []
    position = 0
    while position < len(text):
        found = _PARAMETER.match(text, position)
        if found is None:
            raise _unknown(text[position:])
        position = found.end()
        if found["dots"]:
            if position < len(text):
                raise _unknown(text)
            return tuple(parameters), True
        parameters.append(_parameter(found["type"], found["marks"], found["value"] or ""))
    return tuple(parameters), False


def _parameter(type_: str, marks: str, value: str) -> FunctionParameter:
    if not marks:
        return FunctionParameter(type_, value=value)
    copied = dict(_COPIED.findall(marks)) if "byval(" in marks or "sret(" in marks else {}
    readable = _READ.search(marks)
    return FunctionParameter(
        type_,
        _extension(marks),
        copied.get("byval", ""),
        copied.get("sret", ""),
        int(readable[1]) if readable else 0,
        value,
    )


def same_for_calls(used: Signature, declared: Signature, types: TypeTable) -> bool:
    """Whether code compiled for one signature can call a function of the other."""
    if (used.result, used.result_extension, used.variadic) != (
        declared.result,
        declared.result_extension,
        declared.variadic,
    ) or len(used.parameters) != len(declared.parameters):
        return False
    return all(
        (mine.type, mine.extension) == (its.type, its.extension)
        and _bytes(mine.copied, types) == _bytes(its.copied, types)
        and _bytes(mine.result_of, types) == _bytes(its.result_of, types)
        for mine, its in zip(used.parameters, declared.parameters, strict=True)
    )


def _bytes(type_: str, types: TypeTable) -> int:
    """Return the size of an object; the interface gives it as a number."""
    if not type_:
        return -1
    return int(type_) if type_.isdigit() else types.occupied_bytes(type_)


def _extension(marks: str) -> str:
    found = _EXTENSION.search(marks)
    return found[1] if found else ""


def _unknown(text: str) -> RefusedIr:
    mark = _REFUSED_MARK.search(text.partition(",")[0])
    what = f"parameters passed as {mark[1]}" if mark else f"a parameter that is not known here ({text[:60]})"
    return RefusedIr(f"the kernel uses {what}: pass values or pointers")

"""What tiling programs may use: the host library, containers, strings, mathematics and memory.

It looks at the LLVM IR that their sources became, where macros, attributes and labels have done what they do:
each function and variable that a module takes from elsewhere has to be on a list, and so has each intrinsic;
assembly is refused. That a tiling program does no harm is for the sandbox to see to, in which it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import PurePosixPath

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.own_sources import SOURCES

Place = tuple[str, int]  # file and line

DEBUG_PLACE = re.compile(r"!dbg !(\d+)")  # of an instruction: the number of its source place
_LOCATION = re.compile(r"DILocation\(line: (\d+)")
_REFERENCE = r"\b{}: !(\d+)"
_FILE_NAME = re.compile(r'DIFile\(filename: "([^"]*)"')
_MAX_STEPS = 64

_LISTS = SOURCES / "support" / "host_symbols.txt"
_MATHEMATICS, _INTRINSICS = "mathematics", "intrinsics"
_SHOWN = 5
_QUOTED = re.compile(r'"[^"]*"')  # LLVM writes quotation marks and control characters inside as \22, \0A
_NAME = r'@("[^"]*"|[-\w.$]+)'
_SYMBOL = re.compile(_NAME)
_UP_TO_NAME = r'(?:[^"@]|"[^"]*")*'
_FUNCTION = re.compile(rf"(declare|define) ({_UP_TO_NAME}){_NAME}\(")
_GLOBAL = re.compile(rf"{_NAME} = (.*)")
_ASSEMBLY = re.compile(r"(?<![\w.$%@-])asm(?![\w.$-])")
_KEPT_ELSEWHERE = re.compile(r"\bavailable_externally\b")
_EXTERNAL = re.compile(r"\b(?:external|extern_weak|available_externally)\b")
_DEFINED = re.compile(r"\b(?:global|constant|alias)\b")
_INTRINSIC = "llvm."
_MANGLED = "_Z"
# Names of the standard library, as they are mangled: type information, operator new and delete, exceptions,
# and the classes and functions behind containers, strings, streams to strings and messages.
_STANDARD = re.compile(
    r"_ZT[VTIS]"
    r"|_Z(?:n|d)[wal]"
    r"|_ZN?K?St(?:9exception|9bad_alloc|20bad_array_new_length|8bad_cast|10bad_typeid|9type_info|7nothrow"
    r"|9terminatev|11logic_error|13runtime_error|12domain_error|16invalid_argument|12length_error|12out_of_range"
    r"|11range_error|14overflow_error|15underflow_error|13bad_exception|18uncaught_exceptionv"
    r"|19uncaught_exceptionsv)"
    r"|_ZNK?St3__1(?:"
    r"12basic_string|13basic_ostream|13basic_istream|14basic_iostream|15basic_streambuf|15basic_stringbuf"
    r"|19basic_[io]stringstream|18basic_stringstream|9basic_ios|8ios_base|6locale(?!C[12]E(?:PK|RK))|5ctypeIc|7codecvtI"
    r"|7num_[pg]et|8numpunctIc|14__num_put|14__num_get|5__num|4cout|4cerr|4clog"
    r"|14__shared_count|19__shared_weak_count|17bad_function_call|20bad_optional_access|18bad_variant_access"
    r"|12bad_any_cast|12bad_weak_ptr|12__next_prime|9to_string|[4-6]sto[a-z]{1,3}|6__sort|13__hash_memory|8to_chars"
    r"|10from_chars|22__libcpp_verbose_abort|plI)"
)
_RUNTIME = re.compile(r"__cxa_\w+|__gxx_personality_v0|_Unwind_Resume|__dynamic_cast")


def place_of(lines: Sequence[str], number: int, sources: Sources) -> Place | None:
    """Return the place in ``sources`` that an instruction came from, through inlined calls, or ``None``.

    Args:
        lines: a module as LLVM prints it.
        number: of the instruction's line, from 0.
        sources: what was compiled.
    """
    debug = DEBUG_PLACE.search(lines[number])
    nodes = _nodes(lines) if debug else {}
    location = debug[1] if debug else None
    paths = {file.path for file in sources.files}
    for _ in range(_MAX_STEPS):
        node = nodes.get(location or "", "")
        found = _LOCATION.search(node)
        if found is None:
            return None
        file = _file_of(nodes, _reference(node, "scope"))
        if file in paths:
            return file, int(found[1])
        location = _reference(node, "inlinedAt")
    return None


def _nodes(lines: Sequence[str]) -> dict[str, str]:
    """Return the content of each numbered piece of metadata."""
    rows = (line.partition(" = ") for line in lines if line.startswith("!"))
    return {name.removeprefix("!"): content for name, _, content in rows}


def _file_of(nodes: dict[str, str], scope: str | None) -> str | None:
    """Return the source file of a scope, relative to where the compiler ran."""
    node = nodes.get(scope or "", "")
    name = _FILE_NAME.search(nodes.get(_reference(node, "file") or "", ""))
    return PurePosixPath(name[1]).as_posix() if name else None


def _reference(node: str, field: str) -> str | None:
    found = re.search(_REFERENCE.format(field), node)
    return found[1] if found else None


@dataclass(frozen=True)
class _Module:
    """What a module of LLVM IR takes and has."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its lines; nothing that a source says can begin one."""
        return self.text.split("\n")

    def outside(self) -> set[str]:
        """Return the names that are defined elsewhere."""
        return {name for name, here in self._names() if not here}

    def inside(self) -> set[str]:
        """Return the names that are defined here."""
        return {name for name, here in self._names() if here}

    def _names(self) -> Iterator[tuple[str, bool]]:
        for line in self.lines:
            if line.startswith(("declare ", "define ")):
                found = _FUNCTION.match(line)
                if found is None:
                    raise ValueError(f"a function that cannot be read: {line[:80]}")
                yield found[3], found[1] == "define" and not _KEPT_ELSEWHERE.search(_QUOTED.sub("", found[2]))
            elif line.startswith("@"):
                yield self._variable(line)

    def _variable(self, line: str) -> tuple[str, bool]:
        found = _GLOBAL.match(line)
        kind = _QUOTED.sub("", found[2]) if found else ""
        if found is None or not _DEFINED.search(kind):
            raise ValueError(f"a symbol of an unusual kind: {line[:80]}")
        return found[1], _EXTERNAL.search(kind) is None

    def assembly(self) -> int | None:
        """Return the number of the first line with assembly, or ``None``."""
        for number, line in enumerate(self.lines):
            if "asm" in line and _ASSEMBLY.search(_QUOTED.sub('""', line)):
                return number
        return None

    def uses_of(self, names: frozenset[str]) -> dict[str, int]:
        """Return the number of the first instruction that names each symbol, for those that some does."""
        found: dict[str, int] = {}
        for number, line in enumerate(self.lines):
            if line.startswith("  "):
                for name in names.intersection(_SYMBOL.findall(line)):
                    found.setdefault(name, number)
        return found


def refused_modules(texts: list[str], offered: frozenset[str], sources: Sources) -> Failure | None:
    """Return why modules are not linked with each other and the host library, or ``None``.

    Args:
        texts: LLVM IR as the compiler printed it.
        offered: names of the host library.
        sources: for diagnostics.
    """
    modules = [_Module(text) for text in texts]
    for module in modules:
        line = module.assembly()
        if line is not None:
            return _refusal("inline assembly", place_of(module.lines, line, sources))
    try:
        inside = set().union(*(module.inside() for module in modules))
        outside = sorted(set().union(*(module.outside() for module in modules)) - inside)
    except ValueError as error:
        return _refusal(str(error), None)
    refused = [name for name in outside if not is_allowed(name, offered) and not _is_unknown(name, offered)]
    if not refused:
        return None
    shown = ", ".join(name.strip('"') for name in refused[:_SHOWN])
    return _refusal(shown, _first_place(modules, refused, sources))


def is_allowed(name: str, offered: frozenset[str]) -> bool:
    """Whether tiling programs may take a symbol from elsewhere."""
    if name.startswith(_INTRINSIC):
        return _is_listed_intrinsic(name.removeprefix(_INTRINSIC))
    if name in _library_functions():
        return True
    return name in offered and (
        not _is_standard(name) or any(each.match(name) for each in (_STANDARD, _RUNTIME))
    )


def _is_unknown(name: str, offered: frozenset[str]) -> bool:
    """Whether nobody defines a symbol, so that the linker can say more about it."""
    return name not in offered and name.startswith(_MANGLED) and not _is_standard(name)


def _is_standard(name: str) -> bool:
    return re.match(r"_Z(?:T[A-Z]|GV)?N?[rVK]*S[tabsiod]", name) is not None or not name.startswith(_MANGLED)


def _is_listed_intrinsic(name: str) -> bool:
    """Whether an intrinsic is on the list, with any suffixes for its types."""
    words = name.split(".")
    return any(".".join(words[:count]) in _intrinsics() for count in range(1, len(words) + 1))


@cache
def _library_functions() -> frozenset[str]:
    names = {name for group, names in _lists().items() if group != _INTRINSICS for name in names}
    return frozenset(names | {f"{name}{suffix}" for name in _lists()[_MATHEMATICS] for suffix in "fl"})


@cache
def _intrinsics() -> frozenset[str]:
    return frozenset(_lists()[_INTRINSICS])


@cache
def _lists() -> dict[str, tuple[str, ...]]:
    groups = _LISTS.read_text(encoding="ascii").strip().split("\n\n")[1:]
    headed = (group.split("\n", 1) for group in groups)
    return {heading.partition(":")[0]: tuple(names.split()) for heading, names in headed}


def _first_place(modules: list[_Module], names: list[str], sources: Sources) -> Place | None:
    """Return where the first of ``names`` is used of which that can be told; only a few are tried."""
    used = [(module, module.uses_of(frozenset(names))) for module in modules]
    tries = ((module, lines[name]) for name in names for module, lines in used if name in lines)
    places = (place_of(module.lines, line, sources) for module, line in islice(tries, _SHOWN))
    return next((place for place in places if place is not None), None)


def _refusal(what: str, place: Place | None) -> Failure:
    message = (
        f"the host code uses {what}: a tiling program may use the operator interface, containers, strings, "
        "mathematics and memory; it may not touch files or processes, nor decide by time or chance"
    )
    file, line = place or (None, None)
    diagnostic = Diagnostic(phase=Phase.GUARD, message=message, file=file, line=line)
    return Failure(Status.GUARD_REJECTED, (diagnostic,))

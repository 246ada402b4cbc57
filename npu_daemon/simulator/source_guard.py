"""What candidate sources may not contain: ways round the simulator's accounting and out of its process.

A first net, not a sandbox: the process limits and the trace floors stand behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from posixpath import normpath

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.source_attributes import HARMLESS_ATTRIBUTES, refused_attributes
from npu_daemon.simulator.source_text import ambiguous_literals, bare_code, without_comments

_INCLUDE_TREE = Path(__file__).parent / "include"
# Blanks of one line; patterns that run over lines would take quadratic time on empty ones.
_INCLUDE = re.compile(
    r'^[^\S\n]*(?:#|%:)[^\S\n]*(?:include|include_next|import)\b[^\S\n]*([<"]([^>"\n]*)|[^<"\n]*)',
    re.MULTILINE,
)
_OPEN_NAME = re.compile(r"#[^\S\n]*(?:include|include_next|import)\b[^\S\n]*<[^>\n]*$", re.MULTILINE)
_MACRO = re.compile(r"^[^\S\n]*#[^\S\n]*define\b[^\S\n]*([\w$]+)([^\n]*)", re.MULTILINE)
_BRACKET = re.compile(r"[()\[\]]")
_CLOSED_BY = {"(": ")", "[": "]"}
_STATEMENT = re.compile(r"[^;{}()]+")
_LINKER_END = re.compile(r"\bend\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+((?:\\\n|[^\n])*)", re.MULTILINE)
_INSIDE = re.compile(r"\basim\b(?:\s*::\s*\w+)*|\basim_\w+|\bASIM_\w+")
_LINKER = "names of the linker"
_FORBIDDEN = {
    r"\b(?:asm|__asm|__asm__)\b": "inline assembly",
    r"\bno_sanitize\w*|\bno_instrument\w*|\bno_profile\w*": "switching the instrumentation off",
    r"#\s*pragma\b(?!\s+(?:once|pack|unroll|bisheng)\b)|\b_Pragma\b": "compiler pragmas",
    r"#\s*(?:line\b|\d)": "line numbers of its own",
    r"\b__has_include(?:_next)?\b|\b__(?:DATE|TIME|TIMESTAMP)__": "questions about the build",
    r"\b__builtin_ia32_\w+|\b_mm\d*_\w+|\b__m(?:128|256|512)\w*": "vector code of the host",
    r"\bvector_size\b|\bexperimental\b": "vector code of the host",
    r"\b__?(?:get_)?(?:rdtsc|rdpmc|rdpid|rdrand|rdseed|cpuid|xgetbv|xbegin)\w*": "registers of the host",
    r"\b__builtin_(?:return|frame|extract_return)_\w+": "looking for the code that called it",
    r"\b__sanitizer\w*|\b__asan\w*|\b__wrap_\w+": "the names of the instrumentation",
    r"\b_Z(?:N?[KV]*\d|NSt|St|T[A-Z]|G[A-Z])\w*": "names as the linker writes them",
    r"\b(?:__bss_start|_{0,2}edata|_{0,2}etext|_end|__dso_handle|__TMC_END__|_DYNAMIC|_GLOBAL_OFFSET_TABLE_)"
    r"\b": _LINKER,
}
_INSIDE_NAME = "the inside of the simulator"
_MACHINE_INCLUDE = r"/|x86|\w*intrin\b|arm_|cpuid|experimental/|dlfcn"
_KERNEL_INCLUDE = re.compile(
    rf"(?:{_MACHINE_INCLUDE}|(?:.*/)?asim/|sys/(?!types\.h)|unistd|fcntl|thread|fstream)"
)
_HOST_INCLUDE = re.compile(rf"(?:{_MACHINE_INCLUDE}|spawn)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PASTE = "##"
_LINE_MARKER = re.compile(r'^# \d+ "([^"]*)"', re.MULTILINE)
_FLAG = re.compile(r"-D\w+(?:=[\w.]*)?|-O[0-3]")


def refused_source(sources: Sources, phase: Phase) -> Failure | None:
    """Return why sources are not built, or ``None``; the message names file, line and what was found."""
    banned = _KERNEL_INCLUDE if phase is Phase.BUILD_KERNEL else _HOST_INCLUDE
    codes = {file.path: bare_code(file.text) for file in sources.files}
    macros = frozenset(found[1] for code in codes.values() for found in _MACRO.finditer(code))
    for file in sources.files:
        if file.path.startswith("asim"):
            return _refusal(file, 0, f"a file of the name {file.path}")
        for line, what in ambiguous_literals(file.text):
            return _refusal(file, line, what)
        text, code = without_comments(file.text), codes[file.path]
        for position, what in _banned_includes(text, banned):
            return _refusal(file, _line(text, position), what)
        for position, what in _forbidden(code, macros):
            return _refusal(file, _line(code, position), what)
    return None


def _banned_includes(text: str, banned: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield position and description of every include that candidates may not have."""
    for include in _INCLUDE.finditer(text):
        if include[2] is None:
            yield include.start(), f"#include of a macro ({include[1].strip()})"
        elif banned.match(f"{normpath(include[2].strip())}/"):
            yield include.start(), f"#include of {include[2]}"


def _forbidden(code: str, macros: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Yield position and description of everything in bare code that candidates may not write."""
    for pattern, what in _FORBIDDEN.items():
        for found in re.finditer(pattern, code):
            yield found.start(), f"{what} ({found[0].strip()})"
    for found in _INSIDE.finditer(code):
        yield found.start(), f"{_INSIDE_NAME} ({found[0]})"
    for found in _OPEN_NAME.finditer(code):
        yield found.start(), f"a header name with a comment or quote in it ({found[0].strip()})"
    for statement in _STATEMENT.finditer(code):
        begin = statement[0].find("extern")
        if begin >= 0 and _LINKER_END.search(statement[0], begin):
            yield statement.start() + begin, f"{_LINKER} ({' '.join(statement[0].split())})"
    yield from refused_attributes(code, macros)


def needs_expansion(sources: Sources) -> bool:
    """Whether macros of the sources may make what a search of their text does not see.

    They can put names together, or open and close brackets, so that the content of an attribute is elsewhere.
    """
    codes = [bare_code(file.text) for file in sources.files]
    return any(
        _PASTE in code or not all(_is_balanced(found[2]) for found in _MACRO.finditer(code)) for code in codes
    )


def _is_balanced(body: str) -> bool:
    """Whether each bracket of a macro's body has its other half there."""
    opened = []
    for found in _BRACKET.finditer(body):
        if found[0] in _CLOSED_BY:
            opened.append(_CLOSED_BY[found[0]])
        elif not opened or opened.pop() != found[0]:
            return False
    return not opened


def refused_pasting(pasted: str, own_macros: str = "") -> Failure | None:
    """Return why sources are not built whose macros put forbidden names together, or ``None``.

    Macros of the simulator may expand to what candidates may not write; nothing else may.

    Args:
        pasted: the preprocessor's output, with its line markers.
        own_macros: text with further macros of the simulator.
    """
    code = bare_code(_candidate_lines(pasted))
    allowed = _simulator_expansions() | _expansions(own_macros)
    for _, what in _forbidden(code):
        if _squeezed(what) not in allowed:
            message = f"candidate sources may not contain {what}, put together by a macro: use Ascend C only"
            return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))
    return None


@cache
def _simulator_expansions() -> frozenset[str]:
    return frozenset().union(*map(_expansions, _header_texts()))


def _expansions(text: str) -> frozenset[str]:
    """Return what the macros of a text expand to that candidates may not write."""
    bodies = (found[1].replace("\\\n", "\n") for found in _DEFINE.finditer(text))
    return frozenset(_squeezed(what) for body in bodies for _, what in _forbidden(bare_code(body)))


def _squeezed(what: str) -> str:
    return "".join(what.split())


def _candidate_lines(preprocessed: str) -> str:
    """Return the lines of the candidate's files: no headers from elsewhere, nothing of our own."""
    pieces = _LINE_MARKER.split(preprocessed)
    return "\n".join(
        text
        for file, text in zip(pieces[1::2], pieces[2::2], strict=True)
        if not file.startswith(("/", "<", "asim_"))
    )


def refused_flags(flags: Sequence[str]) -> Failure | None:
    """Return why the candidate's own compiler flags are not used, or ``None``."""
    unknown = [flag for flag in flags if _FLAG.fullmatch(flag) is None]
    if unknown:
        message = f"expected build flags of the forms -DNAME, -DNAME=VALUE or -O0 to -O3, got {unknown}"
        return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))
    renaming = [flag for flag in flags if flag.startswith("-D") and _renames(flag.removeprefix("-D"))]
    if renaming:
        message = (
            f"build flags may not give another meaning to what the simulator's headers use: {renaming[0]}"
        )
        return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))
    return None


def _renames(definition: str) -> bool:
    """Whether a macro replaces a word of the simulator's headers, or has what candidates may not write."""
    words = _WORD.findall(definition)
    known = _known_words() | HARMLESS_ATTRIBUTES
    return any(_forbidden(" ".join(words))) or not known.isdisjoint(words[:1])


@cache
def _known_words() -> frozenset[str]:
    """Return every word of the simulator's headers."""
    return frozenset(word for text in _header_texts() for word in _WORD.findall(text))


def _header_texts() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(_INCLUDE_TREE.rglob("*")) if path.is_file()]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refusal(file: SourceFile, line: int, what: str) -> Failure:
    message = f"candidate sources may not contain {what}: use Ascend C only"
    diagnostic = Diagnostic(phase=Phase.GUARD, message=message, file=file.path, line=line)
    return Failure(Status.GUARD_REJECTED, (diagnostic,))

"""What candidate sources may not contain: ways round the simulator's accounting and out of its process.

A first net, not a sandbox: the process limits and the trace floors stand behind it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from npu_daemon.simulator.source_text import bare_code, without_comments

_INCLUDE_TREE = Path(__file__).parent / "include"
_INCLUDE = re.compile(r'^\s*(?:#|%:)\s*(?:include|include_next|import)\s*[<"]([^>"\n]+)', re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+((?:\\\n|[^\n])*)", re.MULTILINE)
_INSIDE = re.compile(r"\basim\b(?:\s*::\s*\w+)*|\basim_\w+|\bASIM_\w+")
_ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\s*\(\(|\[\s*\[")
_HARMLESS_ATTRIBUTES = frozenset(
    {
        *("aligned", "packed", "unused", "always_inline", "noinline", "visibility"),
        *("maybe_unused", "nodiscard", "noreturn", "fallthrough", "deprecated", "likely", "unlikely"),
    }
)
_FORBIDDEN = {
    r"\b(?:asm|__asm|__asm__)\b": "inline assembly",
    r"\bno_sanitize\w*|\bno_instrument\w*|\bno_profile\w*": "switching the instrumentation off",
    r"#\s*pragma\b(?!\s+(?:once|pack|unroll|bisheng)\b)|\b_Pragma\b": "compiler pragmas",
    r"#\s*(?:line\b|\d)": "line numbers of its own",
    r"\b__builtin_ia32_\w+|\b_mm\d*_\w+|\b__m(?:128|256|512)\w*|\bvector_size\b": "vector code of the host",
    r"\b__builtin_(?:return|frame|extract_return)_\w+": "looking for the code that called it",
    r"\b__sanitizer\w*|\b__asan\w*|\b__wrap_\w+": "the names of the instrumentation",
    r"\b_Z(?:N?[KV]*\d|NSt|St|T[A-Z]|G[A-Z])\w*": "names as the linker writes them",
    r"\b(?:__bss_start|_{0,2}edata|_{0,2}etext|_end|__dso_handle|__TMC_END__|_DYNAMIC|_GLOBAL_OFFSET_TABLE_)\b"
    r"|\bextern\b[^;{}()]*\bend\b": "names of the linker",
}
_INSIDE_NAME = "the inside of the simulator"
_ATTRIBUTE_NAME = "compiler attributes other than alignment, packing and inlining"
_KERNEL_ONLY_INCLUDE = re.compile(
    r"^(?:/|(?:.*/)?asim/|sys/|x86|immintrin|\w+mmintrin|arm_|unistd|dlfcn|fcntl|thread|fstream)"
)
_HOST_INCLUDE = re.compile(r"^(?:/|x86|immintrin|\w+mmintrin|arm_|dlfcn|spawn)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PASTE = "##"
_LINE_MARKER = re.compile(r'^# \d+ "([^"]*)"', re.MULTILINE)
_FLAG = re.compile(r"-D\w+(?:=[\w.]*)?|-O[0-3]")
# What host code could use to leave its process or to reach files that are not its own.
_HOST_CALLS = re.compile(
    r"^(?:_{0,2}(?:libc_|IO_)?(?:open|openat|fopen|freopen|mmap|truncate|creat|dlopen)(?:64)?(?:_2|_mode)?"
    r"|fdopen|popen|system|socket|connect|bind|accept|getrandom|getentropy"
    r"|v?fork|clone|exec[lv]p?e?|execvpe|fexecve|posix_spawnp?|dlm?open|dlsym|mprotect|ptrace|syscall"
    r"|unlink(?:at)?|rename(?:at)?|remove|rmdir|mkdir(?:at)?|symlink|link|chmod|chown|ftruncate|readlink"
    r"|f?d?opendir|memfd_create|t?g?kill|pthread_create|prctl|setsid|process_vm_\w+|sigaction|signal"
    r"|setitimer|timer_create)$"
)
_HOST_STREAMS = re.compile(
    r"^_ZNSt(?:13basic_filebuf|14basic_[io]fstream|13basic_fstream|10filesystem|13random_device)|^_ZNSt6thread"
)


def refused_source(sources: Sources, phase: Phase) -> Failure | None:
    """Return why sources are not built, or ``None``; the message names file, line and what was found."""
    banned = _KERNEL_ONLY_INCLUDE if phase is Phase.BUILD_KERNEL else _HOST_INCLUDE
    for file in sources.files:
        if file.path.startswith("asim"):
            return _refusal(file, "", 0, f"a file of the name {file.path}")
        text = without_comments(file.text)
        for include in _INCLUDE.finditer(text):
            if banned.match(f"{include[1].strip()}/"):
                return _refusal(file, text, include.start(), f"#include of {include[1]}")
        code = bare_code(file.text)
        for position, what in _forbidden(code):
            return _refusal(file, code, position, what)
    return None


def _forbidden(code: str) -> Iterator[tuple[int, str]]:
    """Yield position and description of everything in bare code that candidates may not write."""
    for pattern, what in _FORBIDDEN.items():
        for found in re.finditer(pattern, code):
            yield found.start(), f"{what} ({found[0].strip()})"
    for found in _INSIDE.finditer(code):
        yield found.start(), f"{_INSIDE_NAME} ({found[0]})"
    for position, attributes in _attributes(code):
        if any(_plain(name) not in _HARMLESS_ATTRIBUTES for name in _attribute_names(attributes)):
            yield position, f"{_ATTRIBUTE_NAME} ({attributes.strip()})"


def _attributes(code: str) -> Iterator[tuple[int, str]]:
    """Yield position and content of each attribute list, ``__attribute__((...))`` or ``[[...]]``."""
    for found in _ATTRIBUTE.finditer(code):
        depth, end = 0, found.end()
        while end < len(code) and (depth > 0 or code[end] not in ")]"):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[end], 0)
            end += 1
        if found[0][0] == "_" or code[end + 1 :].lstrip()[:1] == "]":
            yield found.start(), code[found.end() : end]


def _attribute_names(attributes: str) -> list[str]:
    flat, before = attributes, ""
    while flat != before:  # arguments may hold parentheses
        flat, before = re.sub(r"\([^()]*\)", "", flat), flat
    names = re.sub(r"^\s*using\s+\w+\s*:(?!:)", "", flat).split(",")
    return [name.strip() for name in names if name.strip()]


def _plain(name: str) -> str:
    """Return the name of an attribute without namespace and underscores around it."""
    return re.sub(r"^\w+\s*::\s*", "", name).strip("_")


def pastes_names(sources: Sources) -> bool:
    """Whether macros of the sources may put names together, which a search of the text does not see."""
    return any(_PASTE in bare_code(file.text) for file in sources.files)


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
    return any(_forbidden(" ".join(words))) or not _known_words().isdisjoint(words[:1])


@cache
def _known_words() -> frozenset[str]:
    """Return every word of the simulator's headers."""
    return frozenset(word for text in _header_texts() for word in _WORD.findall(text))


def _header_texts() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(_INCLUDE_TREE.rglob("*")) if path.is_file()]


def refused_library(library: Path, seconds: float) -> Failure | None:
    """Return why built host code is not run, or ``None``: a tiling program computes, and nothing else."""
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", "--format=just-symbols", str(library)],
        check=True,
        capture_output=True,
        text=True,
    )
    symbols = {symbol.partition("@")[0] for symbol in listing.stdout.split()}
    refused = sorted(name for name in symbols if _HOST_CALLS.match(name) or _HOST_STREAMS.match(name))
    if not refused:
        return None
    message = (
        f"the host code uses {', '.join(refused[:5])}: "
        "a tiling program may not touch files or processes, nor decide by chance"
    )
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),), seconds)


def _refusal(file: SourceFile, text: str, position: int, what: str) -> Failure:
    message = f"candidate sources may not contain {what}: use Ascend C only"
    line = text.count("\n", 0, position) + 1
    diagnostic = Diagnostic(phase=Phase.GUARD, message=message, file=file.path, line=line)
    return Failure(Status.GUARD_REJECTED, (diagnostic,))

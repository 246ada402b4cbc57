"""What candidate sources may not contain: ways round the simulator's accounting and out of its process.

A first net, not a sandbox: the process limits and the trace floors stand behind it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Diagnostic, Phase, SourceFile, Sources
from ascend_gym.core.status import Status

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_SPLICE = re.compile(r"\\\r?\n")
_FORBIDDEN = {
    r"\b(?:asm|__asm|__asm__)\b": "inline assembly",
    r"\bno_sanitize\w*|\bno_instrument\w*|\bno_profile\w*": "switching the instrumentation off",
    r"__attribute__\s*\(\s*\(\s*(?!__?(?:aligned|packed|unused|always_inline|noinline)|aligned|packed|unused|"
    r"always_inline|noinline)": "compiler attributes other than alignment, packing and inlining",
    r"#\s*pragma\s+(?:GCC|clang)|\b_Pragma\b": "compiler pragmas",
    r"\b__builtin_ia32_\w+|\b_mm\d*_\w+|\b__m(?:128|256|512)\w*|\bvector_size\b": "vector code of the host",
    r"\b__sanitizer\w*|\b__asan\w*|\b__wrap_\w+": "the names of the instrumentation",
    r"\basim\b|\basim_\w+": "the inside of the simulator",
}
_KERNEL_ONLY_INCLUDE = re.compile(
    r"^(?:/|asim/|sys/|x86|immintrin|\w+mmintrin|arm_|unistd|dlfcn|fcntl|thread|fstream)"
)
_HOST_INCLUDE = re.compile(r"^(?:/|x86|immintrin|\w+mmintrin|arm_|dlfcn|spawn)")
_PASTE = re.compile(r"##|%:%:")
_LINE_MARKER = re.compile(r'^# \d+ "([^"]*)"', re.MULTILINE)
_FLAG = re.compile(r"-D\w+(?:=[\w.]*)?|-O[0-3]")
# What host code could use to leave its process or to reach files that are not its own.
_HOST_CALLS = re.compile(
    r"^(?:(?:open|openat|fopen|freopen|mmap|truncate)(?:64)?|creat|fdopen|popen|system|socket|connect|bind|accept"
    r"|v?fork|clone|exec[lv]p?e?|execvpe|fexecve|posix_spawnp?|dlm?open|dlsym|mprotect|ptrace|syscall"
    r"|unlink(?:at)?|rename(?:at)?|remove|rmdir|mkdir(?:at)?|symlink|link|chmod|chown|ftruncate|readlink"
    r"|f?d?opendir|memfd_create|t?g?kill|pthread_create|prctl|setsid|process_vm_\w+|sigaction|signal"
    r"|setitimer|timer_create)$"
)
_HOST_STREAMS = re.compile(
    r"^_ZNSt(?:13basic_filebuf|14basic_[io]fstream|13basic_fstream|10filesystem)|^_ZNSt6thread"
)


def refused_source(sources: Sources, phase: Phase) -> Failure | None:
    """Return why sources are not built, or ``None``; the message names file, line and what was found."""
    banned = _KERNEL_ONLY_INCLUDE if phase is Phase.BUILD_KERNEL else _HOST_INCLUDE
    for file in sources.files:
        text = _SPLICE.sub("", _COMMENT.sub(_blank, file.text))
        for include in _INCLUDE.finditer(text):
            if banned.match(include[1]):
                return _refusal(file, text, include.start(), f"#include of {include[1]}")
        code = _STRING.sub(_blank, text)
        for pattern, what in _FORBIDDEN.items():
            found = re.search(pattern, code)
            if found is not None:
                return _refusal(file, code, found.start(), f"{what} ({found[0].strip()})")
    return None


def pastes_names(sources: Sources) -> bool:
    """Whether macros of the sources may put names together, which a search of the text does not see."""
    return any(_PASTE.search(file.text) for file in sources.files)


def without_pasting(text: str) -> str:
    """Return source text whose macros leave names apart."""
    return _PASTE.sub("  ", text)


def refused_pasting(pasted: str, apart: str, sources: Sources, phase: Phase) -> Failure | None:
    """Return why sources are not built whose macros put forbidden names together, or ``None``.

    Macros of the simulator's headers may write what candidates may not. So the sources are read twice by the
    preprocessor: what is forbidden must not be there more often than when their own macros paste nothing.

    Args:
        pasted: the preprocessor's output, with its line markers.
        apart: the same of sources ``without_pasting``.
        sources: the candidate's own files.
        phase: of the diagnostic.
    """
    own = {file.path for file in sources.files}
    before, after = (_STRING.sub(_blank, _own_lines(text, own)) for text in (apart, pasted))
    for pattern, what in _FORBIDDEN.items():
        if len(re.findall(pattern, after)) > len(re.findall(pattern, before)):
            message = f"candidate sources may not contain {what}, put together by a macro: use Ascend C only"
            return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))
    return None


def _own_lines(preprocessed: str, own: set[str]) -> str:
    """Return the lines that come from the files ``own``."""
    pieces = _LINE_MARKER.split(preprocessed)
    return "\n".join(text for file, text in zip(pieces[1::2], pieces[2::2], strict=True) if file in own)


def refused_flags(flags: Sequence[str]) -> Failure | None:
    """Return why the candidate's own compiler flags are not used, or ``None``."""
    unknown = [flag for flag in flags if _FLAG.fullmatch(flag) is None]
    if not unknown:
        return None
    message = f"expected build flags of the forms -DNAME, -DNAME=VALUE or -O0 to -O3, got {unknown}"
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),))


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
        f"the host code uses {', '.join(refused[:5])}: a tiling program may not touch files or processes"
    )
    return Failure(Status.GUARD_REJECTED, (Diagnostic(phase=Phase.GUARD, message=message),), seconds)


def _blank(match: re.Match[str]) -> str:
    """Return as many lines as the match spans, so that positions keep their lines."""
    return "\n" * match[0].count("\n") or " "


def _refusal(file: SourceFile, text: str, position: int, what: str) -> Failure:
    message = f"candidate sources may not contain {what}: use Ascend C only"
    line = text.count("\n", 0, position) + 1
    diagnostic = Diagnostic(phase=Phase.GUARD, message=message, file=file.path, line=line)
    return Failure(Status.GUARD_REJECTED, (diagnostic,))

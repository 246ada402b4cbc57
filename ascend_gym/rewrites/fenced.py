"""The text format in which sources stand in prompts and answers: a path header, then a fenced block.

    ### FILE: op_kernel/gelu.cpp
    ```cpp
    ...
    ```

A fence is longer than any run of backticks inside it, so that every text can be fenced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SEARCH_LINE = "<<<<<<< SEARCH"
DIVIDER_LINE = "======="
REPLACE_LINE = ">>>>>>> REPLACE"

_MAX_HEADER_CHARS = 300  # of a line that may name a path: the patterns take quadratic time
_SUFFIX = re.compile(r"\.(?:cpp|cc|hpp|h)\b", re.IGNORECASE)
_PATH = r"[\w.\-]+(?:/[\w.\-]+)*\.(?:cpp|cc|hpp|h)"
_HEADER = re.compile(rf"^\W*(?:FILE\b\W*)?({_PATH})\W*$", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")


@dataclass(frozen=True)
class Section:
    """A fenced block, or an edit block outside of any fence.

    Attributes:
        path: the path in the block's own header; ``None`` if it has none.
        last_path: the path in the nearest header before the block, its own included.
        body: the text inside, each line ending in a newline.
        closed: whether the block's end was found.
    """

    path: str | None
    last_path: str | None
    body: str
    closed: bool

    @property
    def has_edits(self) -> bool:
        """Whether the body holds SEARCH/REPLACE blocks rather than a whole file."""
        return any(line.rstrip() == SEARCH_LINE for line in self.body.split("\n"))


def render_file(path: str, text: str) -> str:
    """Return ``text`` as a fenced block under its path header; a missing last newline is added."""
    return f"### FILE: {path}\n{fenced(text, 'cpp')}"


def fenced(text: str, language: str) -> str:
    """Return ``text`` as a fenced block; a missing last newline is added."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{with_last_newline(text)}{fence}\n"


def with_last_newline(text: str) -> str:
    """Return ``text`` as it reads inside a fence: with a newline at its end."""
    return text if text.endswith("\n") else text + "\n"


def sections(text: str) -> Iterator[Section]:
    """Yield the blocks of a prompt or an answer, in order."""
    lines = iter(text.split("\n"))
    path: str | None = None
    last_path: str | None = None
    for line in lines:
        fence = _FENCE.match(line)
        if fence is not None:
            named = re.search(_PATH, fence[2]) if _may_name_path(fence[2]) else None
            body, closed = _until(lines, fence[1])
            path = named[0] if named else path
            if path is None:
                path, body = _headed_inside(body)
            last_path = path or last_path
            yield Section(path, last_path, body, closed)
            path = None
        elif line.rstrip() == SEARCH_LINE:
            body, closed = _until(lines, REPLACE_LINE)
            yield Section(path, last_path, f"{line}\n{body}{REPLACE_LINE}\n" if closed else body, closed)
            path = None
        else:
            path = _header_path(line) or path
            last_path = path or last_path


def _headed_inside(body: str) -> tuple[str | None, str]:
    """Return the path in the first line of a fenced body, and the body; a comment there is part of it."""
    first, _, rest = body.partition("\n")
    path = _header_path(first)
    return path, rest if path and not first.lstrip().startswith(("//", "/*")) else body


def _header_path(line: str) -> str | None:
    match = _HEADER.match(line) if _may_name_path(line) else None
    return match[1] if match else None


def _may_name_path(line: str) -> bool:
    """Say quickly whether it is worth looking for a path: answers can be one endless line of dashes."""
    return len(line) <= _MAX_HEADER_CHARS and _SUFFIX.search(line) is not None


def _until(lines: Iterator[str], end: str) -> tuple[str, bool]:
    """Take lines up to one that consists of ``end`` (or of more of a fence's characters)."""
    body: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare == end or (end[0] in "`~" and bare.startswith(end) and not bare.strip(end[0])):
            return "".join(f"{inner}\n" for inner in body), True
        body.append(line)
    return "".join(f"{inner}\n" for inner in body), False

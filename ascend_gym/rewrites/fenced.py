"""Text format of sources in prompts and answers: a path header, then a fenced block.

    ### FILE: op_kernel/gelu.cpp
    ```cpp
    ...
    ```

A fence is longer than any run of backticks inside it, so that any text can be fenced. Variants of the
format that models write are accepted, too: see ``sections``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ascend_gym.rewrites.edit_blocks import SEARCH_LINE as SEARCH_LINE
from ascend_gym.rewrites.edit_blocks import is_replace, is_search
from ascend_gym.rewrites.patches import begins_patch, is_patch

_MAX_HEADER_CHARS = 300  # of a line that may name a path: the patterns take quadratic time
_SUFFIX = re.compile(r"\.(?:cpp|cc|hpp|h)\b", re.IGNORECASE)
_PATH = r"[\w.\-]+(?:/[\w.\-]+)*\.(?:cpp|cc|hpp|h)\b"
_REMARK = r"\((?:modified|changed|updated|new|revised|complete|full|whole|final)\b[^()]*\)"
_HEADER = re.compile(rf"^\W*(?:FILE\b\W*)?({_PATH})\W*(?:{_REMARK}\W*)?$", re.IGNORECASE)
_NAMED_FILE = re.compile(rf"^\W*(?:FILE\s+)?(?:FILE(?:NAME)?|PATH|NAME)\s*[:=]\W*({_PATH})", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"^\s*</\w{1,20}>\s*$")
_MARKDOWN = ("markdown", "md")
_FENCE = re.compile(r"^( {0,12})(`{3,}|~{3,})(.*)$")
_PATCH_LANGUAGES = ("diff", "patch", "udiff")


@dataclass(frozen=True)
class FencedSection:
    """A fenced block, or an edit block or a patch outside of any fence.

    Attributes:
        path: path in the block's own header; ``None`` if it has none.
        last_path: path in the nearest header before the block, including its own.
        body: text inside, each line ending in a newline.
        closed: whether the end of the block was found.
        hint: the only path in the line of prose directly before the block; ``None`` if there is none.
        language: first word after the fence, in lower case.
    """

    path: str | None
    last_path: str | None
    body: str
    closed: bool
    hint: str | None = None
    language: str = ""

    @cached_property
    def has_edits(self) -> bool:
        """Whether the body is SEARCH/REPLACE blocks and not a whole file."""
        return any(is_search(line) for line in self.body.split("\n"))

    @cached_property
    def has_patch(self) -> bool:
        """Whether the body is a unified diff and not a whole file."""
        return self.language in _PATCH_LANGUAGES or is_patch(self.body.split("\n"))

    @property
    def is_part(self) -> bool:
        """Whether the body changes a file in place of giving all of it."""
        return self.has_edits or self.has_patch


def render_file(path: str, text: str) -> str:
    """Return ``text`` as a fenced block under its path header, with a final newline."""
    return f"### FILE: {path}\n{fenced(text, 'cpp')}"


def fenced(text: str, language: str) -> str:
    """Return ``text`` as a fenced block, with a final newline."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{with_last_newline(text)}{fence}\n"


def with_last_newline(text: str) -> str:
    """Return ``text`` with a final newline, as inside a fence."""
    return text if text.endswith("\n") else text + "\n"


def sections(text: str, *, unwrap: bool = True) -> Iterator[FencedSection]:
    """Yield the blocks of a prompt or an answer, in order.

    A header is a line with ``FILE:`` and a path, or with only a path in Markdown markup. The
    path may also follow the opening fence, or be in the first line inside. Blocks of
    SEARCH/REPLACE edits and unified diffs need no fence.

    Args:
        text: prompt or answer.
        unwrap: whether a block of Markdown that has blocks inside is read as an answer of its own.
    """
    lines = text.split("\n")
    at = 0
    path: str | None = None
    last_path: str | None = None
    hint: str | None = None
    while at < len(lines):
        line = lines[at]
        at += 1
        fence = _FENCE.match(line)
        if fence is not None:
            body, closed, at = _inside(lines, at, fence[1], fence[2])
            if unwrap and fence[3].strip().lower() in _MARKDOWN and any(map(_FENCE.match, body.split("\n"))):
                yield from sections(body, unwrap=False)  # a whole answer, fenced once more
                continue
            named = re.search(_PATH, fence[3]) if _may_name_path(fence[3]) else None
            path = named[0] if named else path
            if path is None:
                path, body = _headed_inside(body)
            last_path = path or last_path
            word = re.match(r"\w*", fence[3].strip())
            yield FencedSection(path, last_path, body, closed, hint, word[0].lower() if word else "")
            path = hint = None
        elif is_search(line):
            inner, closed, at = _until(lines, at, is_replace)
            body = "".join(f"{each}\n" for each in (line, *inner, *lines[at - 1 : at][: int(closed)]))
            yield FencedSection(path, last_path, body, closed, hint)
            path = hint = None
        elif begins_patch(lines, at - 1):
            inner, _, end = _until(lines, at, _ends_patch)
            body, at = "".join(f"{each}\n" for each in (line, *inner)), max(at, end - 1)
            yield FencedSection(path, last_path, body, True, hint)
            path = hint = None
        else:
            path = header_path(line) or path
            last_path = path or last_path
            hint = _only_path(line) if line.strip() else hint


def headed_texts(text: str) -> Iterator[FencedSection]:
    """Yield the text below each header of an answer without blocks; the header is only a hint."""
    path: str | None = None
    body: list[str] = []
    for line in [*text.split("\n"), None]:
        header = None if line is None else header_path(line)
        if line is not None and header is None:
            body += [] if _CLOSING_TAG.match(line) else [line]
            continue
        if any(each.strip() for each in body):
            yield FencedSection(None, None, "\n".join(body).strip("\n") + "\n", True, hint=path)
        path, body = header, []


def _inside(lines: Sequence[str], at: int, indent: str, fence: str) -> tuple[str, bool, int]:
    """Return the text inside a fence without the fence's indentation, whether it is closed, and its end.

    Args:
        lines: all lines.
        at: position of the first line inside.
        indent: indentation of the fence.
        fence: opening fence.
    """

    def ends(line: str) -> bool:
        bare = line.strip()
        return bare.endswith(fence) and not bare.rstrip(fence[0]).startswith(fence[0])

    inner, closed, at = _until(lines, at, ends)
    last = lines[at - 1].rstrip().rstrip(fence[0]) if closed else ""
    if last.strip():  # the fence stands behind the last line
        inner = [*inner, last]
    if not closed and inner and not inner[-1]:
        inner = inner[:-1]  # the text's own last newline
    if indent:
        inner = [line.removeprefix(indent) for line in inner]
    return "".join(f"{line}\n" for line in inner), closed, at


def _until(lines: Sequence[str], at: int, ends: Callable[[str], bool]) -> tuple[Sequence[str], bool, int]:
    """Return the lines up to the end of a block, whether there is an end, and the position after it."""
    for end in range(at, len(lines)):
        if ends(lines[end]):
            return lines[at:end], True, end + 1
    return lines[at:], False, len(lines)


def _ends_patch(line: str) -> bool:
    return _FENCE.match(line) is not None or line.startswith("### ")


def _headed_inside(body: str) -> tuple[str | None, str]:
    """Return the path in the first line of a fenced body, and the body, including a comment in that line."""
    first, _, rest = body.partition("\n")
    if first.startswith(("---", "+++")):
        return None, body
    path = header_path(first)
    return path, rest if path and not first.lstrip().startswith(("//", "/*")) else body


def header_path(line: str) -> str | None:
    """Return the path that a line names as a header, also as a comment; ``None`` if it is no header."""
    if not _may_name_path(line):
        return None
    match = _HEADER.match(line) or _NAMED_FILE.match(line)
    return match[1] if match else None


def _only_path(line: str) -> str | None:
    found = set(re.findall(_PATH, line)) if _may_name_path(line) else set()
    return found.pop() if len(found) == 1 else None


def _may_name_path(line: str) -> bool:
    """Return quickly whether a line may contain a path; answers can be one endless line of dashes."""
    return len(line) <= _MAX_HEADER_CHARS and _SUFFIX.search(line) is not None

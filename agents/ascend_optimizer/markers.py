"""Evolution markers in T, and the comparison of programs regardless of comments and white space."""

from __future__ import annotations

import re

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.evolve_blocks import MARKER, frozen_parts

_TOKEN = re.compile(
    r'(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|(?P<blank>\s+)|(?:u8|[uUL])?R"(\w*)\(.*?\)\3"'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|(?:(?!//|/\*)[-+*/%&|^<>=!~:.?#])+|.',
    re.DOTALL,
)


def unmarked(candidate: Candidate) -> Candidate:
    """Return ``candidate`` without the lines that are evolution markers."""
    texts = {file.path: MARKER.sub("", file.text) for file in candidate.host.files}
    return with_texts(candidate, texts)


def has_blocks(candidate: Candidate) -> bool:
    """Say whether T has evolve blocks: at least one, and every start followed by its own end."""
    kinds = [MARKER.findall(file.text) for file in candidate.host.files]
    paired = all(found == ["START", "END"] * (len(found) // 2) for found in kinds)
    return paired and any(kinds)


def same_outside_blocks(before: Candidate, after: Candidate) -> bool:
    """Say whether two marked candidates differ only inside T's evolve blocks, and in standard headers."""
    if not has_blocks(after) or before.kernel != after.kernel:
        return False
    return _outside(before) == _outside(after)


def same_code(before: Candidate, after: Candidate) -> bool:
    """Say whether two candidates differ in nothing but comments and white space."""
    old, new = before.texts, after.texts
    return all(code_tokens(old[path]) == code_tokens(new[path]) for path in old)


def code_tokens(text: str) -> list[str]:
    """Return the tokens of C++ code: no comments, no blanks but the newline that ends a directive."""
    tokens: list[str] = []
    in_directive, at_line_start = False, True
    for match in _TOKEN.finditer(text):
        token = match[0]
        ends_line = "\n" in token and match["comment"] is None and match["blank"] is not None
        if ends_line and in_directive and not text[: match.start()].endswith("\\"):
            tokens.append("\n")
            in_directive = False
        if match["comment"] is None and match["blank"] is None:
            in_directive = in_directive or (at_line_start and token.startswith("#"))
            at_line_start = False
            tokens.append(token)
        at_line_start = at_line_start or ends_line
    return tokens


def _outside(candidate: Candidate) -> list[list[list[str]]]:
    """Return, for each host file, the code before, between and behind its evolve blocks."""
    parts = [frozen_parts(file.text) for file in candidate.host.files]
    return [[code_tokens(part) for part in file] for file in parts]

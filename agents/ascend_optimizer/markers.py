"""Evolution markers in T, and the comparison of programs regardless of comments and white space."""

from __future__ import annotations

from ascend_gym.core.cpp_text import code_tokens
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.evolve_blocks import MARKER, frozen_parts


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


def _outside(candidate: Candidate) -> list[list[list[str]]]:
    """Return, for each host file, the code before, between and behind its evolve blocks."""
    parts = [frozen_parts(file.text) for file in candidate.host.files]
    return [[code_tokens(part) for part in file] for file in parts]

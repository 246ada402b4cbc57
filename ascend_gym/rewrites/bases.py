"""Answers that build upon earlier versions: which one the edits apply to, and single files out of others.

    BASE: attempt 3
    TAKE: op_host/softmax.cpp FROM attempt 5

Both are lines of their own before the first change. Without ``BASE`` the edits apply to the version that
the question names; ``BASE: original`` means the operator's own sources. An answer of such lines alone
proposes the combination as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ascend_gym.core.protocols import Ending
from ascend_gym.core.records import Candidate
from ascend_gym.core.text import well_formed, without_thoughts
from ascend_gym.rewrites.answer import (
    CODE_BEGINS,
    ParseProblem,
    ProblemKind,
    candidate_from_answer,
    known_path,
)
from ascend_gym.rewrites.candidate_files import with_texts

ORIGINAL = 0
"""Number of the operator's own sources among the versions."""

_NUMBER = r"(?:attempt|answer|version)?[ \t]*#?(?P<number>\d{1,4}|original|baseline)"
_BASE = re.compile(rf"^[ \t>*`-]{{0,8}}BASE:[ \t*`]*{_NUMBER}[ \t.*`]*$", re.MULTILINE | re.IGNORECASE)
_TAKE = re.compile(
    rf"^[ \t>*`-]{{0,8}}TAKE:[ \t*`]*(?P<path>[\w./-]{{1,200}}?)[ \t*`]+FROM[ \t*`]+{_NUMBER}[ \t.*`]*$",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Combined:
    """A candidate, and the version that it was made from.

    Attributes:
        candidate: what the answer proposes.
        base: number of the attempt that the edits apply to; ``None`` for the version that was shown.
    """

    candidate: Candidate
    base: int | None = None


def combined_from_answer(
    answer: str,
    shown: Candidate,
    versions: Mapping[int, Candidate],
    *,
    ending: Ending = Ending.COMPLETE,
) -> Combined | ParseProblem:
    """Apply an answer to the version that it names, with the files that it takes from others.

    Args:
        answer: text of the model.
        shown: what edits apply to where the answer names nothing.
        versions: what it may name, by number; ``ORIGINAL`` are the operator's own sources.
        ending: why the model stopped.
    """
    text = without_thoughts(well_formed(answer))
    begin = CODE_BEGINS.search(text)
    head = text[: begin.start()] if begin else text
    bases, takes = list(_BASE.finditer(head)), list(_TAKE.finditer(head))
    if not bases and not takes:
        candidate = candidate_from_answer(answer, shown, ending=ending)
        return candidate if isinstance(candidate, ParseProblem) else Combined(candidate)
    wanted = {_number(each) for each in (*bases, *takes)}
    unknown = sorted(wanted - set(versions))
    if unknown or len({_number(each) for each in bases}) > 1:
        known = ", ".join("original" if number == ORIGINAL else str(number) for number in sorted(versions))
        said = f"there is no attempt {unknown[0]}" if unknown else "the answer names two bases"
        message = f"expected one 'BASE: attempt N', and N out of {known}: {said}"
        return ParseProblem(ProblemKind.UNKNOWN_BASE, message)
    number = _number(bases[0]) if bases else None
    base = shown if number is None else versions[number]
    for each in takes:
        path = known_path(each["path"], base.texts)
        if path is None:
            message = f"no file {each['path']!r} to take; files: {sorted(base.texts)}"
            return ParseProblem(ProblemKind.UNKNOWN_PATH, message)
        base = with_texts(base, {path: versions[_number(each)].texts[path]})
    if begin is None and ending is Ending.COMPLETE:
        if base == shown:
            return ParseProblem(ProblemKind.NO_CHANGE, "the answer leaves every file as it was")
        return Combined(base, number)
    rest = _TAKE.sub("", _BASE.sub("", head)) + text[len(head) :]
    candidate = candidate_from_answer(rest, base, ending=ending)
    return candidate if isinstance(candidate, ParseProblem) else Combined(candidate, number)


def _number(match: re.Match[str]) -> int:
    said = match["number"].lower()
    return int(said) if said.isdigit() else ORIGINAL

"""Reading the answer of the inverse agent: which motif it took out, where, and what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_gym.core.protocols import Ending
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer

_MARKUP = "*_`# "
_MAX_SITE_CHARS = 160
_MAX_MOTIF_CHARS = 48
_LINE = re.compile(r"^[\W_]{0,20}(motif|site)[\W_]{0,20}?[:=]\s{0,20}(.+)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Rewound:
    """A de-optimised candidate.

    Attributes:
        candidate: the operator without the motif.
        motif: the motif, in lower case with underscores.
        site: where it was, in the answer's words; empty if it does not say.
    """

    candidate: Candidate
    motif: str
    site: str


@dataclass(frozen=True)
class Unreadable:
    """An answer that lacks what was asked for."""

    message: str

    def __str__(self) -> str:
        return f"unusable answer: {self.message}"


def rewound_from_answer(
    answer: str, base: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Rewound | ParseProblem:
    """Read motif, site and changed files; ``base`` is the implementation that was to be rewound."""
    candidate = candidate_from_answer(answer, base, ending=ending)
    if isinstance(candidate, ParseProblem):
        return candidate
    said: dict[str, str] = {}
    for match in _LINE.finditer(answer):
        said.setdefault(match[1].lower(), match[2].rstrip().strip(_MARKUP))
    motif = motif_named(said.get("motif", ""))
    if not motif:
        expected = "expected a line 'Motif: <name>' before the changes; there is none"
        return ParseProblem(ProblemKind.INCOMPLETE, expected)
    return Rewound(candidate, motif, " ".join(said.get("site", "").split())[:_MAX_SITE_CHARS])


def motif_named(text: str) -> str:
    """Return ``text`` as the name of a motif, such as ``double_buffer``; empty if there is no word in it."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = "_".join(words).lstrip("0123456789_")
    return name[:_MAX_MOTIF_CHARS].rstrip("_")

"""The experience that a prompt tells of, and which rewrite rules it speaks for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ascend_gym.rewrites.rule import Rule

_SECTION = re.compile(
    r"^### Experience \d+: (?P<title>[^\n]*)\n(?P<body>.*?)(?=^### |^## |\Z)", re.MULTILINE | re.DOTALL
)
_MOTIF = re.compile(r"^- motif: (\w+) \(([\w.]+)\)", re.MULTILINE)
_SPEEDUP = re.compile(r"^- measured on .*?: (\d+(?:\.\d+)?)x faster", re.MULTILINE)
_AVOID = re.compile(r"^- avoid when: (.*)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+")
_SAME_FAMILY = 0.15
_ADVISED_AGAINST = 0.2

_CONDITIONS = (
    (re.compile(r"synchronisation is by hand|without automatic synchronisation"), r"synchronisation off\b"),
    (re.compile(r"without a queue"), r"\A(?!.*\bTQue\b)"),
)
"""What experience says to avoid, and how a prompt shows that it is the case."""


@dataclass(frozen=True)
class Experience:
    """What a prompt tells of one piece of experience.

    Attributes:
        motif: name of the motif.
        family: its family.
        title: one line.
        gain: natural logarithm of the measured speedup.
        is_advised_against: whether the prompt shows a condition under which it is to be avoided.
    """

    motif: str
    family: str
    title: str
    gain: float
    is_advised_against: bool = False

    def speaks_for(self, rule: Rule) -> float:
        """Return between 0 and 1 how much this experience is about what ``rule`` does."""
        if rule.name == self.motif or self.family.endswith(f".{rule.name}"):
            return 1.0
        own, other = set(rule.name.split("_")), {*_words(self.motif), *_words(self.title)}
        shared = len(own & other) / len(own)
        same_family = _SAME_FAMILY if rule.family.value in self.family else 0.0
        return max(same_family, shared / 2 if shared > 0.5 else 0.0)


def experience_in(prompt: str) -> list[Experience]:
    """Read the experience out of a prompt, in order."""
    found = []
    for section in _SECTION.finditer(prompt):
        motif, speedup = _MOTIF.search(section["body"]), _SPEEDUP.search(section["body"])
        if motif is not None and speedup is not None:
            gain = math.log(max(1.0, float(speedup[1])))
            against = _holds(_AVOID.findall(section["body"]), prompt)
            found.append(Experience(motif[1], motif[2], section["title"], gain, against))
    return found


def recommendation(rule: Rule, experience: Sequence[Experience], emphasis: float) -> float:
    """Return the factor by which experience makes a rule more likely, or less: 1 if none speaks of it."""
    factor = 1.0
    for each in experience:
        if each.is_advised_against:
            factor *= _ADVISED_AGAINST if each.speaks_for(rule) == 1.0 else 1.0
        else:
            factor += emphasis * each.speaks_for(rule) * math.sqrt(each.gain)
    return factor


def _holds(avoided: Sequence[str], prompt: str) -> bool:
    """Say whether the prompt shows one of the conditions that are to be avoided."""
    return any(
        said.search(text) and re.search(shown, prompt, re.DOTALL)
        for text in avoided
        for said, shown in _CONDITIONS
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())

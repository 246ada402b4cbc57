"""Taking one motif out of an operator: a rewind rule, or a rule's way back, picked by the seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import REWINDS, RULES
from ascend_gym.rewrites.rule import Choice, Rule, Site
from ascend_gym.search.llm.offline.picking import SeededChoice, changes_between
from ascend_gym.search.llm.offline.reading import candidate_in

_FORBIDDEN = ("## Taken out already", "## Tried in vain")
_KNOWN = "## Known from other trajectories"
_KNOWN_WEIGHT = 0.02
_LINE_NUMBER = re.compile(r"(?<=\w):\d+(?= )")
_NUMBER = re.compile(r"(?<![\w.])\d+")

_MOTIFS: Mapping[str, str] = {rule.inverse: rule.name for rule in RULES if rule.inverse}
"""The optimisation that each rewind takes out, by the name of the rewind."""


@dataclass(frozen=True)
class _Option:
    """A way to take out a motif.

    Attributes:
        motif: the rule that would bring it back.
        where: the site, in words that stay the same when lines move and numbers change.
        rule: what takes it out.
        site: where the rule applies.
        choices: the ways to do so.
    """

    motif: str
    where: str
    rule: Rule
    site: Site
    choices: tuple[Choice, ...]

    @property
    def line(self) -> str:
        """How a prompt lists it."""
        return f"- {self.motif}: {self.where}"


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with motif, site and the changed files."""
    before = candidate_in(prompt)
    if before is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to rewind."
    forbidden = {line for heading in _FORBIDDEN for line in _listed_under(prompt, heading)}
    options = [option for option in _options(before) if option.line not in forbidden]
    if not options:
        return "I find no further motif to take out of these sources."
    option = _picked(options, _listed_under(prompt, _KNOWN), draws)
    choice = draws.pick(option.choices, lambda _: 1.0)
    changes = changes_between(before, option.rule.apply(before, option.site, choice))
    return "\n".join([f"Motif: {option.motif}", f"Site: {option.where}", "", choice.label, "", *changes])


def _options(candidate: Candidate) -> Iterator[_Option]:
    """Yield what can be taken out: at each site of a rewind, and where a rule has a way back."""
    for rule in (*RULES, *REWINDS):
        motif = _MOTIFS.get(rule.name, rule.name)
        seen: Counter[str] = Counter()
        for site in rule.sites(candidate):
            where = _NUMBER.sub("N", _LINE_NUMBER.sub("", site.label))
            seen[where] += 1
            nth = f" (number {seen[where]})" if seen[where] > 1 else ""
            choices = tuple(choice for choice in site.choices if not choice.forward)
            if choices:
                yield _Option(motif, where + nth, rule, site, choices)


def _picked(options: Sequence[_Option], known: Collection[str], draws: SeededChoice) -> _Option:
    """Pick a motif, then one of its sites; what is known already comes seldom, and so do known motifs."""

    def novelty(option: _Option) -> float:
        return _KNOWN_WEIGHT if option.line in known else 1.0

    motifs = list(dict.fromkeys(option.motif for option in options))
    by_motif = {motif: [option for option in options if option.motif == motif] for motif in motifs}

    def weight(motif: str) -> float:
        times = sum(line.startswith(f"- {motif}: ") for line in known)
        return max(novelty(option) for option in by_motif[motif]) / (1 + times)

    motif = draws.pick(motifs, weight)
    return draws.pick(by_motif[motif], novelty)


def _listed_under(prompt: str, heading: str) -> set[str]:
    """Return the lines of the list under a heading."""
    _, _, rest = prompt.partition(f"{heading}\n")
    lines = takewhile(lambda line: line.startswith("- "), rest.split("\n"))
    return set(lines)

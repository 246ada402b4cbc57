"""Rewriting a complete operator: one to four rules, picked by the seed and by what the profile says."""

from __future__ import annotations

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.search.llm.offline.picking import SeededChoice, rewritten, told
from ascend_gym.search.llm.offline.reading import candidate_in, evidence_of
from ascend_gym.search.llm.offline.ub_estimate import fits_ub

_REWRITES = {1: 0.2, 2: 0.3, 3: 0.3, 4: 0.2}


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the reasons and the changed files."""
    before = candidate_in(prompt)
    if before is None:
        return "The prompt holds no operator with host and kernel sources, so there is nothing to rewrite."
    evidence = evidence_of(prompt)

    def fits(candidate: Candidate) -> bool:
        return fits_ub(candidate, before, evidence.ub_room)

    count = draws.pick(list(_REWRITES), lambda wanted: _REWRITES[wanted])
    after, steps = rewritten(before, RULES, evidence, draws, count=count, accepts=fits)
    if not steps:
        return "None of my rewrite rules applies to these sources."
    return told(before, after, steps)

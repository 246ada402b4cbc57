"""Going on from the fastest version in a conversation: rules of both sides that were not attempted."""

from __future__ import annotations

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.search.llm.offline.attempts import attempts_in, is_doomed, repeats
from ascend_gym.search.llm.offline.dice import Dice
from ascend_gym.search.llm.offline.impression import impression_of
from ascend_gym.search.llm.offline.picking import novel, told
from ascend_gym.search.llm.offline.reading import candidate_in
from ascend_gym.search.llm.offline.ub_estimate import fits_ub

_STATE = "\n## The fastest version so far"
_REWRITES = {1: 0.35, 2: 0.3, 3: 0.2, 4: 0.15}


def answer(prompt: str, dice: Dice) -> str:
    """Answer with the reasons and the changed files."""
    told_before, _, state = prompt.rpartition(_STATE)
    before = candidate_in(state)
    if before is None:
        return (
            "The prompt ends with no operator with host and kernel sources, so there is nothing to rewrite."
        )
    measured = state if "As above." not in state else prompt
    impression, attempts = impression_of(measured), attempts_in(told_before)

    def accepts(after: Candidate) -> bool:
        fits = fits_ub(after, before, impression.element_bytes)
        return fits and not is_doomed(before, after, attempts)

    def is_new(after: Candidate) -> bool:
        return not repeats(before, after, attempts)

    count = dice.pick(list(_REWRITES), lambda wanted: _REWRITES[wanted])
    after, steps = novel(before, RULES, impression, dice, count=count, accepts=accepts, is_new=is_new)
    if not steps:
        return "I know of no rewrite of this operator that was not attempted."
    return told(before, after, steps)

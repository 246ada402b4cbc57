"""Going on from the fastest version in a conversation: rules of both sides that were not attempted."""

from __future__ import annotations

from ascend_gym.rewrites.library import RULES, Move
from ascend_gym.rewrites.rule import Side
from ascend_gym.search.llm.offline.attempts import Untried, attempts_in
from ascend_gym.search.llm.offline.picking import SeededChoice, novel, told
from ascend_gym.search.llm.offline.reading import candidate_in, evidence_of

_STATE = "\n## The fastest version so far"
_REWRITES = {1: 0.35, 2: 0.3, 3: 0.2, 4: 0.15}
_KERNEL_RULES = tuple(rule for rule in RULES if rule.side is not Side.TILING)
_SIDES = {"both": 0.5, "kernel": 0.5}  # rules of tiling weigh more, and would crowd out the others


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with the reasons and the changed files."""
    told_before, _, state = prompt.rpartition(_STATE)
    before = candidate_in(state)
    if before is None:
        return (
            "The prompt ends with no operator with host and kernel sources, so there is nothing to rewrite."
        )
    measured = state if "As above." not in state else prompt
    evidence, attempts = evidence_of(measured), attempts_in(told_before)
    untried = Untried(before, attempts, evidence.ub_room)
    count = draws.pick(list(_REWRITES), lambda wanted: _REWRITES[wanted])
    side = draws.pick(list(_SIDES), lambda wanted: _SIDES[wanted])
    after = before
    steps: list[Move] = []
    for rules in (RULES,) if side == "both" else (_KERNEL_RULES, RULES):
        after, steps = novel(
            before, rules, evidence, draws, count=count, accepts=untried.accepts, is_new=untried.is_new
        )
        if steps:
            break
    if not steps:
        return "I know of no rewrite of this operator that was not attempted."
    return told(before, after, steps)

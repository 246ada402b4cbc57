"""All rules, in a fixed order."""

from __future__ import annotations

from ascend_gym.rewrites import compute, memory, movement, pipelining, tiling
from ascend_gym.rewrites.rule import Rule

RULES: tuple[Rule, ...] = (
    *tiling.RULES,
    *movement.RULES,
    *pipelining.RULES,
    *compute.RULES,
    *memory.RULES,
)

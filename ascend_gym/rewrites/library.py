"""All rules, in a fixed order."""

from __future__ import annotations

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites import compute, memory, movement, pipelining, tiling
from ascend_gym.rewrites.rule import Rule

RULES: tuple[Rule, ...] = (
    *tiling.RULES,
    *movement.RULES,
    *pipelining.RULES,
    *compute.RULES,
    *memory.RULES,
)


def rule_named(name: str) -> Rule:
    """Return the rule of that name.

    Raises:
        MisuseError: there is none; the message lists the names.
    """
    for candidate in RULES:
        if candidate.name == name:
            return candidate
    raise MisuseError(f"no rule {name!r}; rules: {[candidate.name for candidate in RULES]}")

"""All rules, in a fixed order."""

from __future__ import annotations

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites import caching, compute, cores, layout, memory, movement, pipelining, tiling
from ascend_gym.rewrites.rule import Rule

_FAMILIES = (tiling, cores, movement, caching, pipelining, compute, memory, layout)

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.RULES)
"""Optimisations: the forward choices of each are expected to help."""

REWINDS: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.REWINDS)
"""De-optimisations, each the inverse of a rule that cannot undo itself; no choice of theirs is forward."""

_BY_NAME = {rule.name: rule for rule in (*RULES, *REWINDS)}


def rule_named(name: str) -> Rule:
    """Return the rule or rewind of that name.

    Raises:
        MisuseError: there is none.
    """
    if name not in _BY_NAME:
        raise MisuseError(f"no rule {name!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]

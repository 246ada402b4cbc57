"""All rules, in a fixed order."""

from __future__ import annotations

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites import (
    barriers,
    buffers,
    caching,
    casts,
    core_work,
    cores,
    events,
    fusion,
    hoisting,
    keys,
    layout,
    loads,
    long_calls,
    memory,
    movement,
    operands,
    passes,
    placement,
    reductions,
    rows,
    scalar_code,
    tails,
    tiling,
)
from ascend_gym.rewrites.rule import Rule

_TILING = (tiling, cores, core_work, keys)
_DATA_MOVEMENT = (movement, rows, caching)
_PIPELINING = (buffers, barriers, events, placement, tails, passes, loads)
_COMPUTE = (fusion, operands, casts, hoisting, scalar_code, long_calls, reductions)
_MEMORY = (memory, layout)
_ROOMS = (*_TILING, *_DATA_MOVEMENT, *_PIPELINING, *_COMPUTE, *_MEMORY)

RULES: tuple[Rule, ...] = tuple(rule for room in _ROOMS for rule in room.RULES)
"""Optimisations: the forward choices of each are expected to help."""

REWINDS: tuple[Rule, ...] = tuple(rule for room in _ROOMS for rule in room.REWINDS)
"""De-optimisations, each the inverse of a rule that cannot undo itself; no choice of theirs is forward."""

_BY_NAME = {rule.name: rule for rule in (*RULES, *REWINDS)}


def rule_named(name: str) -> Rule:
    """Return the rule or rewind with that name.

    Raises:
        MisuseError: it does not exist.
    """
    if name not in _BY_NAME:
        raise MisuseError(f"no rule {name!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]

"""Action families based on rewrite rules: one move at a time, or all knobs at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import spaces

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate, Diagnostic, OpSpec
from ascend_gym.env.actions import Mask, no_candidate
from ascend_gym.rewrites.knobs import Knob, knobs_of, turned
from ascend_gym.rewrites.library import RULES, Move, moves_of

SLOTS_PER_RULE = 8
"""Number of moves per rule in the ``rules`` family."""

KNOBS = 32
"""Number of knobs in the ``knobs`` family."""

KNOB_POSITIONS = 8
"""Settings per knob in the ``knobs`` family; the first one leaves the source unchanged."""


class RuleActions:
    """Apply a rewrite rule at one of its places in the incumbent.

    Action ``SLOTS_PER_RULE * r + s`` is move s of rule r, in the order of the library. The moves of a rule
    are ordered by place, those that cover many places first, and then by choice. A masked action costs an
    evaluation and ends as ``build_error``.
    """

    mask_is_observed = True
    vector_length = 0

    def __init__(self) -> None:
        """Number the moves."""
        count = len(RULES) * SLOTS_PER_RULE
        self.space: spaces.Space[Any] = spaces.Discrete(count)
        self.mask_space: spaces.MultiBinary | None = spaces.MultiBinary(count)

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent after the move; see ``ActionFamily``.

        Raises:
            MisuseError: the action is outside the space.
        """
        if not self.space.contains(action):
            raise MisuseError(
                f"an action is a number from 0 to {len(RULES) * SLOTS_PER_RULE - 1}, got {action!r:.80}"
            )
        rule, slot = divmod(int(action), SLOTS_PER_RULE)
        if int(action) not in numbered_moves(incumbent):
            return no_candidate(
                f"rule {RULES[rule].name} has no move {slot} in these sources: heed the action mask"
            )
        return _moved(incumbent, int(action))

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        """Return the mask of existing moves, int8 of shape ``(rules * slots,)``."""
        mask = np.zeros(len(RULES) * SLOTS_PER_RULE, np.int8)
        mask[list(numbered_moves(incumbent))] = 1
        return mask

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return shape ``(0,)``: the number of a move has another meaning for each incumbent."""
        return np.zeros(0, np.float32)

    def number(self, action: Any) -> int | None:
        """Return the action."""
        return int(action)


class KnobSpace(spaces.MultiDiscrete):
    """Settings of all knobs; ``sample`` also accepts the environment's mask, a single array."""

    def __init__(self) -> None:
        """Create the space of ``KNOBS`` knobs with ``KNOB_POSITIONS`` settings each."""
        super().__init__([KNOB_POSITIONS] * KNOBS)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw an action; see ``MultiDiscrete.sample``.

        Args:
            mask: int8 of shape ``(KNOBS, KNOB_POSITIONS)``, or a tuple of its rows: 1 for settings that may
                be drawn.
            probability: probability of each setting, in place of the mask and in the same form, as float64.
        """
        rows = [tuple(rows) if isinstance(rows, np.ndarray) else rows for rows in (mask, probability)]
        return super().sample(*rows)


class KnobActions:
    """Settings of all knobs found in the operator's own sources, independent of the incumbent.

    Entry k is the setting of knob k; 0 leaves its place unchanged. Settings beyond a knob's last one are
    clipped to it, and entries beyond the last knob are ignored; the mask rules out both.
    """

    mask_is_observed = False
    vector_length = KNOBS

    def __init__(self) -> None:
        """Number the knobs."""
        self.space: spaces.Space[Any] = KnobSpace()
        self.mask_space: spaces.MultiBinary | None = spaces.MultiBinary((KNOBS, KNOB_POSITIONS))

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the operator's own sources with the knobs set; see ``ActionFamily``.

        Raises:
            MisuseError: the action is outside the space.
        """
        if not self.space.contains(action):
            raise MisuseError(
                f"an action is {KNOBS} integers from 0 to {KNOB_POSITIONS - 1}, got {action!r:.200}"
            )
        pairs = zip(tunable_knobs(spec.baseline), action, strict=False)
        return _turned(
            spec.baseline, tuple(min(int(position), knob.positions - 1) for knob, position in pairs)
        )

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        """Return the mask of existing settings, int8 of shape ``(KNOBS, KNOB_POSITIONS)``."""
        mask = np.zeros((KNOBS, KNOB_POSITIONS), np.int8)
        mask[:, 0] = 1
        for row, knob in zip(mask, tunable_knobs(spec.baseline), strict=False):
            row[: knob.positions] = 1
        return mask

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the settings as shares of the largest one, float32 of shape ``(knobs,)``."""
        return (np.asarray(action) / (KNOB_POSITIONS - 1)).astype(np.float32)

    def number(self, action: Any) -> int | None:
        """Return ``None``: an action sets all knobs at once."""
        return None


@lru_cache(maxsize=1024)
def numbered_moves(candidate: Candidate) -> Mapping[int, Move]:
    """Return the moves that the ``rules`` family can make from a candidate, by action."""
    by_rule: dict[str, list[Move]] = {rule.name: [] for rule in RULES}
    for move in moves_of(candidate):
        by_rule[move.rule.name].append(move)
    moves_by_number = {
        SLOTS_PER_RULE * number + slot: move
        for number, moves in enumerate(by_rule.values())
        for slot, move in enumerate(sorted(moves, key=lambda move: not move.site.covers_all)[:SLOTS_PER_RULE])
    }
    return MappingProxyType(moves_by_number)


@lru_cache(maxsize=512)
def _moved(candidate: Candidate, action: int) -> Candidate:
    """Return the candidate after a move; cached, so that its digest is computed once."""
    return numbered_moves(candidate)[action].applied_to(candidate)


@lru_cache(maxsize=512)
def _turned(candidate: Candidate, positions: tuple[int, ...]) -> Candidate:
    """Return the candidate with its tunable knobs set to ``positions``; cached."""
    knobs = tunable_knobs(candidate)
    return turned(candidate, list(knobs), dict(zip((knob.name for knob in knobs), positions, strict=True)))


@lru_cache(maxsize=1024)
def tunable_knobs(candidate: Candidate) -> tuple[Knob, ...]:
    """Return the knobs of the ``knobs`` family, in the order of its entries."""
    return tuple(knobs_of(candidate, KNOBS))

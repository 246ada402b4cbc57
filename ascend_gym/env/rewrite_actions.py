"""Action families of rewrite rules: one move at a time, or all knobs at once."""

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
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.moves import Move, moves_of

SLOTS_PER_RULE = 8
"""Places of a rule that the ``rules`` family can name."""

KNOBS = 32
"""Knobs that the ``knobs`` family can turn."""

KNOB_POSITIONS = 8
"""Positions of a knob in the ``knobs`` family, the first of which leaves the source as it is."""


class RuleActions:
    """A rewrite rule at one of its places in the incumbent.

    Action ``SLOTS_PER_RULE * r + s`` is move s of rule r, in the order of the library; the moves of a rule
    are ordered by place, those that stand for many places first, and there by choice. An action that the mask
    rules out costs an evaluation and ends as ``build_error``.
    """

    mask_is_observed = True
    vector_length = 0

    def __init__(self) -> None:
        """Number the moves."""
        count = len(RULES) * SLOTS_PER_RULE
        self.space: spaces.Space[Any] = spaces.Discrete(count)
        self.mask_space: spaces.MultiBinary | None = spaces.MultiBinary(count)

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the incumbent after the move; see ``ActionFamily``."""
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
        """Return which moves there are, int8 of shape ``(rules * slots,)``."""
        mask = np.zeros(len(RULES) * SLOTS_PER_RULE, np.int8)
        mask[list(numbered_moves(incumbent))] = 1
        return mask

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return shape ``(0,)``: the number of a move means another thing for another incumbent."""
        return np.zeros(0, np.float32)

    def number(self, action: Any) -> int | None:
        """Return the action."""
        return int(action)


class KnobSpace(spaces.MultiDiscrete):
    """Positions of all knobs; ``sample`` also takes a mask as the environment tells it, in one array."""

    def __init__(self) -> None:
        """Make the space of ``KNOBS`` knobs with ``KNOB_POSITIONS`` positions each."""
        super().__init__([KNOB_POSITIONS] * KNOBS)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw an action; see ``MultiDiscrete.sample``.

        Args:
            mask: int8 of shape ``(KNOBS, KNOB_POSITIONS)``, or a tuple of its rows: 1 where a position may be
                drawn.
            probability: the probability of each position in place of the mask, in either form, as float64.
        """
        rows = [tuple(rows) if isinstance(rows, np.ndarray) else rows for rows in (mask, probability)]
        return super().sample(*rows)


class KnobActions:
    """Positions of all knobs found in the operator's own sources; the same action always means the same.

    Entry k is the position of knob k; 0 leaves its place as it is. Positions beyond a knob's last one are its
    last, and entries beyond the last knob mean nothing: the mask tells both.
    """

    mask_is_observed = False
    vector_length = KNOBS

    def __init__(self) -> None:
        """Number the knobs."""
        self.space: spaces.Space[Any] = KnobSpace()
        self.mask_space: spaces.MultiBinary | None = spaces.MultiBinary((KNOBS, KNOB_POSITIONS))

    def candidate(self, spec: OpSpec, incumbent: Candidate, action: Any) -> Candidate | Diagnostic:
        """Return the operator's own sources with the knobs turned; see ``ActionFamily``."""
        if not self.space.contains(action):
            raise MisuseError(
                f"an action is {KNOBS} integers from 0 to {KNOB_POSITIONS - 1}, got {action!r:.200}"
            )
        pairs = zip(tunable_knobs(spec.baseline), action, strict=False)
        return _turned(
            spec.baseline, tuple(min(int(position), knob.positions - 1) for knob, position in pairs)
        )

    def mask(self, spec: OpSpec, incumbent: Candidate) -> Mask | None:
        """Return which positions there are, int8 of shape ``(KNOBS, KNOB_POSITIONS)``."""
        mask = np.zeros((KNOBS, KNOB_POSITIONS), np.int8)
        mask[:, 0] = 1
        for row, knob in zip(mask, tunable_knobs(spec.baseline), strict=False):
            row[: knob.positions] = 1
        return mask

    def vector(self, action: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the positions, float32 of shape ``(knobs,)``, each as a share of the last of the space."""
        return (np.asarray(action) / (KNOB_POSITIONS - 1)).astype(np.float32)

    def number(self, action: Any) -> int | None:
        """Return nothing: all knobs are turned at once."""
        return None


@lru_cache(maxsize=1024)
def numbered_moves(candidate: Candidate) -> Mapping[int, Move]:
    """Return the moves that the ``rules`` family can make of a candidate, by action."""
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
    """Return the candidate after one of its moves: the same object again, which knows its digest."""
    return numbered_moves(candidate)[action].applied_to(candidate)


@lru_cache(maxsize=512)
def _turned(candidate: Candidate, positions: tuple[int, ...]) -> Candidate:
    """Return the candidate with its tunable knobs in ``positions``: the same object again for the same."""
    knobs = tunable_knobs(candidate)
    return turned(candidate, list(knobs), dict(zip((knob.name for knob in knobs), positions, strict=True)))


@lru_cache(maxsize=1024)
def tunable_knobs(candidate: Candidate) -> tuple[Knob, ...]:
    """Return the knobs that the ``knobs`` family can turn, in the order of its entries."""
    return tuple(knobs_of(candidate, KNOBS))

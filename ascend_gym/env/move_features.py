"""Numeric features of each action of the ``rules`` family.

They have the same meaning for all operators, so an agent can generalise over operators and rules: what
a move is expected to relieve, how busy that pipe is, and how the move and its rule have done in the episode.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ascend_gym.core.records import Candidate
from ascend_gym.env.episode import Episode, PastEvaluation
from ascend_gym.env.rewrite_actions import SLOTS_PER_RULE, numbered_moves
from ascend_gym.rewrites.library import RULES, Move
from ascend_gym.rewrites.rule import Family, Side

BOUND = 4.0
"""Entries are clipped to -BOUND ... BOUND."""

_KIND = (
    *(f"family_{family.value}" for family in Family),
    *(f"side_{side.value}" for side in Side),
    "forward",
    "covers_all",
    "choice",
    "moves_of_rule",
)
_PIPES = ("busiest_pipe", "mean_pipe")
_OF_MOVE = ("tried", "tried_before", "failed_before", "log_gain_before")
_OF_RULE = ("rule_tries", "rule_failures", "rule_improvements", "rule_log_gain", "rule_best_log_gain")

MOVE_FEATURES: tuple[str, ...] = (*_KIND, *_PIPES, *_OF_MOVE, *_OF_RULE)
"""The names of the entries that describe an action, in order.

======================  ====================================================================================
``family_*``            1 for the rule's kind of optimisation
``side_*``              1 for the side that it edits
``forward``             1 if the move goes the way that is expected to help
``covers_all``          1 if it covers many places at once
``choice``              place of the choice among those of its site, from 0 in steps of 1/8
``moves_of_rule``       ln(1 + moves of the rule) / 2
``busiest_pipe``        busy share of the busiest pipe that the rule is meant to relieve, of the incumbent
``mean_pipe``           mean busy share of these pipes
``tried``               1 if it was tried on this incumbent
``tried_before``        1 if the action of this number was tried in the episode
``failed_before``       1 if the last such attempt failed
``log_gain_before``     ln(L_incumbent / L) of the last such attempt, 0 where it failed
``rule_tries``          ln(1 + attempts of the rule in the episode) / 2
``rule_failures``       share of them that failed
``rule_improvements``   share of them that gave a new incumbent
``rule_log_gain``       ln(L_incumbent / L) of the last of them
``rule_best_log_gain``  the greatest of these
======================  ====================================================================================
"""

Array = np.ndarray[Any, np.dtype[np.float32]]


def move_space() -> spaces.Box:
    """Return the space of ``move_features``: float32 of shape ``(actions, len(MOVE_FEATURES))``."""
    return spaces.Box(-BOUND, BOUND, (len(RULES) * SLOTS_PER_RULE, len(MOVE_FEATURES)), np.float32)


def move_features(episode: Episode) -> Array:
    """Return the features of each action, float32 of shape ``(actions, len(MOVE_FEATURES))``.

    Rows of masked actions are 0.
    """
    rows = _kinds(episode.incumbent).copy()
    profile = episode.incumbent_result.mean_profile or {}
    since_improvement = [attempt.move for attempt in _since_improvement(episode.attempts)]
    last_of_move = {attempt.move: attempt for attempt in episode.attempts}
    of_rule: dict[int, list[PastEvaluation]] = defaultdict(list)
    for attempt in episode.attempts:
        if attempt.move is not None:
            of_rule[attempt.move // SLOTS_PER_RULE].append(attempt)
    for number, move in numbered_moves(episode.incumbent).items():
        rows[number, len(_KIND) :] = (
            *_relieved(move, profile),
            float(number in since_improvement),
            *_last(last_of_move.get(number)),
            *_record(of_rule[number // SLOTS_PER_RULE]),
        )
    clipped: Array = np.clip(rows, -BOUND, BOUND)
    return clipped


@lru_cache(maxsize=1024)
def _kinds(candidate: Candidate) -> Array:
    """Return the rows with the features that depend only on the sources."""
    moves = numbered_moves(candidate)
    rows = np.zeros(move_space().shape, np.float32)
    per_rule = Counter(number // SLOTS_PER_RULE for number in moves)
    for number, move in moves.items():
        rows[number, : len(_KIND)] = (
            *(float(move.rule.family is family) for family in Family),
            *(float(move.rule.side is side) for side in Side),
            float(move.choice.forward),
            float(move.site.covers_all),
            move.site.choices.index(move.choice) / 8,
            math.log1p(per_rule[number // SLOTS_PER_RULE]) / 2,
        )
    return rows


def _since_improvement(attempts: Sequence[PastEvaluation]) -> Sequence[PastEvaluation]:
    """Return the attempts since the last improvement."""
    improvements = [number for number, attempt in enumerate(attempts) if attempt.improved]
    return attempts[improvements[-1] + 1 :] if improvements else attempts


def _relieved(move: Move, profile: Mapping[str, float]) -> tuple[float, float]:
    ratios = [profile.get(f"aiv_{pipe.value}_ratio", 0.0) for pipe in move.rule.effect.pipes]
    return max(ratios), sum(ratios) / len(ratios)


def _last(attempt: PastEvaluation | None) -> tuple[float, float, float]:
    if attempt is None:
        return 0.0, 0.0, 0.0
    return 1.0, float(attempt.log_gain is None), attempt.log_gain or 0.0


def _record(attempts: Sequence[PastEvaluation]) -> tuple[float, float, float, float, float]:
    """Return the statistics of a rule's attempts."""
    if not attempts:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    gains = [attempt.log_gain or 0.0 for attempt in attempts]
    failures = sum(attempt.log_gain is None for attempt in attempts)
    improvements = sum(attempt.improved for attempt in attempts)
    count = len(attempts)
    return math.log1p(count) / 2, failures / count, improvements / count, gains[-1], max(gains)

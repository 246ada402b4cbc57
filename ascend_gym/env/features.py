"""Numeric features of an episode; each entry has the same meaning for all operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ascend_gym.env.actions import ActionFamily
from ascend_gym.env.episode import Episode
from ascend_gym.env.text_observation import PROFILE_FIELDS, STATUSES

HISTORY = 8
"""Number of past evaluations in the features, the last one first."""

BOUND = 32.0
"""Features are clipped to -BOUND ... BOUND."""

_RATIOS = tuple(name for name in PROFILE_FIELDS if name.endswith("_ratio"))
_MAGNITUDES = tuple(name for name in PROFILE_FIELDS if not name.endswith("_ratio"))
_INSTRUCTIONS = tuple(name for name in PROFILE_FIELDS if name.endswith("_instructions"))
_BYTES = tuple(name for name in PROFILE_FIELDS if name.endswith("_bytes"))

Features = np.ndarray[Any, np.dtype[np.float32]]


def feature_names(actions: ActionFamily) -> tuple[str, ...]:
    """Return the names of the features in order.

    ==================  ====================================================================================
    ``budget_left``     remaining share of the budget
    ``log_speedup``     ln(L_baseline / L_incumbent)
    ``status_*``        1 for the status of the last evaluation
    ``measured_k``      1 if the k-th last charged evaluation gave a latency L, else 0
    ``log_speedup_k``   then ln(L_baseline / L), else 0
    ``ai*_*_ratio``     busy share of each pipe, of the incumbent
    ``log_*``           ln(1 + x) of the other fields of its profile
    ``share_*``         share of each kind among its instructions
    ``log_bytes_rate``  ln(1 + bytes moved per us): position under the memory roof
    ``action_k``        the incumbent's own action, if the action family encodes actions as vectors
    ==================  ====================================================================================
    """
    return (
        "budget_left",
        "log_speedup",
        *(f"status_{status.value}" for status in STATUSES),
        *(f"measured_{number}" for number in range(1, HISTORY + 1)),
        *(f"log_speedup_{number}" for number in range(1, HISTORY + 1)),
        *_RATIOS,
        *(f"log_{name}" for name in _MAGNITUDES),
        *(f"share_{name}" for name in _INSTRUCTIONS),
        "log_bytes_rate",
        *(f"action_{number}" for number in range(actions.vector_length)),
    )


def feature_space(actions: ActionFamily) -> spaces.Box:
    """Return the space of ``features``: float32 of shape ``(len(feature_names(actions)),)``."""
    return spaces.Box(-BOUND, BOUND, (len(feature_names(actions)),), np.float32)


def features(episode: Episode, actions: ActionFamily) -> Features:
    """Return the features of an episode, float32 of shape ``(len(feature_names(actions)),)``."""
    values = [
        episode.budget_left / episode.budget,
        math.log(episode.speedup),
        *(float(episode.last_result.status is status) for status in STATUSES),
        *_history(episode),
        *_profile(episode),
        *(np.zeros(actions.vector_length) if episode.incumbent_vector is None else episode.incumbent_vector),
    ]
    return np.clip(np.array(values, np.float32), -BOUND, BOUND)


def _history(episode: Episode) -> list[float]:
    latencies_us = [attempt.latency_us for attempt in reversed(episode.attempts)][:HISTORY]
    latencies_us += [None] * (HISTORY - len(latencies_us))
    measured = [float(us is not None) for us in latencies_us]
    gains = [math.log(episode.baseline_latency_us / us) if us else 0.0 for us in latencies_us]
    return [*measured, *gains]


def _profile(episode: Episode) -> list[float]:
    profile = episode.incumbent_result.mean_profile or dict.fromkeys(PROFILE_FIELDS, 0.0)
    instructions = sum(profile[name] for name in _INSTRUCTIONS)
    moved_bytes = sum(profile[name] for name in _BYTES)
    return [
        *(profile[name] for name in _RATIOS),
        *(math.log1p(profile[name]) for name in _MAGNITUDES),
        *(profile[name] / max(1.0, instructions) for name in _INSTRUCTIONS),
        math.log1p(moved_bytes / max(1e-3, profile["task_duration_us"])),
    ]

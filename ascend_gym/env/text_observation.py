"""The observation of an episode as texts and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ascend_gym.core.records import EvalResult, Profile
from ascend_gym.core.status import Status
from ascend_gym.env.episode import Episode
from ascend_gym.env.unicode_text import UnicodeText

STATUSES: tuple[Status, ...] = tuple(Status)
"""The statuses by their number in the observation."""

PROFILE_FIELDS: tuple[str, ...] = tuple(Profile.model_fields)
"""The names of the entries of the ``profile`` observation, in order."""

MAX_LATENCY_US = 1e12
MAX_SPEEDUP = 1e12
MAX_PROFILE_VALUE = 2.0**63


def observation_space(budget: int, max_source_chars: int, max_diagnostic_chars: int) -> spaces.Dict:
    """Return the space of text observations; ``docs/environment.md`` explains each entry."""
    latency_us = {
        name: spaces.Box(0.0, MAX_LATENCY_US, (1,), np.float64)
        for name in ("latency_us", "best_latency_us", "baseline_latency_us")
    }
    return spaces.Dict(
        {
            "tiling": UnicodeText(max_source_chars),
            "kernel": UnicodeText(max_source_chars),
            "status": spaces.Discrete(len(STATUSES)),
            **latency_us,
            "speedup": spaces.Box(0.0, MAX_SPEEDUP, (1,), np.float64),
            "profile": spaces.Box(0.0, MAX_PROFILE_VALUE, (len(PROFILE_FIELDS),), np.float64),
            "diagnostics": UnicodeText(max_diagnostic_chars),
            "budget_left": spaces.Discrete(budget + 1),
        }
    )


def observe(episode: Episode, max_diagnostic_chars: int) -> dict[str, Any]:
    """Encode ``episode`` as a fresh observation that shares no data with earlier ones."""
    last = episode.last_result
    return {
        "tiling": episode.incumbent.tiling_text,
        "kernel": episode.incumbent.kernel_text,
        "status": np.int64(STATUSES.index(last.status)),
        "latency_us": _scalar(last.latency_us or 0.0, MAX_LATENCY_US),
        "best_latency_us": _scalar(episode.best_latency_us, MAX_LATENCY_US),
        "baseline_latency_us": _scalar(episode.baseline_latency_us, MAX_LATENCY_US),
        "speedup": _scalar(episode.speedup, MAX_SPEEDUP),
        "profile": profile_vector(episode.incumbent_result),
        "diagnostics": diagnostics_text(last, max_diagnostic_chars),
        "budget_left": np.int64(episode.budget_left),
    }


def profile_vector(result: EvalResult) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the profile of ``result`` as float64 of shape ``(len(PROFILE_FIELDS),)``.

    Each entry is the arithmetic mean of that field over the cases; all are 0 if nothing was measured.
    """
    mean = result.mean_profile or dict.fromkeys(PROFILE_FIELDS, 0.0)
    vector = np.array([mean[name] for name in PROFILE_FIELDS], dtype=np.float64)
    return np.clip(vector, 0.0, MAX_PROFILE_VALUE)


def diagnostics_text(result: EvalResult, max_chars: int) -> str:
    """Return the diagnostics of ``result``, one per line, cut to ``max_chars`` characters."""
    return "\n".join(str(diagnostic) for diagnostic in result.all_diagnostics)[:max_chars]


def _scalar(value: float, high: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([min(max(value, 0.0), high)], dtype=np.float64)

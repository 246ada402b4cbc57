"""Reference of MotionCompensation: each point moves by its share of the motion until the last time."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    first, last = attributes["timestamp_min"], attributes["timestamp_max"]
    share = (last - inputs["timestamp"].astype(np.float64)) / (last - first)
    before, after = (_unit(attributes[f"quaterniond_{end}"]) for end in ("min", "max"))
    back = after * np.array([1.0, -1.0, -1.0, -1.0])
    shift = np.subtract(attributes["translation_min"], attributes["translation_max"])
    turns = _between(_product(back, before), share)
    out = inputs["points"].astype(np.float64)
    out[:3] = _turned(turns, out[:3]) + share * _turned(back[:, None], shift[:, None])
    return {"out": out}


def _unit(quaternion: Any) -> Any:
    return np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)


def _product(a: Any, b: Any) -> Any:
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[scalar], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def _between(turn: Any, share: Any) -> Any:
    """Return the quaternions (4, n) that make ``share`` (n) of a turn, the shorter way round."""
    turn = turn if turn[0] >= 0.0 else -turn
    angle = np.arccos(turn[0])
    axis = turn[1:] / np.sin(angle)
    return np.concatenate([np.cos(share * angle)[None], np.sin(share * angle) * axis[:, None]])


def _turned(quaternions: Any, points: Any) -> Any:
    """Return points (3, n) turned by unit quaternions (4, n)."""
    scalar, vector = quaternions[0], quaternions[1:]
    aside = 2.0 * np.cross(vector, points, axis=0)
    return points + scalar * aside + np.cross(vector, aside, axis=0)

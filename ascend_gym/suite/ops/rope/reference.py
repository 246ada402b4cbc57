"""Reference of Rope; cosines and sines are those of one angle, repeated in both halves of a head."""

from __future__ import annotations

from typing import Any

import numpy as np


def inputs(case: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Return tables of cosines and sines that belong together, at random frequencies."""
    length, width = case.inputs[1].shapes[0]
    frequencies = rng.uniform(0.001, 1.0, width // 2)
    angles = np.tile(np.arange(length)[:, None] * frequencies, 2)
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    cos, sin = (inputs[name].astype(np.float64)[:, None, :] for name in ("cos", "sin"))
    first, second = np.split(x, 2, axis=-1)
    return {"y": x * cos + np.concatenate([-second, first], axis=-1) * sin}

"""Reference of ResizeBilinear around pixel centres."""

from __future__ import annotations

from typing import Any

import numpy as np


def _sources(length: int, count: int) -> tuple[Any, Any, Any]:
    """Return the two neighbours among ``length`` of each of ``count`` outputs, and the second's weight."""
    centres = np.maximum((np.arange(count) + 0.5) * length / count - 0.5, 0.0)
    first = np.floor(centres).astype(int)
    return first, np.minimum(first + 1, length - 1), centres - first


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    first, second, weight = _sources(x.shape[1], attributes["height"])
    weight = weight[:, None, None]
    x = x[:, first] * (1 - weight) + x[:, second] * weight
    first, second, weight = _sources(x.shape[2], attributes["width"])
    weight = weight[:, None]
    return {"y": x[:, :, first] * (1 - weight) + x[:, :, second] * weight}

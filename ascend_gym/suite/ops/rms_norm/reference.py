"""Reference of RmsNorm over the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    mean_square = np.einsum("...i,...i->...", x, x)[..., None] / x.shape[-1]
    x *= 1.0 / np.sqrt(mean_square + attributes["epsilon"])
    x *= inputs["gamma"].astype(np.float64)
    return {"y": x}

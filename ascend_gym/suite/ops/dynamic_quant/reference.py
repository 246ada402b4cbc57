"""Reference of DynamicQuant: the values before they are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    scale = np.abs(x).max(axis=-1, keepdims=True) / 127.0
    return {"y": x / scale, "scale": scale}

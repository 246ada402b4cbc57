"""Reference of Lerp."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["start"].astype(np.float64)
    b = inputs["end"].astype(np.float64)
    c = inputs["weight"].astype(np.float64)
    return {"y": a + c * (b - a)}

"""Reference of ForeachAddScalarList."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    pairs = zip(inputs["x"], inputs["scalars"], strict=True)
    return {"y": [x.astype(np.float64) + scalar for x, scalar in pairs]}

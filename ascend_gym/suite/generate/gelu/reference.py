"""Reference of Gelu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    erf = np.vectorize(math.erf)
    return {"y": 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))}

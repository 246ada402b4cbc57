"""Reference of MatmulBiasGelu, with GELU in its tanh form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64) + inputs["bias"]
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return {"c": x / (1.0 + np.exp(-2.0 * inner))}

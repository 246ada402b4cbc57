"""Reference of Gelu in its tanh form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    # float64 throughout: 1 + tanh(u) cancels for negative u
    x = inputs["x"].astype(np.float64)
    u = x * x
    u *= 0.044715
    u += 1.0
    u *= x
    u *= -2.0 * math.sqrt(2.0 / math.pi)
    np.exp(u, out=u)
    u += 1.0
    return {"y": np.divide(x, u, out=x)}

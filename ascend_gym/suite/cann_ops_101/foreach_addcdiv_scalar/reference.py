"""Reference of ForeachAddcdivScalar."""

from __future__ import annotations

from typing import Any

import numpy as np


def _each(a: Any, b: Any, c: Any, d: Any) -> Any:
    a = a.astype(np.float64)
    b = b.astype(np.float64)
    c = c.astype(np.float64)
    return a + d * b / c


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    d = inputs["scalar"].astype(np.float64)
    return {
        "y": [_each(a, b, c, d) for a, b, c in zip(inputs["x1"], inputs["x2"], inputs["x3"], strict=True)]
    }

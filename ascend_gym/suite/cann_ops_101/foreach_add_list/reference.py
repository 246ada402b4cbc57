"""Reference of ForeachAddList."""

from __future__ import annotations

from typing import Any

import numpy as np


def _each(a: Any, b: Any, c: Any) -> Any:
    a = a.astype(np.float64)
    b = b.astype(np.float64)
    return a + c * b


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    c = inputs["alpha"].astype(np.float64)
    return {"y": [_each(a, b, c) for a, b in zip(inputs["x1"], inputs["x2"], strict=True)]}

"""Reference of ForeachDivScalar."""

from __future__ import annotations

from typing import Any

import numpy as np


def _each(a: Any, b: Any) -> Any:
    a = a.astype(np.float64)
    return a / b


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    b = inputs["scalar"].astype(np.float64)
    return {"y": [_each(a, b) for a in inputs["x"]]}

"""Reference of ForeachAddcmulScalarList."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    names = ("x1", "x2", "x3", "scalars")
    rows = zip(*(inputs[name] for name in names), strict=True)
    return {"y": [a.astype(np.float64) + s * b.astype(np.float64) * c for a, b, c, s in rows]}

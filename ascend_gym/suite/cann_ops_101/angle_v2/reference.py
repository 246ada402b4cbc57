"""Reference of AngleV2."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    if x.dtype.kind == "c":
        return {"y": np.angle(x.astype(np.complex128))}
    return {"y": np.where(np.isnan(x), np.nan, np.where(x < 0, np.pi, 0.0))}

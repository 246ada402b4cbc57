"""Reference of Addcmul."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["input_data"].astype(np.float64)
    b = inputs["x1"].astype(np.float64)
    c = inputs["x2"].astype(np.float64)
    d = inputs["value"].astype(np.float64)
    return {"y": a + d * b * c}

"""Reference of Muls."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["x"].astype(np.float64)
    b = inputs["value"].astype(np.float64)
    return {"y": a * b}

"""Reference of MatmulApiConstant."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64) + inputs["bias"]}

"""Reference of ForeachAddcmul."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    lists = zip(inputs["x1"], inputs["x2"], inputs["x3"], strict=True)
    return {
        "y": [
            first.astype(np.float64)
            + attributes["value"] * second.astype(np.float64) * third.astype(np.float64)
            for first, second, third in lists
        ]
    }

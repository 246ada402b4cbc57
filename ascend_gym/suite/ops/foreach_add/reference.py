"""Reference of ForeachAdd."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    wide = np.float32 if inputs["x1"][0].dtype == np.float16 else np.float64
    alpha = wide(attributes["alpha"])
    return {
        "y": [
            x1.astype(wide) + alpha * x2.astype(wide)
            for x1, x2 in zip(inputs["x1"], inputs["x2"], strict=True)
        ]
    }

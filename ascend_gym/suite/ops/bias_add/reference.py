"""Reference of BiasAdd."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    wide = np.float32 if inputs["x"].dtype == np.float16 else np.float64
    return {"y": np.add(inputs["x"], inputs["bias"], dtype=wide)}

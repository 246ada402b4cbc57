"""Reference of Arange."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    start, step = inputs["start"][0], inputs["step"][0]
    wide = np.float64 if start.dtype.kind == "f" else np.int64
    return {"y": wide(start) + np.arange(attributes["count"], dtype=wide) * wide(step)}

"""Reference of ClipByValueV2."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["x"].astype(np.float64)
    b = inputs["clip_value_min"].astype(np.float64)
    c = inputs["clip_value_max"].astype(np.float64)
    return {"y": np.clip(a, b, c)}

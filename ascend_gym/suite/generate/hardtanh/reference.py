"""Reference of Hardtanh."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)
    return {"y": np.clip(x, attributes["low"], attributes["high"])}

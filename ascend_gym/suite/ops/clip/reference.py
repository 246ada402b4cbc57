"""Reference of Clip: exact, since every result is an element or a bound."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    low, high = (x.dtype.type(attributes[name]) for name in ("low", "high"))
    return {"y": np.clip(x, low, high)}

"""Reference of CumSum."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    return {"y": x.cumsum(axis=0, dtype=np.float64 if x.dtype.kind == "f" else np.int32)}

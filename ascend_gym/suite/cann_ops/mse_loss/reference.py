"""Reference of MseLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    difference = inputs["predict"].astype(np.float64) - inputs["label"]
    return {"y": np.mean(difference**2, keepdims=True).reshape(1)}

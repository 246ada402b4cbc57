"""Reference of AvgPool3D."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    result = inputs["x"].astype(np.float64)
    windows = zip(attributes["ksize"], attributes["strides"], strict=True)
    for axis, (size, stride) in enumerate(windows, start=1):
        count = (result.shape[axis] - size) // stride + 1
        places = np.arange(count)[:, None] * stride + np.arange(size)
        result = np.take(result, places, axis=axis).mean(axis=axis + 1)
    return {"y": result}

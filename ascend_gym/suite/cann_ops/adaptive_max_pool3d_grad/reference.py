"""Reference of AdaptiveMaxPool3DGrad: places count the elements of one channel."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    channels = x.shape[0] * x.shape[1]
    y = np.zeros((channels, x[0, 0].size))
    rows = np.arange(channels)[:, None]
    np.add.at(y, (rows, inputs["argmax"].reshape(channels, -1)), inputs["grad"].reshape(channels, -1))
    return {"y": y.reshape(x.shape)}

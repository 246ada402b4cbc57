"""Reference of MaxPool3DGradWithArgmax for one window over the whole of each channel."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    batches, channels = inputs["x"].shape[:2]
    gradient = np.zeros((batches, channels, inputs["x"][0, 0].size))
    np.put_along_axis(
        gradient,
        inputs["argmax"].reshape(batches, channels, 1),
        inputs["grad"].reshape(batches, channels, 1),
        axis=-1,
    )
    return {"y": gradient.reshape(inputs["x"].shape)}

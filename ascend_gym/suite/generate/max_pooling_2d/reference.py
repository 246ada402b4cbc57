"""Reference of MaxPooling2d."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"].astype(np.float64)

    k, s, p = attributes["kernel"], attributes["stride"], attributes["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(2, 3))
    return {"y": windows[:, :, ::s, ::s].max(axis=(-2, -1))}

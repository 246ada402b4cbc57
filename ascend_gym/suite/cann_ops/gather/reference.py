"""Reference of Gather along the axis after the batches."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    rows, indices = inputs["x1"], inputs["indices"]
    return {"y": np.take_along_axis(rows, indices[..., None].astype(np.int64), axis=attributes["batch_dims"])}

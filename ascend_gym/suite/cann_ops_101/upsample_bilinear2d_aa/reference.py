"""Reference of UpsampleBilinear2dAA."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import triangle_shares


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["input"].astype(np.float64)
    aligned = attributes["align_corners"]
    sizes = zip(x.shape[2:], attributes["output_size"], strict=True)
    rows, columns = (triangle_shares(old, new, aligned) for old, new in sizes)
    return {"output": rows @ x @ columns.T}

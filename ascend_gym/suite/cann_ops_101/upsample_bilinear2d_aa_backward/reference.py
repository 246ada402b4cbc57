"""Reference of UpsampleBilinear2dAABackward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import triangle_shares


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    grad = inputs["grad_output"].astype(np.float64)
    sizes = zip(attributes["input_size"][2:], attributes["output_size"], strict=True)
    rows, columns = (triangle_shares(old, new, attributes["align_corners"]) for old, new in sizes)
    return {"grad_input": rows.T @ grad @ columns}

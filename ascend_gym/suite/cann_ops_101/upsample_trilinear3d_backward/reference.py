"""Reference of UpsampleTrilinear3dBackward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import linear_shares


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    result = inputs["grad_output"].astype(np.float64)
    for axis, size in enumerate(attributes["input_size"][2:], start=2):
        shares = linear_shares(size, result.shape[axis], attributes["align_corners"])
        result = np.moveaxis(np.tensordot(shares, result, (0, axis)), 0, axis)
    return {"grad_input": result}

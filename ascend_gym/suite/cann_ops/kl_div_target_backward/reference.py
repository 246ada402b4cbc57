"""Reference of KlDivTargetBackward without reduction, for a target that is not logarithmic."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    target = inputs["target"].astype(np.float64)
    return {"grad_target": inputs["grad_output"] * (np.log(target) + 1.0 - inputs["self"])}

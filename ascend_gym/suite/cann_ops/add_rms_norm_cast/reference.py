"""Reference of AddRmsNormCast."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import rms_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, scale, normed = rms_norm_of_sum(inputs, attributes["epsilon"])
    return {"y1": normed, "y2": normed, "rstd": scale, "x": total}

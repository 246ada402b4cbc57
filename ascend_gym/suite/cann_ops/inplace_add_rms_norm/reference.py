"""Reference of InplaceAddRmsNorm."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import rms_norm_of_sum


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, scale, normed = rms_norm_of_sum(inputs, attributes["epsilon"])
    return {"x1": normed, "rstd": scale, "x2": total}

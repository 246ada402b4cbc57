"""Reference of ReflectionPad3dGrad."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import gradient_of_padding


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"y": gradient_of_padding(inputs["x"], inputs["paddings"], "reflect")}

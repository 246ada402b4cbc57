"""Reference of ForeachErfc."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import erf


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"y": [1.0 - erf(x) for x in inputs["x"]]}

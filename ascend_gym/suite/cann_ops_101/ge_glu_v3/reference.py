"""Reference of GeGluV3."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import ge_glu


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return ge_glu(inputs)

"""Reference of MotionCompensation: each point moves by its share of the motion until the last time."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import motion_compensation


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return motion_compensation(inputs, attributes)

"""Reference of DynamicRNN: gates in the order i, j, f, o."""

from __future__ import annotations

from typing import Any

from ascend_gym.suite.reference_formulas import lstm


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return lstm(inputs, inputs["w"], attributes["forget_bias"])

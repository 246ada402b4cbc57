"""Reference of DynamicRNNV2: gates in the order i, j, f, o."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.suite.reference_formulas import lstm


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return lstm(
        inputs, np.concatenate([inputs["weight_input"], inputs["weight_hidden"]]), attributes["forget_bias"]
    )

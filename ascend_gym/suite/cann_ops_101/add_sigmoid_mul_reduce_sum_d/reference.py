"""Reference of AddSigmoidMulReduceSumD."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    names = ("add_0_input0", "add_0_input1", "mul_0_input1", "mult_1_input1", "mult_2_input1")
    x, shift, rate, first, second = (inputs[name].astype(np.float64) for name in names)
    return {"out": (first * second / (1.0 + np.exp(-(x + shift) * rate))).sum(axis=1)}

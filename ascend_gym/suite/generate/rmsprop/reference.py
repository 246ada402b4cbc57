"""Reference of Rmsprop."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["param"].astype(np.float64)
    g = inputs["grad"].astype(np.float64)

    squares = attributes["decay"] * inputs["squares"].astype(np.float64) + (1.0 - attributes["decay"]) * g**2
    return {
        "param_out": p - attributes["rate"] * g / (np.sqrt(squares) + attributes["epsilon"]),
        "squares_out": squares,
    }

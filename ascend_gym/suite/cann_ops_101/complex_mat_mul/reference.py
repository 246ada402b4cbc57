"""Reference of ComplexMatMul."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x, y, bias = (inputs[name].astype(np.complex128) for name in ("x", "y", "bias"))
    return {"z": x @ y + bias}

"""Reference of ScatterAdd."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    var = inputs["var"]
    var = var.astype(np.float64) if var.dtype.kind == "f" else var.copy()
    np.add.at(var, inputs["indices"], inputs["updates"])
    return {"var": var}

"""Reference of ScatterSub."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    var = inputs["var"].astype(np.float64)
    np.subtract.at(var, inputs["indices"], inputs["updates"].astype(np.float64))
    return {"var": var}

"""Reference of SgdMomentum."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    var, accum, grad = (inputs[name].astype(np.float64) for name in ("var", "accum", "grad"))
    accum = attributes["momentum"] * accum + grad
    return {"var": var - attributes["lr"] * accum, "accum": accum}

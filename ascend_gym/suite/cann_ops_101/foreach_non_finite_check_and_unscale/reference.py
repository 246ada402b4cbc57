"""Reference of ForeachNonFiniteCheckAndUnscale."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    grads = [grad.astype(np.float64) for grad in inputs["scaled_grads"]]
    found = any(not np.isfinite(grad).all() for grad in grads)
    return {
        "scaled_grads": [grad * float(inputs["inv_scale"][0]) for grad in grads],
        "found_inf": np.array([1.0 if found else inputs["found_inf"][0]]),
    }

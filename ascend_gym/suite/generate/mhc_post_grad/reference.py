"""Reference of MhcPostGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    grad = inputs["grad"].astype(np.float64)
    streams = inputs["streams"].astype(np.float64)
    branch = inputs["branch"].astype(np.float64)
    return {
        "grad_streams": (inputs["mixing"][:, :, :, None] * grad[:, None, :, :]).sum(axis=2),
        "grad_branch": (inputs["weights"][:, :, None] * grad).sum(axis=1),
        "grad_mixing": (streams[:, :, None, :] * grad[:, None, :, :]).sum(axis=-1),
        "grad_weights": (branch[:, None, :] * grad).sum(axis=-1),
    }

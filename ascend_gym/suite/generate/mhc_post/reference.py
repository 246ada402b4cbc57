"""Reference of MhcPost."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    streams = inputs["streams"].astype(np.float64)
    mixed = (inputs["mixing"][:, :, :, None] * streams[:, :, None, :]).sum(axis=1)
    return {"y": mixed + inputs["weights"][:, :, None] * inputs["branch"][:, None, :].astype(np.float64)}

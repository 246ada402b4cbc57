"""Reference of SwiGlu."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    gate, up = np.split(inputs["x"].astype(np.float64), 2, axis=-1)
    return {"y": gate / (1.0 + np.exp(-gate)) * up}

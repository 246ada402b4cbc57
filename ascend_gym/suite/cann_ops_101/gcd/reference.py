"""Reference of Gcd."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"y": np.gcd(inputs["x1"], inputs["x2"])}

"""Reference of Trunc."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"output_y": np.trunc(inputs["input_x"].astype(np.float32))}

"""Reference of Eye."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    one = np.eye(attributes["num_rows"], attributes["num_columns"], dtype=np.float32)
    return {"y": np.broadcast_to(one, inputs["y"].shape)}

"""Reference of Cast: what the output type cannot hold is cut off, to whole numbers, or rounded."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    return {"y": np.trunc(x).astype(np.int32) if attributes["target"] == 3 else x.astype(np.float32)}

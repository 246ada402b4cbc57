"""Reference of Cast: towards whole numbers it cuts off and saturates, to other types it rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST, MOST = -(2.0**31), 2.0**31 - 1.0


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    if attributes["target"] == 3:
        return {"y": np.clip(np.trunc(x.astype(np.float64)), LEAST, MOST).astype(np.int32)}
    return {"y": x.astype(np.float32)}

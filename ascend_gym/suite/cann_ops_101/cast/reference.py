"""Reference of Cast."""

from __future__ import annotations

from typing import Any

import numpy as np

_INT32 = 3  # ge::DT_INT32


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    if attributes["dst_type"] == _INT32:
        return {"y": np.trunc(x).astype(np.int32)}
    return {"y": x.astype(np.float32)}

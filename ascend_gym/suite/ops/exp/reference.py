"""Reference of Exp."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    # numpy's float32 exp is good to 3 ulp: 2,000 times finer than an fp16 output
    wide = np.float32 if inputs["x"].dtype == np.float16 else np.float64
    return {"y": np.exp(inputs["x"].astype(wide))}

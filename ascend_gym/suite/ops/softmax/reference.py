"""Reference of Softmax over the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x = inputs["x"]
    # fp16 outputs: float32 terms with a float64 sum are 2,000 times finer than the output
    wide = np.float32 if x.dtype == np.float16 else np.float64
    terms = x.astype(wide)
    terms -= terms.max(axis=-1, keepdims=True)
    np.exp(terms, out=terms)
    terms /= terms.sum(axis=-1, keepdims=True, dtype=np.float64).astype(wide)
    return {"y": terms}

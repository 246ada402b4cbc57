"""Reference of CosineSimilarityLoss."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    p = inputs["predictions"].astype(np.float64)
    t = inputs["targets"].astype(np.float64)

    dots = (p * t).sum(axis=-1)
    sizes = np.sqrt((p**2).sum(axis=-1)) * np.sqrt((t**2).sum(axis=-1))
    return {"loss": np.mean(1.0 - dots / sizes).reshape(1)}

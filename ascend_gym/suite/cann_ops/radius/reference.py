"""Reference of Radius without batches: pairs of indices into x and y, those of y in order."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x, y = inputs["x"].astype(np.float64), inputs["y"].astype(np.float64)
    pairs = []
    for index, point in enumerate(y):
        near = np.flatnonzero(np.linalg.norm(x - point, axis=1) <= attributes["r"])
        if attributes["ignore_same_index"]:
            near = near[near != index]
        pairs += [(neighbour, index) for neighbour in near[: attributes["max_num_neighbors"]]]
    return {"out": np.array(pairs, dtype=np.float64).T}

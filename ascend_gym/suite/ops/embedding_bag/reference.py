"""Reference of EmbeddingBag."""

from __future__ import annotations

from typing import Any

import numpy as np


def inputs(case: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Return offsets of bags that are mostly short, a few long, and some empty."""
    (count,), (ends,) = case.inputs[1].shapes[0], case.inputs[2].shapes[0]
    weights = rng.exponential(1.0, ends - 1) ** 2
    weights[rng.random(ends - 1) < 0.05] = 0.0
    offsets = np.floor(np.cumsum(weights) / weights.sum() * count)
    offsets[-1] = count
    return {"offsets": np.concatenate([[0], offsets])}


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    table, indices, offsets = inputs["table"], inputs["indices"], inputs["offsets"]
    y = np.zeros((offsets.size - 1, table.shape[1]))
    used = np.diff(offsets) > 0
    y[used] = np.add.reduceat(table[indices[: offsets[-1]]].astype(np.float64), offsets[:-1][used], axis=0)
    return {"y": y}

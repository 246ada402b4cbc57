"""Reference of BevPool."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    depth, feat = inputs["depth"].astype(np.float64), inputs["feat"].astype(np.float64)
    points = _points(inputs["interval_starts"], inputs["interval_lengths"])
    batch, depths, height, width, channels = attributes["bev_feat_shape"]
    sums = np.zeros(batch * depths * height * width * channels)
    products = depth.reshape(-1)[inputs["ranks_depth"]] * feat.reshape(-1)[inputs["ranks_feat"]]
    np.add.at(sums, inputs["ranks_bev"][points], products[points])
    return {"out": sums.reshape(batch, depths, height, width, channels).transpose(0, 4, 1, 2, 3)}


def inputs(case: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Points of one place in depth, features and pillars; intervals share them out."""
    depth, feat = case.inputs[0].shapes[0], case.inputs[1].shapes[0]
    (points,), (pillars,) = case.inputs[2].shapes[0], case.inputs[5].shapes[0]
    space = case.attributes["bev_feat_shape"]
    b, n, d, h, w = (rng.integers(0, extent, points) for extent in depth)
    c = rng.integers(0, feat[-1], points)
    z, y, x = (rng.integers(0, extent, points) for extent in space[1:4])
    ends = np.sort(rng.choice(np.arange(1, points), pillars - 1, replace=False))
    edges = np.concatenate([[0], ends, [points]])
    return {
        "ranks_depth": np.ravel_multi_index((b, n, d, h, w), depth),
        "ranks_feat": np.ravel_multi_index((b, n, h, w, c), feat),
        "ranks_bev": np.ravel_multi_index((b, z, y, x, c), tuple(space)),
        "interval_starts": edges[:-1],
        "interval_lengths": np.diff(edges),
    }


def _points(starts: Any, lengths: Any) -> Any:
    return np.concatenate([np.arange(a, a + n) for a, n in zip(starts, lengths, strict=True)])

"""Reference of AddLayerNormGrad, and a gamma with which its sums along a row have one term."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.core.records import Case


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    gamma = np.zeros(case.inputs[5].shapes[0], np.float32)
    gamma[0] = rng.uniform(4.0, 8.0)
    return {"gamma": gamma}


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    dy, x1, x2, rstd, mean, gamma = (
        inputs[name].astype(np.float64) for name in ("dy", "x1", "x2", "rstd", "mean", "gamma")
    )
    centred = (x1 + x2 - mean) * rstd
    scaled = dy * gamma
    along = (scaled * centred).mean(axis=-1, keepdims=True)
    dx = rstd * (scaled - scaled.mean(axis=-1, keepdims=True) - centred * along)
    dx = dx + inputs["dsum"] if "dsum" in inputs else dx
    return {"dx": dx, "dgamma": (dy * centred).sum(axis=0), "dbeta": dy.sum(axis=0)}

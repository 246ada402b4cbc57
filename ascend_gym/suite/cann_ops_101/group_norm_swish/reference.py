"""Reference of GroupNormSwish."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    x, gamma, beta = (inputs[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    groups = x.reshape(len(x), attributes["num_groups"], -1)
    mean = groups.mean(axis=-1)
    rstd = 1.0 / np.sqrt(groups.var(axis=-1) + attributes["eps"])
    normed = ((groups - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    y = normed * gamma[:, None] + beta[:, None]
    return {"y": y / (1.0 + np.exp(-attributes["swish_scale"] * y)), "mean": mean, "rstd": rstd}

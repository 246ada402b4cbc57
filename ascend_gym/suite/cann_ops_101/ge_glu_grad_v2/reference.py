"""Reference of GeGluGradV2."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    dy, x, gelu = (inputs[name].astype(np.float64) for name in ("dy", "x", "gelu"))
    left, right = np.split(x, 2, axis=-1)
    return {"dx": np.concatenate([dy * gelu, dy * left * _gelu_slope(right)], axis=-1)}


def inputs(case: Any, rng: np.random.Generator) -> dict[str, Any]:
    """``gelu`` is what the forward operator keeps: it follows from the second half of ``x``."""
    x = rng.normal(0.0, 1.5, case.inputs[1].shapes[0]).astype(np.float32)
    return {"x": x, "gelu": _gelu(np.split(x.astype(np.float64), 2, axis=-1)[1])}


def _gelu(x: Any) -> Any:
    return x / (1.0 + np.exp(-np.sqrt(8.0 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_slope(x: Any) -> Any:
    share = 1.0 / (1.0 + np.exp(-np.sqrt(8.0 / np.pi) * (x + 0.044715 * x**3)))
    return share + x * share * (1.0 - share) * np.sqrt(8.0 / np.pi) * (1.0 + 3.0 * 0.044715 * x**2)

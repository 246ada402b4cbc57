"""Reference of UpsampleBilinear2dAABackward."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    grad = inputs["grad_output"].astype(np.float64)
    sizes = zip(attributes["input_size"][2:], attributes["output_size"], strict=True)
    rows, columns = (_shares(old, new, attributes["align_corners"]) for old, new in sizes)
    return {"grad_input": rows.T @ grad @ columns}


def _shares(size: int, out: int, aligned: bool) -> Any:
    """Return what each of ``size`` elements adds to each of ``out``, by a triangle filter: (out, size)."""
    scale = (size - 1) / (out - 1) if aligned else size / out
    reach = max(scale, 1.0)
    centres = scale * (np.arange(out)[:, None] + 0.5)
    shares = np.maximum(1.0 - np.abs(np.arange(size) + 0.5 - centres) / reach, 0.0)
    return shares / shares.sum(axis=1, keepdims=True)

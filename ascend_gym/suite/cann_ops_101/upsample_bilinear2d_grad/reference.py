"""Reference of UpsampleBilinear2dGrad."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    grad = inputs["grad_output"].astype(np.float64)
    sizes = zip(attributes["input_size"][2:], attributes["output_size"], strict=True)
    rows, columns = (_shares(old, new, attributes["align_corners"]) for old, new in sizes)
    return {"grad_input": rows.T @ grad @ columns}


def _shares(size: int, out: int, aligned: bool) -> Any:
    """Return what each of ``size`` elements adds to each of ``out``: shape (out, size)."""
    if aligned:
        at = np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        at = np.maximum((np.arange(out) + 0.5) * size / out - 0.5, 0.0)
    first = np.floor(at).astype(int)
    shares = np.zeros((out, size))
    shares[np.arange(out), first] += 1.0 - (at - first)
    shares[np.arange(out), np.minimum(first + 1, size - 1)] += at - first
    return shares

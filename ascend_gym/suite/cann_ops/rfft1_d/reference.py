"""Reference of Rfft1D for lengths whose matrix lies row by row: real and imaginary parts in turn."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    size = attributes["n"]
    columns = 2 * (size // 2 + 1)
    matrix = inputs["dft"].astype(np.float64)[: size * columns].reshape(size, columns)
    return {"y": (inputs["x"].astype(np.float64) @ matrix).reshape(-1, columns // 2, 2)}

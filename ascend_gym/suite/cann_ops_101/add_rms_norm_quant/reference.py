"""Reference of AddRmsNormQuant: the int8 values before they are rounded; the sources write no second ones.

The sources add the first block of each repeat eight times (op_kernel/rms_norm_base.h:115: a source block
stride of 0). Rows whose repeats consist of eight equal blocks are what this adds up rightly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_gym.core.records import Case
from ascend_gym.suite.reference_formulas import rms_norm_of_sum

_REPEAT, _BLOCK = 64, 8  # elements of float32


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    ((rows, columns),) = case.inputs[0].shapes
    made = {}
    for name in ("x1", "x2"):
        blocks = rng.standard_normal((rows, columns // _REPEAT, 1, _BLOCK), np.float32)
        made[name] = np.broadcast_to(blocks, (rows, columns // _REPEAT, _REPEAT // _BLOCK, _BLOCK)).reshape(
            rows, columns
        )
    return made


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    total, _, normed = rms_norm_of_sum(inputs, attributes["epsilon"])
    scaled = normed / inputs["scales1"].astype(np.float64) + inputs.get("zero_points1", 0)
    return {"y1": np.clip(scaled, -128.0, 127.0), "x": total}

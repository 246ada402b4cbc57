"""Reference of StridesliceNegConcatV2."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    left, right = np.split(inputs["input"], 2, axis=-1)
    return {"output": np.concatenate([left, -right], axis=-1)}
